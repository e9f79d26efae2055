"""The users of the demo: their habits, groups and applications, in tables."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

__all__ = ["DAY_WEIGHTS", "GROUPS", "HABITS", "HOUR_WEIGHTS", "USERS", "Habit", "User"]

Asks = Literal["estimate", "usual", "default", "everything"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """How a user requests resources, errs and retries. Margins are factors over the expected need, spreads log-normal sigmas."""

    asks: Asks
    """An estimate for this input; the usual amount; the partition's default; or everything."""
    memory_margin: float = 1.0
    memory_spread: float = 0.0
    time_margin: float = 1.0
    time_spread: float = 0.0
    mistakes: tuple[tuple[str, float], ...]
    """Share of sessions with each mistake."""
    comes_back: float
    """Probability of resubmitting a failed job."""
    mends: float
    """Probability that the next attempt is corrected."""
    attempts: int
    patience: float
    """Hours of waiting after which half of these users cancel."""
    requeue: float = 0.3
    """Share of sessions that allow a requeue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    name: str
    uid: int
    group: str
    habit: str
    runs: tuple[tuple[str, float, float], ...]
    """Applications with their weight and this user's usual input size."""
    sessions: float
    """Mean number of sessions on a working day."""
    hours: int = 0
    """Hours by which the day begins later than for others."""
    joins: int = 0
    """Days after the demo's start until the first session."""
    short_options: bool = False
    partition: str | None = None
    """Partition used instead of main."""


HABITS = MappingProxyType(
    {
        "careful": Habit(
            asks="estimate",
            memory_margin=1.7,
            memory_spread=0.15,
            time_margin=2.2,
            time_spread=0.2,
            mistakes=(("path", 0.02), ("module", 0.005), ("rubbish", 0.02), ("crash", 0.01)),
            comes_back=0.95,
            mends=0.97,
            attempts=4,
            patience=90,
            requeue=0.7,
        ),
        "sloppy": Habit(
            asks="usual",
            memory_margin=1.45,
            time_margin=1.8,
            mistakes=(("path", 0.05), ("option", 0.02), ("rubbish", 0.05), ("crash", 0.03)),
            comes_back=0.8,
            mends=0.6,
            attempts=4,
            patience=40,
        ),
        "new": Habit(
            asks="default",
            mistakes=(("path", 0.18), ("module", 0.1), ("option", 0.1), ("rubbish", 0.08)),
            comes_back=0.75,
            mends=0.5,
            attempts=5,
            patience=12,
            requeue=0.0,
        ),
        "stubborn": Habit(
            asks="usual",
            memory_margin=1.3,
            time_margin=1.5,
            mistakes=(("crash", 0.22), ("option", 0.08), ("path", 0.06)),
            comes_back=0.94,
            mends=0.04,
            attempts=12,
            patience=60,
        ),
        "greedy": Habit(
            asks="everything",
            mistakes=(("path", 0.03), ("rubbish", 0.03)),
            comes_back=0.8,
            mends=0.7,
            attempts=3,
            patience=60,
        ),
    }
)

GROUPS = MappingProxyType(
    {
        "chemistry": (3001, ("chem-md", "chem-teaching")),
        "materials": (3002, ("mat-oxides", "mat-glass")),
        "fluids": (3003, ("cfd-wind",)),
        "biology": (3004, ("bio-genomes",)),
        "climate": (3005, ("clim-ensembles",)),
        "learning": (3006, ("ml-vision", "ml-graphs")),
        "operations": (3007, ("ops",)),
    }
)
"""The ID of each group and the accounts it may charge, the usual one first."""

USERS = MappingProxyType(
    {
        user.name: user
        for user in (
            User(name="ada", uid=2001, group="chemistry", habit="careful", sessions=3.2, runs=(("mdrun", 3, 1.0), ("reduce", 1, 0.8))),
            User(name="hedy", uid=2002, group="chemistry", habit="sloppy", sessions=2.8, runs=(("mdrun", 2, 1.3), ("shell", 1, 1.0)), short_options=True),
            User(name="kurt", uid=2003, group="chemistry", habit="greedy", sessions=1.8, runs=(("lammps", 2, 0.7), ("reduce", 1, 0.6))),
            User(name="emmy", uid=2004, group="materials", habit="careful", sessions=3.6, runs=(("relax", 4, 1.0), ("shell", 1, 1.0))),
            User(name="linus", uid=2005, group="materials", habit="stubborn", sessions=2.4, runs=(("relax", 3, 0.9), ("lammps", 1, 1.0)), hours=3),
            User(name="niels", uid=2006, group="materials", habit="sloppy", sessions=3.0, runs=(("lammps", 3, 1.0), ("relax", 1, 0.8)), short_options=True),
            User(name="chen", uid=2007, group="materials", habit="careful", sessions=1.6, runs=(("lammps", 1, 0.25),), partition="spare"),
            User(name="grace", uid=2008, group="fluids", habit="careful", sessions=2.4, runs=(("foam", 3, 0.8), ("reduce", 1, 1.0))),
            User(name="osborne", uid=2009, group="fluids", habit="sloppy", sessions=1.8, runs=(("foam", 1, 0.6),), hours=1),
            User(name="rosa", uid=2010, group="biology", habit="careful", sessions=2.0, runs=(("assemble", 2, 1.0), ("reduce", 3, 1.2))),
            User(name="amal", uid=2011, group="biology", habit="sloppy", sessions=3.2, runs=(("reduce", 4, 1.0), ("assemble", 1, 0.8), ("notebook", 1, 1.0))),
            User(name="ida", uid=2012, group="biology", habit="new", sessions=4.0, runs=(("reduce", 3, 0.35), ("notebook", 1, 0.6)), joins=2),
            User(name="mary", uid=2013, group="climate", habit="careful", sessions=4.4, runs=(("sweep", 3, 1.0), ("reduce", 2, 1.0))),
            User(name="max", uid=2014, group="climate", habit="sloppy", sessions=3.6, runs=(("sweep", 3, 0.9), ("reduce", 1, 1.2)), short_options=True),
            User(name="lise", uid=2015, group="climate", habit="careful", sessions=2.8, runs=(("sweep", 2, 1.5), ("notebook", 1, 1.0)), hours=-1),
            User(name="alan", uid=2016, group="learning", habit="sloppy", sessions=3.6, runs=(("train", 3, 1.0), ("notebook", 1, 1.2)), hours=3),
            User(name="vera", uid=2017, group="learning", habit="careful", sessions=3.2, runs=(("train", 2, 1.0), ("reduce", 1, 1.0))),
            User(name="yuki", uid=2018, group="learning", habit="new", sessions=3.0, runs=(("train", 2, 0.15), ("sweep", 1, 0.6)), joins=8, hours=2),
            User(name="otto", uid=2019, group="operations", habit="careful", sessions=2.0, runs=(("bench", 3, 1.0), ("shell", 1, 1.0)), hours=-2),
            User(name="noor", uid=2020, group="materials", habit="sloppy", sessions=2.4, runs=(("sweep", 1, 1.1), ("lammps", 1, 0.9)), hours=2),
        )
    }
)  # fmt: skip  # one user per line

HOUR_WEIGHTS = (1, 1, 0.5, 0.5, 0.5, 0.5, 1, 2, 5, 8, 9, 8, 5, 7, 9, 9, 8, 7, 4, 3, 3, 3, 2, 2)
"""Relative number of submissions by hour of the day (UTC)."""
DAY_WEIGHTS = (1.0, 1.1, 1.1, 1.0, 0.9, 0.35, 0.3)
"""Relative number of submissions by weekday, Monday first."""
