"""A nightly run: retrain each champion's successor, compare both on held-back data, and promote the better one.

Every step is in the journal before the next begins, and every step may be repeated, so the next run completes a killed
one and reaches the same state.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

from tocsin.core.errors import ModelError, NotFound
from tocsin.core.stages import Stage
from tocsin.learn.comparison import LEVEL, Result, decide, require_blocks
from tocsin.learn.contest import Champion, Contest, FreshContest, LiveContest, Match, Night
from tocsin.learn.journal import Entry, Journal, Step
from tocsin.models.aliases import Place, is_shipped
from tocsin.models.cards import Figure
from tocsin.models.drift import Drift
from tocsin.models.registry import Registry

__all__ = ["Nightly", "Outcome", "champions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome for one champion tonight."""

    detector: str
    stage: Stage
    cluster: str | None
    champion: str
    state: str
    """promoted, kept (the challenger runs beside the champion until the next contest), done (earlier today), skipped,
    failed, or planned (in a dry run)."""
    why: str
    challenger: str | None = None
    result: Result | None = None
    drift: list[Drift] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {
            "detector": self.detector,
            "stage": str(self.stage),
            "cluster": self.cluster,
            "champion": self.champion,
            "challenger": self.challenger,
            "state": self.state,
            "why": self.why,
            "result": self.result.to_json() if self.result else None,
            "drift": [each.to_json() for each in self.drift],
        }


def champions(registry: Registry, detector: str) -> Iterator[tuple[Place, str]]:
    """Where a trained version of the detector is in use, and which; without shipped ones."""
    aliases = registry.aliases(detector)
    for stage, cluster in sorted(aliases, key=lambda place: (place[0].order, place[1] or "")):
        version = aliases[stage, cluster].champion
        if version is not None and not is_shipped(version):
            yield (stage, cluster), version


@dataclass(frozen=True, slots=True, kw_only=True)
class Nightly:
    registry: Registry
    contests: Mapping[str, Contest]
    journal: Journal
    night: Night
    day: str
    every_days: int = 1
    """Days between two contests of the same model."""
    dry_run: bool = False
    notify: Callable[[str], None] = lambda _: None
    reached: Callable[[str], None] = lambda _: None
    """Called between any two effects, with a name for the point; tests kill the process there."""

    def run(self, detector: str, cluster: str | None = None) -> Iterator[Outcome]:
        """All champions of a detector, or those that learned from one cluster only."""
        for place, version in champions(self.registry, detector):
            if cluster in (None, place[1]) or self._learned_from(detector, version) == [cluster]:
                yield from self._outcomes(detector, place, version)
                if not self.dry_run:
                    self._remove_old(detector, place)

    def _remove_old(self, detector: str, place: Place) -> None:
        """Remove versions of earlier nights that lost, or that were in use long ago.

        The last night's are kept, and those that the registry names: the champion, the challenger, and the last champions
        before. Versions that a person trained are never removed.
        """
        entries = self.journal.of(detector, *place)
        for entry in entries[:-1]:
            if entry.challenger is None or entry.challenger == entries[-1].challenger:
                continue
            with suppress(ModelError, NotFound):  # already removed
                card = self.registry.card(detector, entry.challenger)
                if (card.created, card.parent) == (entry.now, entry.champion):
                    self.registry.remove(detector, entry.challenger)

    def _learned_from(self, detector: str, version: str) -> list[str]:
        with suppress(ModelError):  # a damaged card is reported when all clusters are processed
            return list(self.registry.card(detector, version).clusters)
        return []

    def _outcomes(self, detector: str, place: Place, version: str) -> Iterator[Outcome]:
        """The outcome of a killed run, and tonight's."""
        here = Outcome(
            detector=detector, stage=place[0], cluster=place[1], champion=version, state="skipped", why=""
        )
        try:
            contest = self._contest(detector, place[0])
            entry = self.journal.last(detector, *place)
            if entry and entry.step is not Step.DONE and not self.dry_run:
                entry = self._resume(entry, contest)
                yield _outcome(entry)
                here = replace(here, champion=self.registry.champion(detector, *place) or version)
            elif entry and entry.day == self.day:
                yield replace(_outcome(entry), state="done")
            if entry is not None and entry.day != self.day and (due := self._next_day(entry)) > self.day:
                yield self._not_due(here, contest, place, f"it was retrained on {entry.day}; next on {due}")
            elif entry is None or entry.day != self.day:
                if promoted := self._promoted_live(here, contest, place):
                    yield promoted
                    here = replace(here, champion=str(promoted.challenger))
                yield self._tonight(here, contest, place)
        except ModelError as error:
            yield replace(here, why=str(error))
        except Exception as error:  # a plug-in may fail in any way; the others still run
            yield replace(here, state="failed", why=f"it failed: {type(error).__name__}: {str(error)[:300]}")

    def _contest(self, detector: str, stage: Stage) -> Contest:
        contest = self.contests.get(detector)
        if contest is None:
            raise ModelError("the detector has no contest, so it is never retrained automatically")
        if stage not in contest.stages:
            raise ModelError(f"models for {stage} are trained by hand only")
        return contest

    def _next_day(self, entry: Entry) -> str:
        return (date.fromisoformat(entry.day) + timedelta(days=self.every_days)).isoformat()

    def _not_due(self, here: Outcome, contest: Contest, place: Place, why: str) -> Outcome:
        """Only measure drift."""
        drift: list[Drift] = []
        with suppress(ModelError):  # nothing to compare with yet
            champion = self._champion(here.detector, place, here.champion)
            drift = list(contest.prepare(champion, self.night).drift())
        return replace(here, why=why, drift=drift)

    def _promoted_live(self, here: Outcome, contest: Contest, place: Place) -> Outcome | None:
        """Promote the challenger that has run beside the champion, if it is no worse on live jobs.

        This is checked only when a contest is due: testing every night would sooner or later succeed by chance.
        """
        aliases = self.registry.aliases(here.detector)[place]
        if self.dry_run or aliases.held or aliases.challenger is None or not isinstance(contest, LiveContest):
            return None
        try:
            champion = self._champion(here.detector, place, here.champion)
            result = contest.live(champion, aliases.challenger, self.night)
        except ModelError:  # too few live jobs; tonight's contest replaces it
            return None
        why = f"on live jobs beside the champion, it was {result.why}"
        if not result.promotes or not self.registry.promote(
            here.detector,
            aliases.challenger,
            cluster=place[1],
            why=f"nightly: {why}",
            at=self.night.now,
            unless_held=True,
            instead_of=here.champion,
        ):
            return None
        self.reached("promoted live")
        return replace(here, state="promoted", challenger=aliases.challenger, why=why, result=result)

    def _tonight(self, here: Outcome, contest: Contest, place: Place) -> Outcome:
        if self.registry.aliases(here.detector)[place].held:
            raise ModelError(
                "it was rolled back by hand; nothing is retrained until a version is promoted by hand"
            )
        match = contest.prepare(self._champion(here.detector, place, here.champion), self.night)
        require_blocks(match.blocks, match.held_back)
        if self.dry_run:
            why = f"would be retrained and compared on {match.held_back}"
            return replace(here, state="planned", why=why, drift=list(match.drift()))
        entry = self.journal.write(
            Entry(
                detector=here.detector,
                stage=here.stage,
                cluster=here.cluster,
                champion=here.champion,
                day=self.day,
                now=self.night.now,
            )
        )
        self.reached("begun")
        return _outcome(self._finish(entry, contest, match))

    def _champion(self, detector: str, place: Place, version: str) -> Champion:
        folder, card = self.registry.open_verified(detector, version)
        return Champion(detector=detector, stage=place[0], cluster=place[1], folder=folder, card=card)

    def _resume(self, entry: Entry, contest: Contest) -> Entry:
        """Finish a killed run, from what was known when it began."""
        place = (entry.stage, entry.cluster)
        try:
            champion = self._champion(entry.detector, place, entry.champion)
            match = contest.prepare(champion, replace(self.night, now=entry.now))
        except ModelError as error:
            return self._give_up(entry, f"the run was killed and cannot be resumed: {error}")
        return self._finish(entry, contest, match)

    def _finish(self, entry: Entry, contest: Contest, match: Match) -> Entry:
        """Every remaining step of the entry."""
        try:
            if entry.step is Step.BEGUN:
                entry = self.journal.advance(entry, Step.RETRAINED, challenger=self._retrained(entry, match))
                self.reached("retrained")
            if entry.step is Step.RETRAINED:
                entry = self._contested(entry, contest, match)
                self.reached("contested")
        except ModelError as error:
            return self._give_up(entry, str(error))
        return self._settled(entry, match)

    def _retrained(self, entry: Entry, match: Match) -> str:
        """The version that this run stored before it was killed, or a new one."""
        for version in reversed(self.registry.versions(entry.detector)):
            if is_shipped(version):
                continue
            with suppress(ModelError):  # a damaged card is not from this run
                card = self.registry.card(entry.detector, version)
                if (card.created, card.parent, card.stage) == (entry.now, entry.champion, entry.stage):
                    return version
        where = f" on {entry.cluster}" if entry.cluster else ""
        self.notify(f"retraining {entry.detector} at {entry.stage}{where}; this may take minutes")
        trained = match.retrain()
        self.reached("trained")
        card = replace(trained.card, created=entry.now, parent=entry.champion)
        version = self.registry.add(entry.detector, trained.save, card, unless_stored=True)
        self.reached("stored")
        return version

    def _contested(self, entry: Entry, contest: Contest, match: Match) -> Entry:
        assert entry.challenger is not None, "it was retrained"
        self.registry.challenge(entry.detector, entry.challenger, entry.stage, cluster=entry.cluster)
        self.reached("challenging")
        champion, card = self.registry.open_verified(entry.detector, entry.champion)
        challenger, _ = self.registry.open_verified(entry.detector, entry.challenger)
        result = decide(
            match.compare(champion, challenger),
            match.blocks,
            figure=contest.figure,
            higher_is_better=contest.higher_is_better,
            held_back=match.held_back,
            confident=not (isinstance(contest, FreshContest) and contest.prefers_fresh),
        )
        then = [figure.value for figure in card.figures if figure.name == contest.figure]
        own = Drift(
            name=f"{contest.figure} of the champion", then=then[-1] if then else None, now=result.champion
        )
        self.registry.add_figures(entry.detector, entry.challenger, _figures(result, entry))
        self.reached("figures")
        drift = [own, *match.drift()]
        return self.journal.advance(entry, Step.CONTESTED, result=result, drift=drift)

    def _settled(self, entry: Entry, match: Match) -> Entry:
        """Promote the challenger, or leave it stored and not in use."""
        assert entry.challenger is not None, "it was contested"
        assert entry.result is not None, "it was contested"
        why = entry.result.why
        if not entry.result.promotes:
            return self._keep_as_challenger(entry, why)
        if refused := match.refused(self.registry.open_verified(entry.detector, entry.challenger)[0]):
            return self._give_up(entry, refused)
        promoted = self.registry.promote(
            entry.detector,
            entry.challenger,
            cluster=entry.cluster,
            why=f"nightly: {why}",
            at=entry.now,
            unless_held=True,
            instead_of=entry.champion,
        )
        self.reached("promoted")
        if not promoted:
            return self._give_up(entry, "another version was promoted, or it was rolled back, meanwhile")
        entry = self.journal.advance(entry, Step.DONE, promoted=True, why=why)
        self.reached("done")
        return entry

    def _keep_as_challenger(self, entry: Entry, why: str) -> Entry:
        """Let the challenger run beside the champion on live jobs, until the next contest or until a person ends it."""
        entry = self.journal.advance(entry, Step.DONE, promoted=False, why=why)
        self.reached("done")
        return entry

    def _give_up(self, entry: Entry, why: str) -> Entry:
        """Keep the champion; a stored challenger is not used."""
        place = (entry.stage, entry.cluster)
        aliases = self.registry.aliases(entry.detector).get(place)
        if aliases and aliases.challenger is not None and aliases.challenger == entry.challenger:
            self.registry.challenge(entry.detector, None, entry.stage, cluster=entry.cluster)
        self.reached("withdrawn")
        entry = self.journal.advance(entry, Step.DONE, promoted=False, why=why)
        self.reached("done")
        return entry


def _outcome(entry: Entry) -> Outcome:
    return Outcome(
        detector=entry.detector,
        stage=entry.stage,
        cluster=entry.cluster,
        champion=entry.champion,
        challenger=entry.challenger,
        state="promoted" if entry.promoted else "kept" if entry.challenger else "skipped",
        why=entry.why or "",
        result=entry.result,
        drift=list(entry.drift),
    )


def _figures(result: Result, entry: Entry) -> list[Figure]:
    """For the challenger's card: its figure in the contest, and its gain over the champion with the interval."""
    split = f"contest with {entry.champion} on {entry.day}, on held-back data"
    own = Figure(
        name=result.figure,
        value=result.challenger,
        low=None,
        high=None,
        stage=entry.stage,
        split=split,
        data=result.held_back,
        reason="its gain over the champion has an interval",
    )
    gain = replace(own, name=f"{result.figure}_gain", value=result.gain, low=result.low, high=result.high)
    return [own, replace(gain, reason=f"{LEVEL:.0%} interval of a paired bootstrap")]
