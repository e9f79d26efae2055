"""An ordinary user on the service's host has data of their own; commands that read or change it say so."""

from pathlib import Path

import pytest

from tests.kits.command_line import Tocsin


@pytest.fixture
def user(tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tocsin:
    """With a home folder of their own, on a host where a service is installed and does not answer."""
    (tmp_path / "run").mkdir()
    monkeypatch.delenv("TOCSIN_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setattr("tocsin.store.home.SERVICE_HOME", tmp_path / "service")
    monkeypatch.setattr("tocsin.app.service_address.SYSTEM_SOCKET", tmp_path / "run" / "tocsin.sock")
    return tocsin


@pytest.mark.parametrize(
    "command",
    [
        ("cases",),
        ("allow", "add", "cyber", "--user", "alice", "--reason", "x"),
        ("actions",),
        ("undo", "--all"),
        ("tokens", "list"),
    ],
)
def test_commands_for_operators_name_whose_data_they_use(
    user: Tocsin, tmp_path: Path, command: tuple[str, ...]
) -> None:
    said = user(*command).err
    assert f"your own data in {tmp_path}/share/tocsin; for the service's, run the command as user" in said
    assert "your own data" not in user("--home", tmp_path / "named", *command).err


@pytest.mark.parametrize("command", [("job", "17"), ("explain", "17"), ("jobs",)])
def test_a_job_that_only_the_service_knows_is_not_called_unknown_while_that_is_down(
    user: Tocsin, tmp_path: Path, command: tuple[str, ...]
) -> None:
    reason = f"the service does not answer, so only your own data in {tmp_path}/share/tocsin was read"
    assert reason in user(*command).err
    assert reason not in user(*command, "--local").err
