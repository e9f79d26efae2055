"""A real Slurm whose hooks are removed in the wrong order: no submission ever fails for it."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import unavailable
from tests.kits.slurm_hooks import TOCSIN
from tests.services import missing_plugin
from tests.services.daemons import await_true
from tests.services.slurm import SlurmLab

WINDOW = 15
LINES = "\nJobSubmitPlugins=lua\nCliFilterPlugins=cli_filter/lua\n"


@pytest.fixture
def set_conf(slurm: SlurmLab) -> Iterator[Callable[[str], None]]:
    """Append lines to slurm.conf and let Slurm read it."""
    if sentence := missing_plugin("job_submit_lua.so"):
        unavailable(sentence)
    conf = slurm.conf.read_text()

    def append(lines: str) -> None:
        slurm.conf.write_text(conf + lines)
        slurm.run("scontrol", "reconfigure")
        await_true("slurmctld has not read slurm.conf", lambda: _runs_lua(slurm) == bool(lines), 20)

    yield append
    append("")
    for path in slurm.conf.parent.glob("*.lua"):
        path.unlink()


def _runs_lua(slurm: SlurmLab) -> bool:
    lines = slurm.run("scontrol", "show", "config").stdout.splitlines()
    return any(line.startswith("JobSubmitPlugins") and "lua" in line for line in lines)


def test_jobs_are_accepted_whenever_the_hooks_are_removed_and_slurmctld_starts_again(
    slurm: SlurmLab, tmp_path: Path, set_conf: Callable[[str], None]
) -> None:
    def tocsin(*arguments: str) -> str:
        env = {**os.environ, **slurm.env, "TOCSIN_POLICY__SCREENING_SECONDS": str(WINDOW)}
        command = [*TOCSIN, "--home", str(tmp_path), "slurm", *arguments]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def accepted() -> None:
        slurm.run("scancel", str(slurm.sbatch("true", "--mem=50")))
        slurm.run("srun", "-n1", "--mem=50", "true", user="alice")

    def lua_files() -> list[str]:
        return sorted(path.name for path in slurm.conf.parent.glob("*.lua"))

    tocsin("install", "--yes")
    set_conf(LINES)
    accepted()
    removed = tocsin("uninstall", "--yes")
    assert f"{slurm.conf} line" in removed
    assert "CliFilterPlugins=cli_filter/lua; take lua out" in removed
    assert "JobSubmitPlugins=lua; take lua out" in removed
    assert lua_files() == ["cli_filter.lua", "job_submit.lua"]
    accepted()
    slurm.restart_slurmctld()
    accepted()
    set_conf("")
    assert tocsin("uninstall", "--yes") == ""
    assert lua_files() == []
    accepted()
    slurm.restart_slurmctld()
    accepted()
