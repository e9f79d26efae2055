"""Windows as arrays: what models read, with the node, CPU, job and end of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS
from tocsin.core.errors import ModelError
from tocsin.core.frames import WINDOWS

__all__ = ["Windows"]


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of one length and of the same channels: `values` is windows × seconds × channels.

    `index` has the other columns of `core.frames.WINDOWS`, one row per window.
    """

    values: NDArray[np.float32]
    index: pl.DataFrame
    channels: Sequence[str] = CPU_CHANNELS

    @classmethod
    def from_frame(cls, frame: pl.DataFrame, channels: Sequence[str] = CPU_CHANNELS) -> Self:
        """The rows of a frame of WINDOWS that have these channels: those with a CPU, or those without."""
        rows = frame.filter(
            pl.col("cpu").is_null() if channels == JOB_CHANNELS else pl.col("cpu").is_not_null()
        )
        width = len(channels)
        sizes = rows["values"].list.len().unique().to_list()
        if len(sizes) > 1 or (sizes and (not sizes[0] or sizes[0] % width)):
            raise ModelError(
                f"windows of {sizes} values cannot be put together; {width} channels are expected"
            )
        length = sizes[0] // width if sizes else 0
        flat = rows["values"].explode(empty_as_null=False).to_numpy() if rows.height else np.empty(0)
        values = np.asarray(flat, dtype=np.float32).reshape(rows.height, length, width)
        return cls(values, rows.drop("values"), channels)

    def to_frame(self) -> pl.DataFrame:
        """As `core.frames.WINDOWS`."""
        rows = self.values.reshape(len(self), self.length * len(self.channels))
        flat = pl.Series("values", rows, dtype=pl.Array(pl.Float32, rows.shape[1]))
        return self.index.with_columns(flat.cast(pl.List(pl.Float32))).select(WINDOWS.names())

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: "slice | NDArray[Any]") -> Self:
        """Some of them, by a slice, a mask or numbers."""
        numbers = np.arange(len(self))[rows]
        return type(self)(self.values[numbers], self.index[numbers], self.channels)

    @property
    def length(self) -> int:
        """Seconds (samples) in a window."""
        return int(self.values.shape[1])

    def graphs(self, *, by_job: bool) -> NDArray[np.int64]:
        """For each window, the number of its graph: the CPUs of a node at one instant, or of one job there.

        CPUs without a job form one graph per node.
        """
        keys = ["node", "at", "job"] if by_job else ["node", "at"]
        return self.index.select(pl.struct(keys).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
