"""Metrics of the service for Prometheus, in base units and without names of jobs or users."""

import time
from collections.abc import Callable, Iterator, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tocsin import __version__
from tocsin.app.learning import LiveMeasurement
from tocsin.app.service import Service
from tocsin.core.verdict import Verdict

__all__ = ["API", "Measured", "Metrics"]

API = "/api/v1"

disable_created_metrics()  # type: ignore[no-untyped-call]  # a series for each series, which nobody reads
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)


class Metrics:
    """Counters of the running service; `text` is the reply of `/metrics`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(namespace="tocsin", registry=self.registry)
        self.requests = Counter(
            "tocsin_http_requests", "Requests by route, method and status.", ["route", "method", "status"],
            registry=self.registry,
        )  # fmt: skip
        self.seconds = Histogram(
            "tocsin_http_request_duration_seconds", "Time to answer, without event streams.", ["route"],
            registry=self.registry, buckets=_BUCKETS,
        )  # fmt: skip
        self.verdicts = Counter(
            "tocsin_verdicts",
            "Verdicts given by this process.",
            ["cluster", "stage", "level"],
            registry=self.registry,
        )
        self.rounds = Counter(
            "tocsin_watch_rounds", "Rounds of queries to the cluster.", ["cluster"], registry=self.registry
        )
        self.lost = Counter(
            "tocsin_event_clients_lost",
            "Event-stream clients that were disconnected because they did not keep up.",
            registry=self.registry,
        )

    def on_round(self, cluster: str, verdicts: Sequence[Verdict]) -> None:
        self.rounds.labels(cluster).inc()
        for verdict in verdicts:
            self.verdicts.labels(cluster, str(verdict.stage), str(verdict.level)).inc()

    def watch(self, service: Service, clients: Callable[[], int]) -> None:
        """Read the state of the service at each scrape."""
        self.registry.register(_State(service, clients))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _State:
    """Values that are read at each scrape."""

    def __init__(self, service: Service, clients: Callable[[], int]) -> None:
        self._service, self._clients = service, clients

    def collect(self) -> Iterator[Metric]:
        info = InfoMetricFamily("tocsin_build", "Version of tocsin.")
        info.add_metric([], {"version": __version__})
        yield info
        yield GaugeMetricFamily("tocsin_event_clients", "Clients of the event stream.", self._clients())
        reasons = list(self._service.reasons())
        yield GaugeMetricFamily(
            "tocsin_ready", "Whether /readyz answers 200.", float(all(reason.ready for reason in reasons))
        )
        up = GaugeMetricFamily("tocsin_watch_up", "Whether the last round succeeded.", labels=["cluster"])
        last = GaugeMetricFamily(
            "tocsin_watch_last_round_timestamp_seconds", "When the last round ended.", labels=["cluster"]
        )
        queued = GaugeMetricFamily(
            "tocsin_watch_queue_jobs", "Jobs in the queue that have not ended.", labels=["cluster"]
        )
        for state in self._service.states:
            name = [state.name or ""]
            up.add_metric(name, float(state.problem is None and state.last is not None))
            if state.queued is not None:
                queued.add_metric(name, state.queued)
            if state.last is not None:
                last.add_metric(name, state.last)
        yield from (up, last, queued)
        yield from self._sinks()
        if measured := self._service.learner.measured:
            yield from _live(measured)
        if run := self._service.learner.last_run():
            yield GaugeMetricFamily(
                "tocsin_learning_last_run_timestamp_seconds",
                "When the last nightly run started.",
                run.started,
            )
            good = float(run.state == "done")
            yield GaugeMetricFamily(
                "tocsin_learning_last_run_done", "Whether the last nightly run succeeded.", good
            )

    def _sinks(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("tocsin_sink_up", "Whether the sink takes messages.", labels=["sink"])
        waiting = GaugeMetricFamily(
            "tocsin_sink_waiting_messages", "Messages that wait for the sink.", labels=["sink"]
        )
        messages = CounterMetricFamily(
            "tocsin_sink_messages",
            "Messages that the sink took (sent) or refused, or that were dropped because too many waited.",
            labels=["sink", "result"],
        )
        for name, state in self._service.sinks().items():
            up.add_metric([name], float(not state.problem))
            waiting.add_metric([name], state.waiting)
            for result in ("sent", "refused", "dropped"):
                messages.add_metric([name, result], getattr(state, result))
        yield from (up, waiting, messages)


def _live(measured: LiveMeasurement) -> Iterator[Metric]:
    """The performance of the models in use and their challengers on live jobs."""
    labels = ["cluster", "detector", "stage", "role"]
    names = {
        "precision": "Live precision of alarms.",
        "recall": "Share of the failed jobs that had an alarm.",
        "auc": "Area under the ROC curve on live jobs.",
    }
    ratios = {
        (name, bound): GaugeMetricFamily(
            f"tocsin_model_live_{name}_{suffix}", text + (f" {words} end of its 95 % interval." if words else ""),
            labels=labels,
        )
        for name, text in names.items()
        for bound, suffix, words in (("value", "ratio", ""), ("low", "low_ratio", "Lower"), ("high", "high_ratio", "Upper"))
    }  # fmt: skip
    jobs = GaugeMetricFamily(
        "tocsin_model_live_jobs", "Live jobs that the live figures are measured on.", labels=labels
    )
    for row in measured.figures:
        if row["role"] not in ("champion", "challenger"):
            continue
        where = [str(row[name]) for name in labels]
        jobs.add_metric(where, row["jobs"])
        for (name, bound), family in ratios.items():
            if row[name] is not None:
                family.add_metric(where, row[name][bound])
    yield jobs
    yield from ratios.values()


class Measured:
    """Counts the requests of an application by the template of their route, never by path."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, stream = time.perf_counter(), "500", False

        async def noted(message: Message) -> None:
            nonlocal status, stream
            if message["type"] == "http.response.start":
                status = str(message["status"])
                stream = any(
                    name == b"content-type" and b"event-stream" in value for name, value in message["headers"]
                )
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            found = getattr(scope.get("route"), "path", None)
            route = "none" if found is None else f"{API}{found}" if scope["path"].startswith(API) else found
            self._metrics.requests.labels(route, "any" if found is None else scope["method"], status).inc()
            if not stream:
                self._metrics.seconds.labels(route).observe(time.perf_counter() - began)
