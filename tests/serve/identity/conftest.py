"""An App of its own for each test."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.serve.identity.kit import application
from tocsin.app.app import App
from tocsin.app.tokens import TokenRequest, create_token

MakeApp = Callable[..., App]


@pytest.fixture
def make_app(tmp_path: Path) -> Iterator[MakeApp]:
    """`make_app("operators = 'ann'")`: an App with these settings of the service."""
    with ExitStack() as opened:
        yield lambda settings="": opened.enter_context(application(tmp_path, settings))


@pytest.fixture
def app(make_app: MakeApp) -> App:
    return make_app()


def new_token(app: App, label: str = "program", **request: object) -> str:
    return create_token(app, TokenRequest(label=label, **request))[1]  # type: ignore[arg-type]
