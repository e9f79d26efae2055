"""Samples from Prometheus: query_range in parts of bounded size, from where the last import ended."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import polars as pl

from tocsin.core.errors import SourceError
from tocsin.core.frames import Samples
from tocsin.sources.trace_http import TooLarge, TraceHttp
from tocsin.sources.trace_mapping import TraceMapping
from tocsin.sources.trace_series import Series, TraceBatch, samples_of, series_of

__all__ = ["PrometheusSource"]

_MOST_POINTS = 11_000  # per series and reply; Prometheus refuses more
_LESS = (
    "exceeded maximum resolution",
    "too many samples",
    "too many points",
    "timed out",
    "context deadline",
)
"""Errors after which a shorter time is requested."""


class PrometheusSource:
    """The metrics of a mapping, in parts of `chunk` seconds. A part that fails is counted and left for later.

    Prometheus is queried for whole seconds; it answers each with the last scrape before it, so nothing is from later.
    """

    def __init__(self, http: TraceHttp, mapping: TraceMapping, *, step: int = 1, chunk: int = 600) -> None:
        self.counts: Counter[str] = Counter()
        """`resets` of counters, `incomplete` samples, `invalid points` and `series`, `failed parts`, `split parts`."""
        self.notes: list[str] = []
        self.first_failed: int | None = None
        """The start of the first part that failed: the next import must begin there."""
        self._http, self._mapping, self._step = http, mapping, step
        self._chunk = max(step, min(chunk, _MOST_POINTS * step) // step * step)

    def batches(self, since: int, until: int) -> Iterator[TraceBatch]:
        """The samples in (since, until], oldest first."""
        since, until = since // self._step * self._step, until // self._step * self._step
        begin = since
        while since < until:
            end = min(since + self._chunk, until)
            try:
                samples = self._part(since, end)
            except TooLarge as error:
                if end - since <= self._step:
                    raise SourceError(
                        f"{error}; a single second is too much: raise traces.interval"
                    ) from None
                self._chunk = max(self._step, (end - since) // 2 // self._step * self._step)
                self.counts["split parts"] += 1
                continue
            except _NoReply as error:
                self.counts["failed parts"] += 1
                self.notes.append(str(error))
                self.first_failed = since if self.first_failed is None else self.first_failed
            else:
                yield TraceBatch(samples, end, end - begin, until - begin)
            since = end

    def _part(self, since: int, until: int) -> Samples:
        def read(metric: str) -> Series:
            # One more point in front: a rate needs the previous counter.
            return self._query(metric, since - self._step, until)

        samples = samples_of(read, self._mapping, step=self._step, counts=self.counts)
        inside = (pl.col("at") > since) & (pl.col("at") <= until)
        return Samples(samples.cpus.filter(inside), samples.jobs.filter(inside))

    def _query(self, metric: str, start: int, end: int) -> Series:
        query = {"query": metric, "start": str(start), "end": str(end), "step": str(self._step)}
        status, body = self._http.get("/api/v1/query_range", query)
        place = f"Prometheus at {self._http.url}"
        if status in (401, 403, 404):
            raise SourceError(
                f"{place} answers query_range with HTTP {status}; is it Prometheus, and may you read it?"
            )
        reason = str((body or {}).get("error", ""))[:300]
        if any(text in reason for text in _LESS):
            raise TooLarge(f"{place} refuses {metric} from {start} to {end}: {reason}")
        if status != 200 or body is None or body.get("status") != "success":
            why = reason or ("no JSON" if body is None else f"HTTP {status}")
            raise _NoReply(f"{place} gave no {metric} from {start} to {end} ({why}); read it again later")
        for warning in _texts(body.get("warnings")):
            self.notes.append(f"{place}: {warning}")
        data = body.get("data")
        if not isinstance(data, dict) or data.get("resultType") != "matrix":
            raise _NoReply(f"{place} gave no matrix of {metric} from {start} to {end}; read it again later")
        return series_of(data.get("result"), self.counts)


class _NoReply(Exception):
    """A part is not available now."""


def _texts(value: Any) -> list[str]:
    return [str(one)[:300] for one in value[:3]] if isinstance(value, list) else []
