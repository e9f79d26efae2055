"""What every test can ask for: a real Slurm, a real PostgreSQL, the public data."""

import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import hypothesis
import polars
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.services import missing
from tests.services.postgres import Postgres
from tests.services.slurm import SlurmLab

# Other work on the machine must not fail a property test.
hypothesis.settings.register_profile("tocsin", deadline=None)
hypothesis.settings.load_profile("tocsin")

pytest_plugins = ["tests.kits.command_line"]

REPOSITORY = Path(__file__).parent.parent


def unavailable(sentence: str) -> NoReturn:
    """What the machine lacks is skipped for a user, and fails in CI."""
    if os.environ.get("CI") == "true":
        pytest.fail(sentence, pytrace=False)
    pytest.skip(sentence)


class LiveTestsTogether(LoadFileScheduling):
    """One process gets all tests of the real Slurm, so that one is started, and begins with them: they take
    longest (`--no-loadscope-reorder` keeps that order)."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "live" if _is_live(file) else file


def _is_live(file: str) -> bool:
    return Path(file).name.startswith("test_live")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LiveTestsTogether | None:
    return LiveTestsTogether(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not _is_live(item.path.name))
    for item in items:
        if "slurm" in getattr(item, "fixturenames", ()) and not _is_live(item.path.name):
            raise pytest.UsageError(f"{item.nodeid} uses the real Slurm; move it to a file test_live_….py")


@pytest.fixture(autouse=True)
def no_swallowed_warnings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail on warnings of polars' compiled part, too: it prints the exception that `filterwarnings = error` raises."""
    raised: list[str] = []

    def warn(*arguments: Any, **more: Any) -> None:
        try:
            warnings.warn(*arguments, **more)
        except Warning as warning:
            if sys._getframe(1).f_code.co_name == "_polars_warn":
                raised.append(str(warning))
            raise

    # Only as polars sees it: a frame more would mislead filters that go by the module of the caller.
    monkeypatch.setattr(polars._warnings, "warnings", SimpleNamespace(warn=warn))
    yield
    assert not raised, raised


@pytest.fixture(scope="session")
def slurm() -> Iterator[SlurmLab]:
    """A Slurm cluster, started when the first test asks for it; shared, so look only at jobs that you submitted."""
    if sentence := missing("slurm"):
        unavailable(sentence)
    with SlurmLab() as lab:
        yield lab


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL server; `postgres.new_database()` gives an empty database of one's own."""
    if sentence := missing("postgres"):
        unavailable(sentence)
    with Postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_url(postgres: Postgres) -> str:
    """The URL of one database on that server, the same for the whole session."""
    return postgres.new_database()


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public logs, scripts and traces: `TOCSIN_DATA`, or `../shared/data` beside the repository."""
    folder = Path(os.environ.get("TOCSIN_DATA") or REPOSITORY.parent / "shared" / "data")
    if not folder.is_dir():
        unavailable(
            f"no public data in {folder}; set TOCSIN_DATA to the folder that holds swf/, sacct/ and scripts/"
        )
    return folder


@pytest.fixture(scope="session")
def torch() -> None:
    """PyTorch, ONNX and ONNX Runtime: the extra `traces`."""
    for library in ("torch", "onnx", "onnxruntime"):
        if importlib.util.find_spec(library) is None:
            unavailable(f"{library} is not installed; pip install 'tocsin[traces]'")
