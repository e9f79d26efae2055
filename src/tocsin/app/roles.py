"""The role of a user according to the settings: by name, or by a unix group."""

import grp
import os
import pwd
import threading
import time
from collections.abc import Callable

from tocsin.core.settings import ServiceSettings

__all__ = ["ROLES", "RoleLists"]

ROLES = ("user", "operator", "admin")
"""Each includes those before it."""

_CACHED = 60.0  # seconds: a directory service may be slow
_MOST = 10_000


def unix_groups(user: str) -> frozenset[str]:
    """The names of a user's groups on this host, including the primary one; none for an unknown user."""
    try:
        ids = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except (KeyError, OSError):
        return frozenset()
    names = set()
    for gid in ids:
        try:
            names.add(grp.getgrgid(gid).gr_name)
        except (KeyError, OSError):  # a group without a name gives no role
            continue
    return frozenset(names)


class RoleLists:
    """The lists `service.operators` and `service.admins`; looks up each user's groups once a minute."""

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        groups_of: Callable[[str], frozenset[str]] = unix_groups,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lists = [
            ("admin", *_members(settings.admins)),
            ("operator", *_members(settings.operators)),
        ]
        self._groups_of, self._now = groups_of, now
        self._known: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def role(self, user: str) -> str:
        with self._lock:
            found = self._known.get(user)
        if found and found[0] > self._now():
            return found[1]
        role = self._look_up(user)
        with self._lock:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[user] = (self._now() + _CACHED, role)
        return role

    def role_of_uid(self, uid: int, user: str) -> str:
        """Root and the user that runs the service are administrators: they can change its store anyway."""
        return "admin" if uid in (0, os.geteuid()) else self.role(user)

    def _look_up(self, user: str) -> str:
        by_group = any(groups for _, _, groups in self._lists)
        mine = self._groups_of(user) if by_group else frozenset()
        return next((role for role, users, groups in self._lists if user in users or mine & groups), "user")


def _members(text: str) -> tuple[set[str], set[str]]:
    """The users and the groups of a list."""
    words = {word.strip() for word in text.split(",") if word.strip()}
    groups = {word for word in words if word.startswith("@")}
    return words - groups, {group.removeprefix("@") for group in groups}
