"""The hooks in a real Slurm as an operator installs them, and sbatch as a user runs it at a terminal."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import unavailable
from tests.services import missing_plugin
from tests.services.daemons import await_true
from tests.services.slurm import SlurmLab

__all__ = ["SITE", "TOCSIN", "advised", "hooks_installed", "sbatch", "script"]

TOCSIN = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]
SITE = """-- the site's own rules
function slurm_job_submit(job, partitions, uid)
  if job.name == "refused" then
    slurm.log_user("the site refuses this name")
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

function slurm_job_modify(job, record, partitions, uid)
  return slurm.SUCCESS
end

return slurm.SUCCESS
"""


@contextmanager
def hooks_installed(
    slurm: SlurmLab, home: Path, socket: Path, *, window: int, advice_milliseconds: int = 150
) -> Iterator[Callable[..., str]]:
    """Both hooks beside a site's own file; restored to the byte at the end. Yields `tocsin slurm ...`."""
    if sentence := missing_plugin("job_submit_lua.so"):
        unavailable(sentence)
    site, conf = slurm.conf.with_name("job_submit.lua"), slurm.conf.read_text()
    site.write_text(SITE)

    def tocsin(*arguments: str) -> str:
        environment = {
            **os.environ,
            **slurm.env,
            "TOCSIN_POLICY__SCREENING_SECONDS": str(window),
            "TOCSIN_POLICY__ADVICE_MILLISECONDS": str(advice_milliseconds),
        }
        command = [*TOCSIN, "--home", str(home), "slurm", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    tocsin("install", "cli_filter", "job_submit", "--socket", str(socket), "--yes")
    slurm.conf.write_text(f"{conf}\nJobSubmitPlugins=lua\nCliFilterPlugins=cli_filter/lua\n")
    slurm.run("scontrol", "reconfigure")
    await_true("slurmctld has no lua", lambda: "= lua" in _config(slurm, "JobSubmitPlugins"), 20)
    try:
        yield tocsin
    finally:
        slurm.conf.write_text(conf)
        slurm.run("scontrol", "reconfigure")
        await_true("slurmctld still has lua", lambda: "= lua" not in _config(slurm, "JobSubmitPlugins"), 20)
        tocsin("uninstall", "--yes")
    assert site.read_text() == SITE
    site.unlink()
    assert not list(slurm.conf.parent.glob("*.lua"))


def _config(slurm: SlurmLab, name: str) -> str:
    return next(line for line in slurm.run("scontrol", "show", "config").stdout.splitlines() if name in line)


def sbatch(slurm: SlurmLab, *arguments: str, terminal: bool = True) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of sbatch as alice, whose standard error is a terminal or a pipe."""
    master, slave = pty.openpty()
    alice = ["setpriv", "--reuid=alice", "--regid=alice", "--clear-groups"]
    try:
        process = subprocess.Popen(
            [*alice, "sbatch", "--parsable", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=slave if terminal else subprocess.PIPE,
            cwd=slurm.folder / "home-alice",
            env=slurm.command_env,
            text=True,
        )
        out, err = process.communicate(timeout=30)
        if terminal:
            os.set_blocking(master, False)
            try:
                err = os.read(master, 65536).decode()
            except BlockingIOError:
                err = ""
    finally:
        os.close(slave)
        os.close(master)
    return process.returncode, out.strip(), err.replace("\r\n", "\n")


def advised(slurm: SlurmLab, *arguments: str) -> str:
    """What sbatch prints at a terminal. On a busy machine an answer may be late, and the job goes without: ask again."""
    for _ in range(20):
        code, job, words = sbatch(slurm, *arguments)
        assert (code, job.isdecimal()) == (0, True)
        slurm.run("scancel", job)
        if words:
            return words
    return ""


def script(slurm: SlurmLab, text: str, name: str = "job.sh") -> str:
    """The name of a file in alice's folder with this text."""
    path = slurm.folder / "home-alice" / name
    path.write_text(text)
    path.chmod(0o644)
    return name
