"""The demonstration as a newcomer sees it: warnings in the terminal and on a page, without any set-up."""

import http.client
import json
import signal
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.kits.service import Process, wait_until


def test_within_a_minute_of_the_demo_predictions_ring_and_a_miner_is_caught(tmp_path: Path) -> None:
    with Process(tmp_path / "home", "--demo", "--speed", "120") as demo:
        demo.ready(400)

        def caught() -> bool:
            found = demo.get("/api/v1/verdicts?level=warning,critical&limit=100")["verdicts"]
            risky = any(verdict["failure"] and verdict["failure"]["will_fail"] for verdict in found)
            return risky and bool(demo.get("/api/v1/cases?status=open")["cases"])

        wait_until(caught, 60)
        [case] = demo.get("/api/v1/cases?status=open")["cases"]
        assert case["user"] == "noor"
        status, headers, page = over_tcp(demo.port, "/")
        assert status == 200
        assert "Demonstration" in page
        assert "cryptomining" in page
        assert "default-src 'none'" in headers["content-security-policy"]
        me = json.loads(over_tcp(demo.port, "/api/v1/me")[2])
        assert me == {"user": "demo", "role": "operator", "method": "demo"}
        assert [node["name"] for node in demo.get("/api/v1/nodes")["nodes"]]
        assert demo.stop(signal.SIGINT) == 0
    text = demo.text
    assert "everybody on this host has operator rights in this demo; open http://127.0.0.1:" in text
    assert "WARNING: the job is likely to fail" in text
    assert "CRITICAL: classified as cryptomining" in text
    assert "UNKNOWN" not in text
    with Process(tmp_path / "home", "--demo", "--for", "1") as again:
        assert again.process.wait(120) == 0
    assert again.text.count("simulating") == 1


def over_tcp(port: int, path: str) -> tuple[int, Any, str]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("GET", path)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read().decode()
