"""Tables of scores on disk, read within bounds."""

from pathlib import Path

import polars as pl

from tocsin.core.errors import ModelError
from tocsin.core.frames import UNREADABLE
from tocsin.models.files import MALFORMED, MOST_BYTES, read_file

__all__ = ["read_table"]

_MOST_ROWS = 50_000_000


def read_table(path: Path, columns: dict[str, type[pl.DataType]]) -> pl.DataFrame:
    """A Parquet file with at least these columns, in their types."""
    try:
        content = read_file(path, most=MOST_BYTES)
        if pl.scan_parquet(content).select(pl.len()).collect().item() > _MOST_ROWS:
            raise ValueError(f"it has more than {_MOST_ROWS:,} rows")
        return pl.read_parquet(content).cast(columns)  # type: ignore[arg-type]  # types by name
    except (*UNREADABLE, *MALFORMED) as error:
        raise ModelError(f"{path} cannot be read: {str(error)[:100]}; train again") from None
