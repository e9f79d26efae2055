"""The hooks in Slurm's Lua plug-ins: our library, and one line in the site's file that loads it."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from tocsin.core.errors import InputError
from tocsin.slurm.lua_syntax import check_lua

__all__ = [
    "HOOKS",
    "Change",
    "Hook",
    "apply_changes",
    "install",
    "installed_socket",
    "library",
    "uninstall",
    "with_line",
    "without_line",
]

_RETURN = re.compile(rb"return\b")
_NAME = re.compile(r"[^\"\\\n\r]+")
_SOCKET = re.compile(rb'^local SOCKET = "([^"\n]+)"', re.MULTILINE)
_TAG = "-- added by tocsin slurm install"


@dataclass(frozen=True, slots=True)
class Hook:
    name: str
    setting: str
    """The setting of slurm.conf that turns the plug-in on."""
    functions: tuple[str, ...]
    """What Slurm requires the site's file to define."""

    @property
    def file(self) -> str:
        return f"{self.name}.lua"

    @property
    def library(self) -> str:
        return f"tocsin_{self.name}.lua"

    def line(self, folder: Path) -> bytes:
        """Loads the library; a missing or broken one changes nothing."""
        path = str(folder / self.library)
        if not _NAME.fullmatch(path):
            raise InputError(f"the folder {path!r} has a name that Lua code cannot contain; use another")
        return f'pcall(dofile, "{path}") {_TAG}'.encode()

    def idle_file(self) -> bytes:
        """For a site without such a file: Slurm accepts it, and it does nothing."""
        stubs = "\n".join(f"function {name}() return slurm.SUCCESS end" for name in self.functions)
        return f"-- created by tocsin slurm install\n{stubs}\nreturn slurm.SUCCESS\n".encode()

    def new_file(self, folder: Path) -> bytes:
        """The same with our line: it must work without our library, too."""
        return with_line(self.idle_file(), self.line(folder))


HOOKS = {
    hook.name: hook
    for hook in (
        Hook("cli_filter", "CliFilterPlugins", ("slurm_cli_setup_defaults", "slurm_cli_pre_submit", "slurm_cli_post_submit")),
        Hook("job_submit", "JobSubmitPlugins", ("slurm_job_submit", "slurm_job_modify")),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after; None if there is none."""

    path: Path
    before: bytes | None
    after: bytes | None
    text: str
    """The change in words."""


def library(hook: Hook, values: Mapping[str, str | int]) -> bytes:
    """The library with its settings filled in."""
    text = (files("tocsin.slurm") / "lua" / hook.library).read_text("utf-8")
    for name, value in values.items():
        if isinstance(value, str) and not _NAME.fullmatch(value):
            raise InputError(
                f"{value!r} cannot be written into Lua code; use a path without quotes and backslashes"
            )
        text = text.replace(f"@{name}@", str(value))
    return text.encode()


def installed_socket(folder: Path) -> str | None:
    """The socket that the installed hook asks; None if it is not installed."""
    found = _SOCKET.search(_read(folder / HOOKS["cli_filter"].library) or b"")
    return found[1].decode() if found else None


def install(folder: Path, hooks: Sequence[Hook], values: Mapping[str, str | int]) -> list[Change]:
    """The changes to make in Slurm's folder; libraries first, because the lines need them. Every result is valid Lua."""
    changes = []
    for hook in hooks:
        path, text = folder / hook.library, library(hook, values)
        check_lua(str(path), text)
        if (found := _read(path)) != text:
            changes.append(
                Change(
                    path,
                    found,
                    text,
                    "write the tocsin library" if found is None else "update the tocsin library",
                )
            )
    for hook in hooks:
        # The target of a link is changed, and the link stays.
        path = Path(os.path.realpath(folder / hook.file))
        found, line = _read(path), hook.line(folder)
        if found is None:
            new = hook.new_file(folder)
            check_lua(str(path), new)
            changes.append(
                Change(
                    path,
                    None,
                    new,
                    "create it, with functions that do nothing and a line that loads the tocsin library",
                )
            )
        elif line not in found:
            new = with_line(found, line)
            check_lua(str(path), new, found)
            number = new[: new.index(line)].count(b"\n") + 1
            changes.append(Change(path, found, new, f"add line {number}: {line.decode()}"))
        elif any(change.path == folder / hook.library for change in changes):
            changes.append(
                Change(path, found, found, "touch it, so that Slurm loads the tocsin library again")
            )
    return changes


def uninstall(folder: Path, hooks: Sequence[Hook], enabled: Collection[Hook] = ()) -> list[Change]:
    """The changes that remove the hooks; later edits of a file are kept.

    Of the `enabled` plug-ins, a file that we created stays and does nothing: without one, sbatch fails, and slurmctld
    does not start.
    """
    changes, libraries = [], []
    for hook in hooks:
        path = Path(os.path.realpath(folder / hook.file))
        found, line = _read(path), hook.line(folder)
        if found is not None and found in (hook.idle_file(), hook.new_file(folder)):
            if hook not in enabled:
                changes.append(Change(path, found, None, "delete it: `tocsin slurm install` created it"))
            elif found != hook.idle_file():
                changes.append(
                    Change(path, found, hook.idle_file(), "keep only functions that do nothing, for now")
                )
        elif found is not None and line in found:
            new = without_line(found, line)
            check_lua(str(path), new, found)
            number = found[: found.index(line)].count(b"\n") + 1
            changes.append(Change(path, found, new, f"remove line {number}: {line.decode()}"))
        kept = folder / hook.library
        if (ours := _read(kept)) is not None:
            libraries.append(Change(kept, ours, None, "delete the tocsin library"))
    return changes + libraries


def with_line(text: bytes, line: bytes) -> bytes:
    """The file with the line after its functions: before a final `return`, else at the end."""
    lines = text.splitlines(keepends=True)
    last = len(lines)
    while last and (not lines[last - 1].strip() or lines[last - 1].startswith(b"--")):
        last -= 1
    if last and _RETURN.match(lines[last - 1]):
        return b"".join([*lines[: last - 1], line, b"\n", *lines[last - 1 :]])
    return text + (line + b"\n" if text.endswith(b"\n") or not text else b"\n" + line)


def without_line(text: bytes, line: bytes) -> bytes:
    """Undoes `with_line`, byte for byte."""
    return text.replace(line + b"\n", b"", 1) if line + b"\n" in text else text.replace(b"\n" + line, b"", 1)


def apply_changes(changes: Sequence[Change]) -> None:
    """Write the files atomically, with the owner and mode that they had."""
    for change in changes:
        if _read(change.path) != change.before:
            raise InputError(f"{change.path} was changed in the meantime; run the command again")
        try:
            _write(change)
        except OSError as error:
            raise InputError(
                f"{change.path} cannot be written ({error.strerror}); run this as the owner of Slurm's folder"
            ) from None


def _write(change: Change) -> None:
    path = change.path
    if change.after is None:
        path.unlink()
        return
    if change.after == change.before:
        os.utime(path)
        return
    partial = path.with_name(f".{path.name}.tocsin")
    partial.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
        mode = 0o644
        if change.before is not None:
            found = path.stat()
            mode = found.st_mode & 0o7777
            os.chown(partial, found.st_uid, found.st_gid)
        partial.chmod(mode)
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}); run this as the owner of Slurm's folder"
        ) from None
