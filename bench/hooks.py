"""What the hooks cost: the time of sbatch with and without them, while the service answers, is stopped, killed or hangs.

Every state is measured in turn, again and again, in one run on one machine, with standard error on a terminal. The service is
a stand-in that answers at once: what is measured is the hook. `bare` is Slurm's own Lua plug-in with functions that do
nothing: what a site pays that has a cli_filter.lua already. CPU time is that of the sbatch process, which other work on the
machine disturbs less.
"""

import json
import os
import pty
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tests.services.daemons import await_true
from tests.services.slurm import SlurmLab
from tests.slurm.stand_in import StandIn

from tocsin.slurm.heartbeat import heartbeat_file, write_heartbeat
from tocsin.slurm.hooks import HOOKS, apply_changes, install, uninstall

__all__ = ["run"]

TIMES = 96
BLOCKS = 16
WINDOW = 20
SCRIPT = "#!/bin/bash\n#SBATCH --mem=50\nsrun ./solver --input case.dat\n"


def run() -> dict[str, Any]:
    with SlurmLab(nodes=1) as slurm:
        folder = slurm.folder / "service"
        folder.mkdir()
        socket = folder / "tocsin.sock"
        script = slurm.folder / "home-alice" / "job.sh"
        script.write_text(SCRIPT)
        plain, bare, hooked = (_client(slurm, name) for name in ("plain", "bare", "hooked"))
        values: dict[str, str | int] = {
            "WINDOW": WINDOW,
            "SOCKET": str(socket),
            "HEARTBEAT": str(heartbeat_file(socket)),
        }
        apply_changes(install(hooked.parent, [HOOKS["cli_filter"]], values))
        stubs = "".join(
            f"function {name}() return slurm.SUCCESS end\n" for name in HOOKS["cli_filter"].functions
        )
        bare.with_name("cli_filter.lua").write_text(f"{stubs}return slurm.SUCCESS\n")
        for conf in (bare, hooked):
            conf.write_text(conf.read_text() + "\nCliFilterPlugins=cli_filter/lua\n")
        times: dict[str, list[tuple[float, float]]] = {}
        order = Random(1)
        for block in range(BLOCKS):
            with_window = block % 2 == 1
            _set_window(slurm, with_window, values)
            states = [
                *((name, hooked, *change) for name, change in _states(folder, socket).items()),
                ("window", plain, _nothing, _nothing),
                ("bare", bare, _nothing, _nothing),
            ]
            for _ in range(TIMES // (BLOCKS // 2)):
                if not with_window:
                    times.setdefault("none", []).append(_sbatch(slurm, plain))
                    continue
                order.shuffle(states)
                for name, conf, begin, end in states:
                    begin()
                    times.setdefault(name, []).append(_sbatch(slurm, conf))
                    end()
            slurm.run("scancel", "-u", "alice")
        _set_window(slurm, False, values)
    return {
        "submissions": {name: len(each) for name, each in times.items()},
        "load": [round(load, 1) for load in os.getloadavg()],
        **_compared("", {name: [wall for wall, _ in each] for name, each in times.items()}),
        **_compared("cpu_", {name: [cpu for _, cpu in each] for name, each in times.items()}),
    }


def _compared(prefix: str, times: dict[str, list[float]]) -> dict[str, Any]:
    medians = {name: statistics.median(each) for name, each in times.items()}
    return {
        f"{prefix}median_ms": {name: round(1000 * value, 2) for name, value in medians.items()},
        f"{prefix}over_none": {name: round(value / medians["none"], 3) for name, value in medians.items()},
        f"{prefix}over_bare": {name: round(value / medians["bare"], 3) for name, value in medians.items()},
    }


State = tuple[Callable[[], object], Callable[[], object]]


def _states(folder: Path, socket: Path) -> dict[str, State]:
    """How to bring the service into each state, and out of it."""
    beat = heartbeat_file(socket)
    running: list[StandIn | subprocess.Popen[bytes]] = []

    def serve() -> None:
        running.append(StandIn(folder).__enter__())

    def end() -> None:
        service = running.pop()
        assert isinstance(service, StandIn)
        service.__exit__()

    def stopped() -> None:
        socket.unlink(missing_ok=True)
        beat.unlink(missing_ok=True)

    def killed() -> None:
        """A process that was killed some time ago leaves its socket and its last heartbeat."""
        code = f"import socket,time; s=socket.socket(socket.AF_UNIX); s.bind({str(socket)!r}); s.listen(); print(1,flush=True); time.sleep(60)"
        socket.unlink(missing_ok=True)
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert process.stdout
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        write_heartbeat(beat, time.time() - 4)

    def hangs() -> None:
        serve()
        service = running[-1]
        assert isinstance(service, StandIn)
        service.stale(4)

    def hangs_since_now() -> None:
        serve()
        service = running[-1]
        assert isinstance(service, StandIn)
        service.hang()

    return {
        "stopped": (stopped, _nothing),
        "killed": (killed, _nothing),
        "hung": (hangs, end),
        "answering": (serve, end),
        "hung_less_than_3_s": (hangs_since_now, end),
    }


def _nothing() -> None:
    """There is nothing to bring about, or to clean up."""


def _client(slurm: SlurmLab, name: str) -> Path:
    """slurm.conf in a folder of its own: the plug-in of sbatch is a matter of the client."""
    folder = slurm.folder / f"etc-{name}"
    folder.mkdir()
    for file in slurm.conf.parent.iterdir():
        shutil.copy(file, folder)
    return folder / "slurm.conf"


def _set_window(slurm: SlurmLab, on: bool, values: dict[str, str | int]) -> None:
    """Turn the screening window in slurmctld on or off."""
    hook, folder = [HOOKS["job_submit"]], slurm.conf.parent
    text = slurm.conf.read_text().replace("\nJobSubmitPlugins=lua\n", "")
    if on:
        apply_changes(install(folder, hook, values))
        text += "\nJobSubmitPlugins=lua\n"
    slurm.conf.write_text(text)
    slurm.run("scontrol", "reconfigure")

    def is_set() -> bool:
        shown = slurm.run("scontrol", "show", "config").stdout
        line = next(line for line in shown.splitlines() if line.startswith("JobSubmitPlugins"))
        return line.endswith("lua") == on

    await_true("slurmctld did not take its new configuration", is_set, 30)
    if not on:
        apply_changes(uninstall(folder, hook))


def _sbatch(slurm: SlurmLab, conf: Path) -> tuple[float, float]:
    """Seconds of the clock and of CPU time."""
    master, slave = pty.openpty()
    environment = {**slurm.command_env, "SLURM_CONF": str(conf)}
    command = ["setpriv", "--reuid=alice", "--regid=alice", "--clear-groups", "sbatch", "-Q", "-H", "job.sh"]
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        cwd=slurm.folder / "home-alice",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=slave,
    )
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    os.close(slave)
    os.close(master)
    assert process.returncode == 0, "every job is submitted"
    return took, usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
