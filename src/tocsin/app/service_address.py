"""Where a service listens, and where other commands look for it."""

from pathlib import Path

from tocsin.app.app import App
from tocsin.store.home import SERVICE_HOME

__all__ = ["SYSTEM_SOCKET", "service_places", "socket_path"]

SYSTEM_SOCKET = Path("/run/tocsin/tocsin.sock")
_NAME = "tocsin.sock"


def socket_path(app: App) -> Path:
    """The socket of the service with this home: from the settings, the system's, or in the home folder."""
    if named := app.settings.service.socket:
        return Path(named)
    return SYSTEM_SOCKET if app.home.root == SERVICE_HOME else app.home.root / "run" / _NAME


def service_places(app: App) -> list[str]:
    """The addresses to try, in order: unix:PATH or a URL.

    If a home folder is named, no other service is asked unless it is named, too: the caller wants that home's data.
    """
    places = [f"unix:{socket_path(app)}"]
    if not app.folder and not app.environ.get("TOCSIN_HOME"):
        places.append(f"unix:{SYSTEM_SOCKET}")
    places += [app.environ.get("TOCSIN_SERVICE", ""), app.settings.service.url]
    return list(dict.fromkeys(place for place in places if place))
