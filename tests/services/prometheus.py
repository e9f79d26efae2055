"""A private Prometheus on loopback that scrapes given targets once a second."""

import json
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.services import SYSTEM_PATH, missing
from tests.services.daemons import Daemons, ServiceError, free_ports


class Prometheus:
    """`targets` are addresses by the name of their node; the name becomes the label `node`."""

    def __init__(self, targets: Mapping[str, str], *, scrape_interval: str = "1s") -> None:
        self._targets, self._interval = dict(targets), scrape_interval

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Start the server, and return when it answers."""
        if sentence := missing("prometheus"):
            raise ServiceError(sentence)
        self.folder = Path(tempfile.mkdtemp(prefix="tocsin-prometheus-", dir="/tmp"))
        self.daemons = Daemons(self.folder)
        try:
            self._serve()
        except BaseException:
            self.stop()
            raise
        return self

    def _serve(self) -> None:
        [self.port] = free_ports(1)
        scrape = {
            "job_name": "tocsin",
            "scrape_interval": self._interval,
            "scrape_timeout": "900ms",
            "static_configs": [
                {"targets": [address], "labels": {"node": node}} for node, address in self._targets.items()
            ],
        }
        config = self.folder / "prometheus.yml"
        config.write_text(json.dumps({"scrape_configs": [scrape]}))  # YAML reads JSON
        program = shutil.which("prometheus", path=SYSTEM_PATH)
        assert program is not None, "missing() would have said so"
        command = [
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--log.level=warn",
        ]
        self.daemons.start("prometheus", command, {"PATH": SYSTEM_PATH, "HOME": str(self.folder)})
        self.daemons.await_ready("prometheus", self._ready, 30)

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=5) as reply:
                return bool(reply.status == 200)
        except urllib.error.HTTPError as error:
            error.close()
            return False
        except OSError:
            return False

    def samples(self, metric: str) -> int:
        """How many series of a metric there are now."""
        with urllib.request.urlopen(f"{self.url}/api/v1/query?query=count({metric})", timeout=5) as reply:
            found = json.load(reply)["data"]["result"]
        return int(found[0]["value"][1]) if found else 0

    def stop(self) -> None:
        self.daemons.stop(list(self.daemons.running))
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
