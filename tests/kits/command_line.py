"""The command line in tests: arguments in; exit code, stdout and stderr out."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tocsin.app import settings
from tocsin.cli.main import run


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Tocsin = Callable[..., Result]


@pytest.fixture
def tocsin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Tocsin:
    """`tocsin(...)` on a home of its own, with no settings from this machine."""
    monkeypatch.setattr(settings, "SYSTEM_FILE", tmp_path / "etc" / "tocsin.toml")
    for name, value in {
        "TOCSIN_HOME": tmp_path / "home",
        "HOME": tmp_path,
        "XDG_CONFIG_HOME": tmp_path / "config",
    }.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("TZ", "UTC")

    def call(*arguments: object) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Result(int(ended.value.code or 0), printed.out, printed.err)

    return call
