"""Who is asking, and what that person may see and do."""

from dataclasses import dataclass
from enum import IntEnum


class Role(IntEnum):
    """What a person may do; each role includes those below it."""

    USER = 1
    OPERATOR = 2
    ADMIN = 3


@dataclass(frozen=True, slots=True)
class Principal:
    """A person or program with a name and a role, and how it proved who it is."""

    user: str
    role: Role
    method: str

    @property
    def is_operator(self) -> bool:
        return self.role >= Role.OPERATOR

    def may_see(self, owner: str | None) -> bool:
        """Whether jobs of `owner` are shown: operators see all, users their own."""
        return self.is_operator or (owner is not None and owner == self.user)
