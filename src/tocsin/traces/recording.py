"""Record what agents see: samples from their /window, or from a sampler in this process."""

import json
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Protocol, Self

import polars as pl

from tocsin.agent.exposition import window
from tocsin.agent.sampler import Sampler
from tocsin.core.channels import CPU_CHANNELS, JOB_CHANNELS
from tocsin.core.errors import ClusterError
from tocsin.core.frames import CPU_SAMPLES, JOB_SAMPLES

__all__ = ["LocalRecorder", "Recorder", "RemoteRecorder", "cpu_samples", "job_samples"]

Document = dict[str, Any]
_SLOW = frozenset({"context_switches"})  # the agent counts them every 15 s


class Recorder(Protocol):
    """Gathers the samples of some nodes."""

    node: str
    samples: list[Document]

    def poll(self) -> None:
        """Fetch what is new."""
        ...


class LocalRecorder:
    """Samples of this host, taken in a thread of this process."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.samples: list[Document] = []
        self._sampler = Sampler()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sampler.run, args=(self._stop,), daemon=True)

    def poll(self) -> None:
        since = self.samples[-1]["at"] if self.samples else 0.0
        document = json.loads(window(self.node, self._sampler, self._sampler.since(since)))
        self.samples += document["samples"]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()


class RemoteRecorder:
    """Samples of the agent at an address such as http://n1:9814. One that does not answer is asked again."""

    def __init__(self, url: str) -> None:
        import httpx2

        self.url = url if "://" in url else f"http://{url}"
        self.node = ""
        self.samples: list[Document] = []
        self._client = httpx2.Client(timeout=10.0)
        self._since = 0.0
        self.poll()
        self.samples.clear()  # what was before is not ours

    def poll(self) -> None:
        import httpx2

        try:
            answer = self._client.get(f"{self.url.rstrip('/')}/window", params={"since": self._since})
            document = answer.raise_for_status().json()
            self.node = str(document["node"])
            self.samples += document["samples"]
            self._since = max(self._since, *(float(each["at"]) for each in document["samples"]), 0.0)
        except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
            if not self.node:
                raise ClusterError(
                    f"no tocsin-agent answers at {self.url}: {error}; start it on the node"
                ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()


def cpu_samples(node: str, samples: Sequence[Document]) -> pl.DataFrame:
    """CPU_SAMPLES of a node, one for each CPU and second."""
    rows = [
        (node, int(cpu), round(sample["at"]), sample["jobs"].get(cpu), *shares)
        for sample in samples
        for cpu, shares in sample["cpus"].items()
    ]
    frame = pl.DataFrame(
        rows, ["node", "cpu", "at", "job", *CPU_CHANNELS], orient="row", infer_schema_length=None
    )
    return frame.cast(CPU_SAMPLES).unique(["cpu", "at"], keep="last").sort("cpu", "at")


def job_samples(node: str, samples: Sequence[Document]) -> pl.DataFrame:
    """JOB_SAMPLES of a node: counters become rates; one that moves only every few samples is spread over them."""
    rows = [
        {"job": job, "at": sample["at"], **counters}
        for sample in samples
        for job, counters in sample["counters"].items()
    ]
    schema = {"job": pl.String, "at": pl.Float64} | dict.fromkeys(_COUNTERS.values(), pl.Float64)
    frame = pl.DataFrame(rows, schema=schema, orient="row").sort("job", "at")
    rates = {name: _rate(name, counter) for name, counter in _COUNTERS.items()}
    made = frame.with_columns(
        **{name: rates.get(name, pl.lit(None, dtype=pl.Float64)) for name in JOB_CHANNELS},
        node=pl.lit(node),
    ).filter(pl.col("at").diff().over("job").is_not_null())
    return (
        made.with_columns(pl.col("at").round().cast(pl.Int64))
        .unique(["job", "at"], keep="last")
        .sort("job", "at")
        .select(pl.col(name).cast(kind) for name, kind in JOB_SAMPLES.items())
    )


_COUNTERS = {
    **{
        name: f"{name}_seconds_total" if name.startswith(("cpu_", "pressure_")) else f"{name}_total"
        for name in JOB_CHANNELS
        if name not in ("memory", "gpu")
    },
    "memory": "memory_bytes",
    "io_read": "io_read_bytes_total",
    "io_written": "io_written_bytes_total",
}


def _rate(name: str, counter: str) -> pl.Expr:
    value, at = pl.col(counter), pl.col("at")
    if name == "memory":
        return value
    if name in _SLOW:
        moved = (value != value.shift(1)).fill_null(True)
        before = pl.when(moved).then(value).forward_fill().shift(1)
        since = pl.when(moved).then(at).forward_fill().shift(1)
        rate = pl.when(moved).then((value - before) / (at - since)).backward_fill().forward_fill()
    else:
        rate = value.diff() / at.diff()
    return rate.over("job").clip(lower_bound=0.0)
