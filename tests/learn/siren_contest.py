"""A contest without a detector behind it, and a run of it that ends by SIGKILL at a chosen step.

As a program (`python -m tests.learn.siren_contest FOLDER GAIN`): runs once without a kill, then once for each step with a
kill there and a run after it, and prints what differs from the run without a kill.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage
from tocsin.learn.comparison import Measure, Result, decide
from tocsin.learn.contest import Champion, Night, Trained
from tocsin.learn.journal import Journal
from tocsin.learn.nightly import Nightly, Outcome
from tocsin.models.cards import Card, Figure
from tocsin.models.drift import Drift
from tocsin.models.registry import Registry

SIREN = "siren"
NOW = 1_800_000_000
DAY = "2027-01-15"


@dataclass(frozen=True)
class SirenContest:
    """Its model is a number: the higher, the better."""

    gain: float = 0.1
    refusal: str | None = None
    missing: str | None = None
    stages: Sequence[Stage] = (Stage.SUBMIT,)
    figure: str = "loudness"
    higher_is_better: bool = True

    def prepare(self, champion: Champion, night: Night) -> "SirenMatch":
        if self.missing:
            raise ModelError(self.missing)
        return SirenMatch(self, champion, night)


@dataclass(frozen=True)
class LiveSirenContest(SirenContest):
    """Its challengers are also heard on live jobs."""

    live_gain: float = 0.1

    def live(self, champion: Champion, challenger: str, night: Night) -> Result:
        del champion, challenger, night
        noise = np.random.default_rng(1).normal(1, 0.05, 100)
        other = noise + np.random.default_rng(2).normal(self.live_gain, 0.05, 100)
        return decide(
            lambda weight: (
                float(np.average(noise, weights=weight)),
                float(np.average(other, weights=weight)),
            ),
            np.arange(100),
            figure="loudness",
            higher_is_better=True,
            held_back="100 live jobs",
        )


@dataclass(frozen=True)
class SirenMatch:
    contest: SirenContest
    champion: Champion
    night: Night
    held_back: str = "100 tests"

    def drift(self) -> list[Drift]:
        return [Drift(name="pitch", stability=0.3)]

    def retrain(self) -> Trained:
        loud = number(self.champion.folder) + self.contest.gain
        return Trained(
            lambda folder: save(folder, loud), card(window=self.night.now)
        )  # the registry's own fields are set by the run

    def refused(self, challenger: Path) -> str | None:
        assert number(challenger)
        return self.contest.refusal

    @property
    def blocks(self) -> NDArray[Any]:
        return np.arange(100)

    def compare(self, champion: Path, challenger: Path) -> Measure:
        noise = np.random.default_rng(1).normal(0, 0.05, 100)
        one, other = (number(folder) + noise for folder in (champion, challenger))
        return lambda weight: (
            float(np.average(one, weights=weight)),
            float(np.average(other, weights=weight)),
        )


def card(window: int = 0) -> Card:
    figure = Figure(
        name="loudness", value=1.0, low=None, high=None, stage=Stage.SUBMIT, split="by hand", data="tests"
    )
    return Card(
        detector=SIREN, stage=Stage.SUBMIT, engine="air", created=window, clusters=["lab"], figures=[figure]
    )


def number(folder: Path) -> float:
    return float(json.loads((folder / "siren.json").read_text()))


def save(folder: Path, loud: float) -> None:
    (folder / "siren.json").write_text(json.dumps(loud))


def prepared(folder: Path) -> Registry:
    """A champion, trained by hand."""
    registry = Registry(folder)
    registry.promote(SIREN, registry.add(SIREN, lambda to: save(to, 1.0), card()), at=1)
    return registry


def night(
    folder: Path,
    contest: SirenContest | None,
    *,
    now: int = NOW,
    day: str = DAY,
    every_days: int = 1,
    dry_run: bool = False,
    reached: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    run = Nightly(
        registry=Registry(folder),
        contests={SIREN: contest} if contest else {},
        journal=Journal(folder / "nightly.json"),
        night=Night(store=None, now=now, holdback_days=3),  # type: ignore[arg-type]  # it reads no store
        day=day,
        every_days=every_days,
        dry_run=dry_run,
        reached=reached,
    )
    return list(run.run(SIREN))


def state(folder: Path) -> dict[str, str]:
    """Every file but locks: aliases, versions, cards and the journal."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


def main(work: Path, gain: float) -> dict[str, Any]:
    """For each step where it was killed, the files that differ from those of a run that was not."""
    prepared(work / "base")
    steps: list[str] = []
    shutil.copytree(work / "base", work / "whole")
    night(work / "whole", SirenContest(gain), reached=steps.append)
    wanted, found = state(work / "whole"), {}
    for place, step in enumerate(steps):
        home = work / f"{place}-{step}"
        shutil.copytree(work / "base", home)
        assert killed(home, gain, place), step
        # an hour later, by other data: it goes on with what was known when it began
        night(home, SirenContest(gain), now=NOW + 3600)
        after = state(home)
        found[f"{place} {step}"] = sorted(
            name for name in {**wanted, **after} if wanted.get(name) != after.get(name)
        )
    return found


def killed(home: Path, gain: float, place: int) -> bool:
    """Whether the run died at this step."""
    child = os.fork()
    if not child:
        count = 0

        def reached(_: str) -> None:
            nonlocal count
            if count == place:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1

        night(home, SirenContest(gain), reached=reached)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), float(sys.argv[2]))))
