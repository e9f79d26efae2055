"""Where settings come from: the system's file, the user's, one named on the line, and the environment."""

import os
import time
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tocsin.core.errors import SettingsError
from tocsin.core.settings import Layer, Line, Settings, resolve

if TYPE_CHECKING:
    from tocsin.models.registry import Registry
    from tocsin.store.database import Store
    from tocsin.store.home import Home

__all__ = ["SYSTEM_FILE", "Context", "layers"]

SYSTEM_FILE = Path("/etc/tocsin/tocsin.toml")
_PREFIX = "TOCSIN_"
_NOT_SETTINGS = frozenset({"TOCSIN_HOME", "TOCSIN_DATA"})


@dataclass
class Context:
    """What a command is given: the settings, the home folder and the store, each made when first asked for."""

    config_file: str | None = None
    home: str | None = None
    debug: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    @cached_property
    def resolved(self) -> tuple[Settings, list[Line]]:
        return resolve(list(layers(self.environ, self.config_file)))

    @property
    def settings(self) -> Settings:
        return self.resolved[0]

    @cached_property
    def folder(self) -> "Home":
        from tocsin.store.home import Home

        return Home(Path(self.home).absolute()) if self.home else Home.default(self.environ)

    def store(self) -> "Store":
        """The open store; a context manager."""
        from tocsin.store.database import open_store

        secret = self.settings.store.password_file
        password = None
        if secret:
            from tocsin.sources.secrets import read_secret

            password = read_secret(Path(secret))
        url = self.settings.store.url
        return open_store(url or self.folder.prepare().url, password=password)

    def registry(self, *, write: bool = False) -> "Registry":
        """The models of the home folder, and those that came with tocsin; to `write`, the folder is made ready."""
        from tocsin import workload
        from tocsin.models.registry import Registry

        home = self.folder.prepare() if write else self.folder
        return Registry(home.models, builtin=Path(workload.__file__).parent / "builtin")


def layers(environ: Mapping[str, str], config_file: str | None) -> Iterator[Layer]:
    """From the weakest to the strongest."""
    yield from _file(SYSTEM_FILE)
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or "/", ".config")  # noqa: PTH118  # text in, text out
    yield from _file(Path(base) / "tocsin" / "tocsin.toml")
    if config_file:
        if not Path(config_file).is_file():
            raise SettingsError(f'there is no settings file "{config_file}"')
        yield from _file(Path(config_file))
    yield from _environment(environ)


def _file(path: Path) -> Iterator[Layer]:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the settings file {path} cannot be read: {error}") from error
    try:
        yield Layer(str(path), tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"the settings file {path} is not TOML: {error}") from error


def _environment(environ: Mapping[str, str]) -> Iterator[Layer]:
    """`TOCSIN_STORE__URL=…` is store.url, `TOCSIN_CLUSTER__lab__TIMEOUT=9` is cluster.lab.timeout."""
    for variable, text in environ.items():
        if not variable.startswith(_PREFIX) or variable in _NOT_SETTINGS:
            continue
        parts = variable[len(_PREFIX) :].split("__")
        if len(parts) < 2:
            continue
        # The name of a cluster keeps its case; section and key have one spelling.
        path = [parts[0].lower(), *parts[1:-1], parts[-1].lower()]
        values: Any = text
        for part in reversed(path):
            values = {part: values}
        yield Layer(f"${variable}", values)
