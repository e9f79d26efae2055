"""Records the samples of agents: from their /window, or from a sampler in this process."""

import json
import threading
from types import TracebackType
from typing import Any, Protocol, Self

from tocsin.agent.exposition import window
from tocsin.agent.sampler import Sampler
from tocsin.core.errors import ClusterError, SourceError
from tocsin.sources.trace_http import TraceHttp

__all__ = ["LocalRecorder", "Recorder", "RemoteRecorder"]

Document = dict[str, Any]


class Recorder(Protocol):
    """Gathers the samples of some nodes."""

    node: str
    samples: list[Document]

    def poll(self) -> None:
        """Fetch new samples."""
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
        self.node = ""
        self.samples: list[Document] = []
        self._http = TraceHttp(url if "://" in url else f"http://{url}", "an agent", seconds=10, tries=1)
        self._since = 0.0
        self.poll()
        self.samples.clear()  # earlier samples do not belong to us

    def poll(self) -> None:
        try:
            document = self._http.get("/window", {"since": str(self._since)}).body or {}
            self.node = str(document["node"])
            self.samples += document["samples"]
            self._since = max(self._since, *(float(each["at"]) for each in document["samples"]), 0.0)
        except (SourceError, ValueError, KeyError, TypeError) as error:
            if not self.node:
                raise ClusterError(
                    f"no tocsin-agent answers at {self._http.url}: {error}; start it on the node"
                ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()
