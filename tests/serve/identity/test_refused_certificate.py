"""A client that refuses the certificate of its service says so, and does not fall back to its own empty store."""

from pathlib import Path

import pytest

from tests.kits.certificates import self_signed
from tests.serve.identity.kit import gated, serving
from tocsin.app.app import App
from tocsin.app.client import first_that_answers
from tocsin.core.errors import ClusterError


def test_a_service_whose_certificate_is_refused_is_an_error_and_not_absent(app: App, tmp_path: Path) -> None:
    found = self_signed(tmp_path, "127.0.0.1")  # as unknown to the client as an expired one
    files = {"ssl_certfile": str(found.file), "ssl_keyfile": str(found.key)}
    with serving(gated(app), **files) as url:
        client = first_that_answers([url])
        assert client is not None
        with pytest.raises(ClusterError, match=r"certificate verify failed.*--local"):
            client.get("/me")


def test_where_nobody_listens_there_is_no_service(tmp_path: Path) -> None:
    assert first_that_answers(["https://127.0.0.1:1", f"unix:{tmp_path}/none"]) is None
