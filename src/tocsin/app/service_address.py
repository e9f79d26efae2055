"""Where a service listens, and where other commands look for it."""

from pathlib import Path

from tocsin.app.app import App
from tocsin.store.home import SERVICE_HOME, user_name

__all__ = ["SYSTEM_SOCKET", "is_own_data", "note_own_data", "service_places", "socket_path"]

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


def is_own_data(app: App) -> bool:
    """Whether this user has data of their own on a host where a service with other data is installed."""
    named = app.folder or app.environ.get("TOCSIN_HOME") or app.settings.store.url
    return not named and app.home.root != SERVICE_HOME and SYSTEM_SOCKET.parent.is_dir()


def note_own_data(app: App) -> None:
    """Say so, for commands that never ask the service."""
    if is_own_data(app):
        owner = user_name(SYSTEM_SOCKET.parent.stat().st_uid)
        app.notify(
            f"note: this is your own data in {app.home.root}; for the service's, run the command as user {owner}, or open "
            "its pages with `tocsin login`"
        )
