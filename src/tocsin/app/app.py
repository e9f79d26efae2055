"""The App: settings, home, store and models, each opened when first used."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self
from zoneinfo import ZoneInfo

from tocsin.app.settings import layers
from tocsin.core.errors import InputError
from tocsin.core.settings import Line, Settings, resolve

if TYPE_CHECKING:
    from tocsin.models.registry import Registry
    from tocsin.store.database import Store
    from tocsin.store.home import Home

__all__ = ["App"]

_OPENING = Lock()
"""Held while a store is opened. It is global because an App is pickled for child processes."""


def _ignore(*_: object) -> None:
    """The default listener of an App, which drops messages."""


@dataclass
class App:
    """What all commands share. Close it, or use it as a context manager: it may hold the store open."""

    config_file: str | None = None
    folder: str | None = None
    """The home folder, where it is not the default one."""
    environ: Mapping[str, str] = field(default_factory=dict)
    notify: Callable[[str], None] = _ignore
    """Receives messages for people: notes, and problems during the work."""
    progress: Callable[[str, int, int], None] = _ignore
    """Receives progress: what is being done, how much is done, and the total."""
    host_cluster: tuple[float, str] = field(default=(0.0, ""), init=False, repr=False)
    """Until when the name of this host's cluster is not asked for again, and the name (`app.clusters`)."""
    _store: "Store | None" = field(default=None, init=False, repr=False)

    @cached_property
    def resolved(self) -> tuple[Settings, list[Line]]:
        return resolve(list(layers(self.environ, self.config_file)))

    @property
    def settings(self) -> Settings:
        return self.resolved[0]

    @cached_property
    def home(self) -> "Home":
        from tocsin.store.home import Home

        return Home(Path(self.folder).absolute()) if self.folder else Home.default(self.environ)

    @property
    def store(self) -> "Store":
        """Opened once, even if several threads ask for it at the same time."""
        with _OPENING:
            if self._store is None:
                self._store = self._open_store()
            return self._store

    def _open_store(self) -> "Store":
        from tocsin.store.database import open_store

        secret = self.settings.store.password_file
        password = None
        if secret:
            from tocsin.sources.secrets import read_secret

            password = read_secret(Path(secret))
        return open_store(self.settings.store.url or self.home.prepare().url, password=password)

    @cached_property
    def registry(self) -> "Registry":
        """The models in the home folder, and those shipped with tocsin."""
        from tocsin.models.registry import Registry

        shipped = tuple(Path(__file__).parents[1] / room / "builtin" for room in ("workload", "failure"))
        return Registry(self.home.models, builtin=shipped)

    def zone(self, cluster: str | None = None, name: str | None = None) -> ZoneInfo:
        """The time zone with this name, else the cluster's, else this host's."""
        settings = self.settings.cluster.get(cluster or "")
        name = name or (settings.timezone if settings else "")
        try:
            return ZoneInfo(name) if name else self._host_zone()
        except (KeyError, ValueError, OSError):
            raise InputError(f'"{name}" is not a time zone; write one such as Europe/Rome or UTC') from None

    def _host_zone(self) -> ZoneInfo:
        """From TZ or the link /etc/localtime, with its history of daylight saving; else UTC."""
        link = str(Path("/etc/localtime").resolve()).partition("/zoneinfo/")[2]
        for name in (self.environ.get("TZ", "").lstrip(":"), link):
            try:
                return ZoneInfo(name)
            except (KeyError, ValueError, OSError):
                continue
        return ZoneInfo("UTC")

    def close(self) -> None:
        with _OPENING:
            if self._store is not None:
                self._store.close()
            self._store = None
        if "home" in self.__dict__:
            self.home.give_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
