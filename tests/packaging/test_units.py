"""The systemd units start commands that exist, with no more rights than they need."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from tests.conftest import REPOSITORY, unavailable
from tests.services import SYSTEM_PATH, missing
from tocsin.agent.main import run as agent
from tocsin.cli.main import cli
from tocsin.store.home import SERVICE_HOME, SERVICE_USER

PACKAGING = REPOSITORY / "packaging"
UNITS = sorted((PACKAGING / "systemd").iterdir())
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]
MOST_EXPOSED = 20
"""In tenths, on the scale of `systemd-analyze security`: 0 is safe, 100 unsafe."""


def tool(name: str) -> str:
    if sentence := missing("systemd"):
        unavailable(sentence)
    return str(shutil.which(name, path=SYSTEM_PATH))


def settings(unit: Path, section: str) -> list[tuple[str, str]]:
    """Key and value of each line; a key may stand several times."""
    lines = unit.read_text().partition(f"[{section}]\n")[2].partition("\n[")[0].splitlines()
    return [
        (key, value)
        for key, found, value in (line.partition("=") for line in lines)
        if found and key[0] != "#"
    ]


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.stem)
def test_a_unit_starts_commands_that_exist(unit: Path) -> None:
    started = [
        shlex.split(value.removeprefix("-")) for key, value in settings(unit, "Service") if key == "ExecStart"
    ]
    assert started
    for program, *words in started:
        if program == "/usr/bin/tocsin-agent":
            with pytest.raises(SystemExit):
                agent(["--help"])
            continue
        assert program == "/opt/tocsin/bin/tocsin"
        command = cli.commands[words[0]]
        assert isinstance(command, click.Command)
        known = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("-")} <= known


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.stem)
def test_a_unit_runs_as_a_user_without_any_capability(unit: Path) -> None:
    given = dict(settings(unit, "Service"))
    assert given.get("User") == SERVICE_USER or given.get("DynamicUser") == "yes"
    assert given["CapabilityBoundingSet"] == ""
    assert given["NoNewPrivileges"] == "yes"


def test_expired_holds_are_released_by_a_timer_that_does_not_need_the_service() -> None:
    timer, service = (PACKAGING / "systemd" / f"tocsin-expire.{kind}" for kind in ("timer", "service"))
    assert ("OnCalendar", "minutely") in settings(timer, "Timer")
    assert "tocsin.service" not in " ".join(value for _, value in settings(service, "Unit"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_finds_no_fault_in_a_unit(unit: Path, tmp_path: Path) -> None:
    for other in UNITS:  # programs that are not installed here would be a fault
        text = (
            other.read_text()
            .replace("/opt/tocsin/bin/tocsin", "/bin/true")
            .replace("/usr/bin/tocsin-agent", "/bin/true")
        )
        (tmp_path / other.name).write_text(text)
    command = [
        tool("systemd-analyze"),
        "verify",
        "--man=no",
        "--recursive-errors=no",
        str(tmp_path / unit.name),
    ]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert [line for line in said.stderr.splitlines() if unit.stem in line] == []
    assert said.returncode == 0, said.stderr


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.stem)
def test_systemd_counts_a_unit_as_little_exposed(unit: Path) -> None:
    command = [
        tool("systemd-analyze"),
        "security",
        "--offline=yes",
        "--no-pager",
        f"--threshold={MOST_EXPOSED}",
        str(unit),
    ]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stdout + said.stderr


def test_the_user_and_the_folders_are_made_as_the_program_expects_them(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        unavailable("folders of another user are made by root only; run the tests as root")
    for name in ("sysusers", "tmpfiles"):
        (tmp_path / "etc").mkdir(exist_ok=True)
        file = PACKAGING / f"{name}.d" / "tocsin.conf"
        more = ["--create"] if name == "tmpfiles" else []
        command = [tool(f"systemd-{name}"), f"--root={tmp_path}", *more, str(file)]
        said = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert said.returncode == 0, said.stderr
    [entry] = [
        line.split(":") for line in (tmp_path / "etc/passwd").read_text().splitlines() if "tocsin" in line
    ]
    assert (entry[0], entry[5], entry[6]) == (SERVICE_USER, str(SERVICE_HOME), "/usr/sbin/nologin")
    home = tmp_path / SERVICE_HOME.relative_to("/")
    assert home.stat().st_mode & 0o777 == 0o750
    assert home.stat().st_uid == int(entry[2])
