"""How a run ends and what it uses, computed from its needs and its allocation."""

from dataclasses import replace
from random import Random

from tocsin.demo.jobs import Ending, Record
from tocsin.demo.machine import Host
from tocsin.demo.mistakes import Cause

__all__ = ["ending_of", "usage"]

GIB = 1024**3
MIB = 1024**2
STARTUP = 30  # seconds until a program allocates memory


def ending_of(record: Record, host: Host, rng: Random) -> Ending:
    """What ends this run first, unless the machine fails: its needs, limits, mistake or user."""
    request, need, application = record.request, record.need, record.submission.application
    done = Ending(need.seconds, "COMPLETED", Cause.NONE)
    if application.by_hand:
        done = Ending(need.seconds, "CANCELLED", Cause.CLOSED_BY_HAND, exit_signal=15, by_user=True)
    overtime = rng.randrange(1, 30)  # slurmctld checks time limits twice a minute
    endings = [done, Ending(request.time_limit + overtime, "TIMEOUT", Cause.TOO_LITTLE_TIME)]
    memory = host.node_type.share(request)[1]
    if need.memory > memory:
        at_once = application.memory.at_start
        share = max(0.0, (memory / need.memory - at_once) / (1 - at_once))
        seconds = max(rng.randrange(3, STARTUP), round(share * need.seconds))
        endings.append(Ending(seconds, "OUT_OF_MEMORY", Cause.TOO_LITTLE_MEMORY, exit_signal=125))
    mistake = record.submission.mistake
    if mistake:
        shown = rng.randint(*mistake.seconds) + round(rng.uniform(*mistake.share) * need.seconds)
        code = application.missing_exit if mistake.cause is Cause.MISSING_FILE else mistake.exit_code
        endings.append(
            Ending(shown, "CANCELLED", mistake.cause, exit_signal=15, by_user=True)
            if mistake.by_user
            else Ending(shown, "FAILED", mistake.cause, exit_code=code)
        )
    first = min(endings, key=lambda ending: ending.seconds)
    return replace(first, seconds=max(1, first.seconds))


def usage(record: Record, hosts: list[Host], elapsed: int, rng: Random) -> dict[str, int | float]:
    """The usage of the run after this many seconds."""
    request, need, application = record.request, record.need, record.submission.application
    cpus, memory, gpus = hosts[0].node_type.share(request)
    nodes, node_type = len(hosts), hosts[0].node_type
    progress = min(1.0, elapsed / need.seconds)
    warm = min(1.0, elapsed / STARTUP)

    busy = min(1.0, application.busy * rng.uniform(0.93, 1.03)) * request.cpus_per_node / cpus
    computed = round(elapsed * cpus * nodes * busy * (0.2 + 0.8 * warm))
    system = round(computed * rng.uniform(0.01, 0.06))

    growth = application.memory.at_start + (1 - application.memory.at_start) * progress
    peak = need.memory * growth * (0.02 + 0.98 * warm)
    if record.state == "OUT_OF_MEMORY":
        peak = memory * rng.uniform(0.96, 1.0)
    peak = min(peak, memory) * rng.uniform(0.94, 1.0)

    watts = node_type.idle_watts + (node_type.busy_watts - node_type.idle_watts) * busy
    power = nodes * (watts * cpus / node_type.cpus + gpus * node_type.gpu_watts * rng.uniform(0.5, 0.95))
    return {
        "elapsed": elapsed,
        "cpu_seconds": computed,
        "user_cpu_seconds": computed - system,
        "system_cpu_seconds": system,
        "max_memory": int(peak),
        "read_bytes": round(application.read * GIB * need.size * min(1.0, 4 * progress)),
        "written_bytes": round(application.write_rate * MIB * elapsed * rng.uniform(0.7, 1.2)),
        "energy": round(power * elapsed, 1),
        "steps": application.steps + (record.request.file is not None),
    }
