"""The hooks in Slurm's plug-ins: what installing them changes, and their state."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.app.app import App
from tocsin.app.clusters import cluster_named
from tocsin.app.service_address import SYSTEM_SOCKET
from tocsin.core.errors import ClusterError, InputError, SettingsError
from tocsin.core.settings import ClusterSettings

if TYPE_CHECKING:
    from tocsin.slurm.hooks import Change, Hook
    from tocsin.slurm.start_delay import StartDelay

__all__ = [
    "HookRemoval",
    "HookRequest",
    "HookStatus",
    "apply_hooks",
    "beat_for_hooks",
    "hook_status",
    "plan_hooks",
    "plan_removal",
    "screening_delay",
]

CONF = Path("/etc/slurm/slurm.conf")
CLI_FILTER, JOB_SUBMIT = "cli_filter", "job_submit"
LONGEST_ADVICE = 10_000
"""Milliseconds: nobody waits longer for sbatch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRequest:
    hooks: tuple[str, ...] = ()
    """cli_filter, job_submit; empty: those that the settings ask for or, to show or remove, all."""
    folder: str | None = None
    """The folder of slurm.conf; None: as Slurm reports it."""
    socket: str | None = None
    """None: service.socket, else the one of the installed hook, else the system's."""


@dataclass(frozen=True, slots=True)
class HookStatus:
    hook: str
    installed: bool
    current: bool
    """Whether its library is the one that these settings would write."""
    enabled: bool | None
    """Whether slurm.conf turns the plug-in on; None: Slurm does not answer."""
    text: str
    fix: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            name: getattr(self, name) for name in ("hook", "installed", "current", "enabled", "text", "fix")
        }


@dataclass(frozen=True, slots=True)
class HookRemoval:
    changes: "list[Change]"
    next_steps: list[str]
    """What keeps files in place, and what to do about it."""


def plan_hooks(app: App, request: HookRequest) -> "list[Change]":
    """What installing the hooks would change; nothing is written."""
    from tocsin.slurm.hooks import HOOKS, install

    folder = _conf(app, request).parent
    wanted = request.hooks or (CLI_FILTER, *((JOB_SUBMIT,) if app.settings.policy.screening_seconds else ()))
    return install(folder, [HOOKS[name] for name in wanted], _values(app, request, folder))


def plan_removal(app: App, request: HookRequest) -> HookRemoval:
    """What removing the hooks would change; nothing is written.

    A plug-in is taken as enabled unless both slurm.conf and slurmctld deny it: a file too many harms nobody, and without
    a file that Slurm looks for no job can be submitted.
    """
    from tocsin.slurm.hooks import HOOKS, uninstall

    conf, config = _conf(app, request), _config(app)
    wanted = [HOOKS[name] for name in request.hooks or HOOKS]
    reasons = {hook: why for hook in wanted if (why := _why_enabled(hook, conf, config))}
    changes = uninstall(conf.parent, wanted, reasons)
    left = [hook for hook in reasons if _is_idle(hook, conf.parent, changes)]
    return HookRemoval(
        changes,
        [
            f"{conf.parent / hook.file} stays and does nothing, because Slurm fails without it: {reasons[hook]}, "
            f"and then again: tocsin slurm uninstall {hook.name} --yes"
            for hook in left
        ],
    )


def _why_enabled(hook: "Hook", conf: Path, config: dict[str, str] | None) -> str:
    """Why Slurm may look for the plug-in's file, and what to do about it; empty if it does not."""
    from tocsin.slurm.slurm_conf import lua_lines, names_lua

    try:
        lines = lua_lines(conf, hook.setting)
    except OSError as error:
        return f"{error.filename or conf} cannot be read ({error.strerror or error}); take lua out of {hook.setting} there, run: scontrol reconfigure"
    if lines:
        places = "; ".join(f"{line.path} line {line.number} is {line.text}" for line in lines)
        return f"{places}; take lua out of {hook.setting}, run: scontrol reconfigure"
    if config is None:
        return f"Slurm does not answer, so it may still run with lua in {hook.setting}; start slurmctld"
    if names_lua(config.get(hook.setting, "")):
        return f"slurmctld still runs with {hook.setting}={config[hook.setting]}; run: scontrol reconfigure"
    return ""


def _is_idle(hook: "Hook", folder: Path, changes: "Sequence[Change]") -> bool:
    """Whether the plug-in's file will be one that we created and that does nothing."""
    path = Path(os.path.realpath(folder / hook.file))
    after = {change.path: change.after for change in changes}
    return (
        after[path] if path in after else path.read_bytes() if path.is_file() else None
    ) == hook.idle_file()


def apply_hooks(changes: "Sequence[Change]") -> None:
    from tocsin.slurm.hooks import apply_changes

    apply_changes(changes)


def hook_status(app: App, request: HookRequest) -> list[HookStatus]:
    from tocsin.slurm.hooks import HOOKS

    config = _config(app)
    folder = _conf(app, request).parent
    wanted = [HOOKS[name] for name in request.hooks or HOOKS]
    return [_status(app, request, hook, folder, config) for hook in wanted]


def screening_delay(app: App, config: dict[str, str]) -> "tuple[int, StartDelay]":
    """The seconds of the screening window, and those after which slurmctld considers jobs again."""
    from tocsin.slurm.start_delay import start_delay

    return app.settings.policy.screening_seconds, start_delay(config)


def _status(
    app: App, request: HookRequest, hook: "Hook", folder: Path, config: dict[str, str] | None
) -> HookStatus:
    from tocsin.slurm.hooks import installed_socket, library
    from tocsin.slurm.slurm_conf import names_lua

    path = folder / hook.file
    line = path.is_file() and hook.line(folder) in path.read_bytes()
    kept = folder / hook.library
    current = kept.is_file() and kept.read_bytes() == library(hook, _values(app, request, folder))
    enabled = None if config is None else names_lua(config.get(hook.setting, ""))
    if not line or not kept.is_file():
        return HookStatus(
            hook.name, False, current, enabled, "not installed", f"tocsin slurm install {hook.name}"
        )
    asked, wanted = installed_socket(folder), _socket(app, request, folder)
    if hook.name == CLI_FILTER and asked and asked != wanted:
        origin = "--socket" if request.socket else "service.socket"
        text = f"installed for the socket {asked}, but {origin} is {wanted}"
        fix = f"tocsin slurm install {hook.name}" + (f" --socket {wanted}" if request.socket else "")
    elif not current:
        text, fix = "installed with other settings", f"tocsin slurm install {hook.name}"
    elif enabled is False:
        text, fix = f"installed, but {hook.setting} does not name lua", _enable(hook, config)
    else:
        text, fix = "installed" + ("" if enabled else "; Slurm does not answer"), ""
    if hook.name == JOB_SUBMIT and config is not None:
        window, delay = screening_delay(app, config)
        text += f"; screening window {window} s, so jobs start {window} to {window + delay.seconds} s after submission"
    if hook.name == CLI_FILTER:
        text += f"; {_service(asked or wanted)}"
    return HookStatus(hook.name, True, current, enabled, text, fix)


def beat_for_hooks(socket: str | Path) -> None:
    """Write the heartbeat that tells the hooks that the service on this socket answers; call it once a second."""
    from tocsin.slurm.heartbeat import heartbeat_file, write_heartbeat

    write_heartbeat(heartbeat_file(socket), time.time())


def _service(socket: str) -> str:
    from tocsin.slurm.heartbeat import heartbeat_file

    with suppress(OSError, ValueError):
        age = time.time() - int(heartbeat_file(socket).read_text("ascii"))
        late = "" if age <= 3 else ", so sbatch does not ask it"
        return f"the service at {socket} answered {age:.0f} s ago{late}"
    return f"no service answers at {socket} on this host, so sbatch does not ask it"


def _enable(hook: "Hook", config: dict[str, str] | None) -> str:
    present = (config or {}).get(hook.setting, "")
    others = "" if present in ("", "(null)") else f"{present},"
    name = "lua" if hook.name == JOB_SUBMIT else "cli_filter/lua"
    return f"set {hook.setting}={others}{name} in slurm.conf, then run: scontrol reconfigure"


def _socket(app: App, request: HookRequest, folder: Path) -> str:
    from tocsin.slurm.hooks import installed_socket

    socket = request.socket or app.settings.service.socket or installed_socket(folder) or str(SYSTEM_SOCKET)
    if not socket.startswith("/"):
        raise InputError(f'"{socket}" is not the path of a socket; write one such as {SYSTEM_SOCKET}')
    return socket


def _values(app: App, request: HookRequest, folder: Path) -> dict[str, str | int]:
    from tocsin.slurm.heartbeat import heartbeat_file

    socket = _socket(app, request, folder)
    deadline = app.settings.policy.advice_milliseconds
    if not 1 <= deadline <= LONGEST_ADVICE:  # curl takes 0 as no limit
        raise SettingsError(f"policy.advice_milliseconds is {deadline}; it must be 1 to {LONGEST_ADVICE}")
    return {
        "WINDOW": app.settings.policy.screening_seconds,
        "DEADLINE": f"{deadline / 1000:.3f}",
        "SOCKET": socket,
        "HEARTBEAT": str(heartbeat_file(socket)),
    }


def _conf(app: App, request: HookRequest) -> Path:
    """slurm.conf: Slurm looks for Lua files beside it."""
    if request.folder:
        conf = Path(request.folder).absolute() / CONF.name
    else:
        named = (_config(app) or {}).get("SLURM_CONF") or _cluster(app).slurm_conf
        conf = Path(named or os.environ.get("SLURM_CONF") or CONF)
    if not conf.parent.is_dir():
        raise InputError(
            f"the folder {conf.parent} does not exist; name the folder of slurm.conf with --folder"
        )
    return conf


def _cluster(app: App) -> ClusterSettings:
    return cluster_named(app, None)[1] if len(app.settings.cluster) < 2 else ClusterSettings()


def _config(app: App) -> dict[str, str] | None:
    """slurm.conf as slurmctld has it; None if it does not answer."""
    from tocsin.sources.commands import run, slurm_env
    from tocsin.sources.slurm_machine import read_config

    with suppress(ClusterError):
        text = run(["scontrol", "show", "config"], timeout=10, env=slurm_env(_cluster(app).slurm_conf))
        return dict(read_config(text.decode("utf-8", "replace")))
    return None
