"""Where settings come from: the system's file, the user's, one named on the command line, and the environment."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tocsin.core.errors import SettingsError
from tocsin.core.settings import Layer
from tocsin.core.toml import parse_toml

__all__ = ["SYSTEM_FILE", "layers"]

SYSTEM_FILE = Path("/etc/tocsin/tocsin.toml")
_LARGEST = 1 << 20
_PREFIX = "TOCSIN_"
_NOT_SETTINGS = frozenset({"TOCSIN_HOME", "TOCSIN_DATA", "TOCSIN_SERVICE"})


def layers(environ: Mapping[str, str], config_file: str | None) -> Iterator[Layer]:
    """From lowest to highest precedence."""
    files = list(_files(environ, config_file))
    yield from files
    yield from _environment(environ, files)


def _files(environ: Mapping[str, str], config_file: str | None) -> Iterator[Layer]:
    yield from _file(SYSTEM_FILE)
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or "/", ".config")  # noqa: PTH118  # text in, text out
    yield from _file(Path(base) / "tocsin" / "tocsin.toml")
    if config_file:
        if not Path(config_file).is_file():
            there = Path(config_file).exists()
            raise SettingsError(
                f'"{config_file}" is not a file; name a settings file'
                if there
                else f'the settings file "{config_file}" does not exist; check the path'
            )
        yield from _file(Path(config_file))


def _file(path: Path) -> Iterator[Layer]:
    try:
        with path.open("rb") as file:
            folder = path.absolute().parent.stat().st_mode
            own = os.fstat(file.fileno()).st_mode
            text = file.read(_LARGEST + 1).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the settings file {path} cannot be read: {error}") from error
    open_to_all = own & stat.S_IWOTH or (folder & stat.S_IWOTH and not folder & stat.S_ISVTX)
    if open_to_all:
        place = path if own & stat.S_IWOTH else path.parent
        raise SettingsError(
            f"everybody may change the settings file {path}, so it is not read; run: chmod o-w {place}"
        )
    try:
        yield Layer(str(path), parse_toml(text))
    except ValueError as error:
        raise SettingsError(f"the settings file {path} is not TOML: {error}") from error


def _environment(environ: Mapping[str, str], files: Sequence[Layer]) -> Iterator[Layer]:
    """`TOCSIN_STORE__URL=…` is store.url, `TOCSIN_CLUSTER__lab__TIMEOUT=9` is cluster.lab.timeout."""
    for variable, text in environ.items():
        if not variable.startswith(_PREFIX) or variable in _NOT_SETTINGS:
            continue
        parts = variable[len(_PREFIX) :].split("__")
        if len(parts) < 2:
            continue
        section, *names, key = parts
        section = section.lower()
        path = [section, *(_as_in(files, section, name) for name in names), key.lower()]
        values: Any = text
        for part in reversed(path):
            values = {part: values}
        yield Layer(f"${variable}", values)


def _as_in(files: Sequence[Layer], section: str, name: str) -> str:
    """A name as the files write it, since variables are often in upper case; else as it is given."""
    named = (
        each for layer in files if isinstance(known := layer.values.get(section), Mapping) for each in known
    )
    return next((each for each in named if each.lower() == name.lower()), name)
