"""Checks Lua files before Slurm sees them: slurmctld does not start with a broken one."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterator

from tocsin.core.errors import InputError

__all__ = ["check_lua"]

_VERSIONS = ("5.4", "5.3", "5.2", "5.1")
_SECONDS = 10

Check = Callable[[bytes], str | None]
"""The error in a text; None if it is valid."""


def check_lua(name: str, text: bytes, before: bytes | None = None) -> None:
    """Raise InputError if the text is not valid Lua; nothing in it is run.

    The first Lua on this host that accepts the file as it was `before` decides: sites write for different versions.
    """
    if text.startswith(b"\x1b"):
        raise InputError(f"{name} is compiled Lua, which cannot be checked; use its source")
    found = list(_checks())
    if not found:
        raise InputError(
            f"there is no Lua on this host to check {name} with; install it (Debian: lua5.4), or run this on the host "
            "of slurmctld"
        )
    fitting = [check for check in found if before is None or check(before) is None]
    if not fitting:
        raise InputError(f"{name} is not valid Lua as it is: {found[0](before or b'')}; correct it first")
    if problem := fitting[0](text):
        raise InputError(
            f"{name} would not be valid Lua: {problem}; it is left as it is. Add the line by hand, after its functions"
        )


def _checks() -> Iterator[Check]:
    for program in ("luac", *(f"luac{version}" for version in reversed(_VERSIONS))):
        if path := shutil.which(program):
            yield lambda text, path=path: _by_luac(path, text)  # type: ignore[misc]  # mypy knows no defaults of a lambda
    for version in reversed(_VERSIONS):
        for library in (f"liblua{version}.so.0", f"liblua.so.{version}", f"liblua-{version}.so"):
            try:
                lua = ctypes.CDLL(library)
            except OSError:
                continue
            yield lambda text, lua=lua: _by_library(lua, text)  # type: ignore[misc]
            break


def _by_luac(path: str, text: bytes) -> str | None:
    done = subprocess.run([path, "-p", "-"], input=text, capture_output=True, timeout=_SECONDS, check=False)
    return done.stderr.decode("utf-8", "replace").strip()[:300] or "unknown" if done.returncode else None


def _by_library(lua: ctypes.CDLL, text: bytes) -> str | None:
    """By the library that Slurm's own plug-ins load; the text is compiled, not run."""
    lua.luaL_newstate.restype = ctypes.c_void_p
    lua.lua_tolstring.restype = ctypes.c_char_p
    state = ctypes.c_void_p(lua.luaL_newstate())
    try:
        arguments = (state, text, ctypes.c_size_t(len(text)), b"file")
        if hasattr(lua, "luaL_loadbufferx"):
            status = lua.luaL_loadbufferx(*arguments, b"t")
        else:
            status = lua.luaL_loadbuffer(*arguments)
        if not status:
            return None
        message = lua.lua_tolstring(state, -1, None) or b"unknown"
        return str(message.decode("utf-8", "replace"))[:300]
    finally:
        lua.lua_close(state)
