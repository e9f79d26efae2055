"""The registry: versions of each detector's models, and which of them is champion at which stage and cluster."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tocsin.core.errors import ModelError, NotFound
from tocsin.core.stages import Stage
from tocsin.models.aliases import (
    ALIASES,
    BUILTIN,
    VERSION,
    Aliases,
    Place,
    is_shipped,
    read_aliases,
    shipped_name,
    write_aliases,
)
from tocsin.models.cards import Card, Figure, Promotion, read_card
from tocsin.models.files import discard, hashes, locked, read_file, replace_file, scratch, settle

__all__ = ["CARD", "PREVIOUS", "Registry"]

CARD = "card.json"
_DETECTOR = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)
_MOST_CARD = 64 << 20
PREVIOUS = 10
"""Promotions that can be rolled back; earlier models may be removed."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The folder `models/`; `builtin` are read-only folders of shipped models: DETECTOR, or DETECTOR/STAGE for several.

    A model is for one stage (see its card). Each stage has one champion for all clusters, and a cluster may have its
    own. If `stage` is omitted, the detector must have champions at one stage only.
    """

    folder: Path
    builtin: tuple[Path, ...] = ()

    def detectors(self) -> list[str]:
        """The detectors that have a model."""
        found = set()
        for folder in (self.folder, *self.builtin):
            with _readable(folder):
                if folder.is_dir():
                    found |= {path.name for path in folder.iterdir() if _DETECTOR.fullmatch(path.name)}
        return sorted(name for name in found if self.versions(name))

    def versions(self, detector: str) -> list[str]:
        """Oldest first, shipped ones before all others."""
        home = self._home(detector)
        found: list[str] = []
        with _readable(home):
            if home.is_dir():
                found = [p.name for p in home.iterdir() if VERSION.fullmatch(p.name) and p.is_dir()]
        return [*self._shipped(detector), *sorted(found, key=int)]

    def add(
        self, detector: str, write: Callable[[Path], None], card: Card, *, unless_stored: bool = False
    ) -> str:
        """Store a model as a new version: `write` fills an empty folder, which appears completely or not at all.

        With `unless_stored`, a version with the same files that is not in use is returned instead: a training that was
        killed before it promoted its model, and is run again, continues with what it had stored.
        """
        home = self._home(detector)
        if card.detector != detector:
            raise ModelError(f'the card is for the detector "{card.detector}", not for "{detector}"')
        with _readable(home):
            home.mkdir(parents=True, exist_ok=True)
            with scratch(home) as folder:
                write(folder)
                files = hashes(folder)
                if not files or CARD in files:
                    what = f"its own {CARD}" if files else "no file"
                    raise ModelError(
                        f'the detector "{detector}" wrote {what}; it must write its model and no card'
                    )
                with locked(home):
                    if unless_stored and (known := self._stored(detector, card, files)):
                        return known
                    last = max((int(v) for v in self.versions(detector) if not is_shipped(v)), default=0)
                    version = str(last + 1)
                    card = replace(card, version=version, files=files, promotions=[])
                    (folder / CARD).write_bytes(card.render())
                    settle(folder, version)
        return version

    def _stored(self, detector: str, card: Card, files: Mapping[str, str]) -> str | None:
        """The newest version with these files, for the same stage and of the same parent, that no alias names."""
        named = self._named(detector)
        for version in reversed(self.versions(detector)):
            if is_shipped(version) or version in named:
                continue
            with suppress(ModelError):  # a damaged card cannot be continued from
                found = self.card(detector, version)
                if (found.files, found.stage, found.parent) == (files, card.stage, card.parent):
                    return version
        return None

    def _named(self, detector: str) -> set[str]:
        """The versions that are champion or challenger somewhere, or were champion before."""
        return {version for entry in self.aliases(detector).values() for version in entry.versions()}

    def remove(self, detector: str, version: str) -> None:
        """Delete a version, unless an alias names it or it is the shipped one."""
        with self._changing(detector):
            if not is_shipped(version) and version not in self._named(detector):
                discard(self._existing(detector, version))

    def prune(self, detector: str, which: Callable[[Card], bool], *, keep: int) -> list[str]:
        """Delete versions that no alias names, but for the `keep` newest of them; `which` chooses by the card."""
        with self._changing(detector):
            named = self._named(detector)
            chosen = []
            for version in self.versions(detector):
                with suppress(ModelError):  # damaged cards are left for a person
                    if (
                        not is_shipped(version)
                        and version not in named
                        and which(self.card(detector, version))
                    ):
                        chosen.append(version)
            gone = chosen[: max(0, len(chosen) - keep)]
            for version in gone:
                discard(self._existing(detector, version))
        return gone

    def add_figures(self, detector: str, version: str, figures: Sequence[Figure]) -> None:
        """Write more figures to the card of a version; those measured the same way before are replaced."""
        with self._changing(detector):
            card = self.card(detector, version)
            again = {(figure.name, figure.split, figure.data) for figure in figures}
            kept = [each for each in card.figures if (each.name, each.split, each.data) not in again]
            self._write_card(replace(card, figures=[*kept, *figures]))

    def card(self, detector: str, version: str) -> Card:
        """The card of a version; the files beside it are not read."""
        folder = self._existing(detector, version)
        with _readable(folder):
            card = read_card(read_file(folder / CARD, most=_MOST_CARD), str(folder / CARD))
        if card.detector != detector or card.version != version:
            raise ModelError(
                f"{folder / CARD} is refused: it is the card of {card.detector} {card.version}, "
                f"not of {detector} {version}; was the folder renamed?"
            )
        return card

    def verify(self, detector: str, version: str) -> Card:
        """The card, after every file was compared with its hash."""
        card = self.card(detector, version)
        folder = self._existing(detector, version)
        with _readable(folder):
            found = hashes(folder)
        found.pop(CARD, None)  # it has its own hash
        for name in sorted({*found, *card.files}):
            if name not in found:
                why = "is missing"
            elif name not in card.files:
                why = "is not on the card"
            elif found[name] != card.files[name]:
                why = "was changed after it was written"
            else:
                continue
            raise ModelError(
                f"{folder / name} {why}, so {detector} {version} is refused; restore it from a backup, "
                f"or use another version: tocsin models promote {detector} VERSION"
            )
        return card

    def open_verified(
        self,
        detector: str,
        version: str = "champion",
        *,
        stage: Stage | None = None,
        cluster: str | None = None,
    ) -> tuple[Path, Card]:
        """Folder and card of a version or of `champion` or `challenger`, all hashes checked before any parsing."""
        version = self.resolve(detector, version, stage=stage, cluster=cluster)
        card = self.verify(detector, version)
        return self._existing(detector, version), card

    def resolve(
        self, detector: str, name: str, *, stage: Stage | None = None, cluster: str | None = None
    ) -> str:
        """The version that a version number or an alias refers to."""
        if name not in ("champion", "challenger"):
            self._existing(detector, name)
            return name
        champion = name == "champion"
        stage = stage or (self.only_stage(detector) if champion else self._challenged(detector, cluster))
        found = (self.champion if champion else self.challenger)(detector, stage, cluster)
        if found is None:
            make = "promote" if champion else "challenge"
            raise NotFound(
                f'the detector "{detector}" has no {name} for {_words((stage, cluster))}; '
                f"see: tocsin models list; make one with: tocsin models {make} {detector} VERSION"
            )
        return found

    def champion(self, detector: str, stage: Stage | None = None, cluster: str | None = None) -> str | None:
        """The version in use: the cluster's own, else the one for all clusters, else the shipped one."""
        aliases = self.aliases(detector)
        stage = stage or self.only_stage(detector)
        own = aliases.get((stage, cluster), Aliases()).champion
        return own or self._for_all(detector, aliases, stage).champion

    def challenger(self, detector: str, stage: Stage | None = None, cluster: str | None = None) -> str | None:
        stage = stage or self.only_stage(detector)
        return self.aliases(detector).get((stage, cluster), Aliases()).challenger

    def promote(
        self,
        detector: str,
        version: str,
        *,
        cluster: str | None = None,
        why: str = "by hand",
        at: int | None = None,
        unless_held: bool = False,
        instead_of: str | None = None,
    ) -> bool:
        """Make a verified version champion of its stage, for one cluster or all; `rollback` undoes it.

        With `unless_held`, not after a manual rollback; with `instead_of`, only if that version is in use. Returns whether
        the version is champion now.
        """
        card = self.verify(detector, version)
        place = (card.stage, cluster)
        with self._changing(detector) as aliases:
            in_use = self.champion(detector, *place)
            before = (
                aliases.get(place, Aliases()) if cluster else self._for_all(detector, aliases, card.stage)
            )
            if before.champion == version:
                if before.held and not unless_held:
                    aliases[place] = replace(before, held=False)
                    write_aliases(self._home(detector), aliases)
                return True
            if (unless_held and before.held) or (instead_of is not None and in_use != instead_of):
                return False
            aliases[place] = Aliases(
                champion=version,
                challenger=None if before.challenger == version else before.challenger,
                previous=(before.previous + ((before.champion,) if before.champion else ()))[-PREVIOUS:],
            )
            self._note(detector, version, cluster, in_use, why, at)
            write_aliases(self._home(detector), aliases)
            return True

    def challenge(
        self, detector: str, version: str | None, stage: Stage, *, cluster: str | None = None
    ) -> None:
        """Let a verified version run beside the champion of this stage; None ends it."""
        if version is not None and (card := self.verify(detector, version)).stage is not stage:
            raise ModelError(f"{detector} {version} is a model for {card.stage}, not for {stage}")
        with self._changing(detector) as aliases:
            before = aliases.get((stage, cluster), Aliases())
            aliases[stage, cluster] = replace(before, challenger=version)
            write_aliases(self._home(detector), aliases)

    def rollback(
        self,
        detector: str,
        stage: Stage | None = None,
        *,
        cluster: str | None = None,
        to_none: bool = False,
        why: str = "roll-back",
        at: int | None = None,
    ) -> str | None:
        """Undo the last promotion, or all with `to_none`; returns the version now in use, if any.

        The previous champion must still pass verification. A cluster whose first champion is rolled back uses the one for
        all clusters again; if there is none, the shipped model, or none.
        """
        stage = stage or self.only_stage(detector)
        place = (stage, cluster)
        with self._changing(detector) as aliases:
            now = aliases.get(place, Aliases())
            if now.champion is None:
                raise ModelError(
                    f'no model of the detector "{detector}" was promoted for {_words(place)}, so there is nothing to '
                    f"roll back; name a version with: tocsin models promote {detector} VERSION"
                )
            previous = () if to_none else now.previous
            own = previous[-1] if previous else None
            aliases[place] = replace(now, champion=own, previous=previous[:-1], held=True)
            version = own or self._for_all(detector, aliases, stage).champion
            if version is not None:
                self.verify(detector, version)
            if version is not None:
                self._note(detector, version, cluster, now.champion, why, at)
            write_aliases(self._home(detector), aliases)
            return version

    def held(self, detector: str, stage: Stage) -> bool:
        """Whether a person rolled back the champion for all clusters of this stage and promoted none since."""
        return self.aliases(detector).get((stage, None), Aliases()).held

    def aliases(self, detector: str) -> dict[Place, Aliases]:
        """The aliases at each place, as in aliases.json."""
        home = self._home(detector)
        with _readable(home):
            return read_aliases(home)

    def _note(
        self, detector: str, version: str, cluster: str | None, before: str | None, why: str, at: int | None
    ) -> None:
        """Write a promotion to the card before it takes effect; the shipped card is never written to.

        A card newer than the aliases already has the note, from a process that was killed before it wrote them.
        """
        if is_shipped(version):
            return
        promotion = Promotion(
            at=int(time.time()) if at is None else at, cluster=cluster, replaced=before, why=why
        )
        card = self.card(detector, version)
        aliases = self._home(detector) / ALIASES
        known = card.promotions and replace(card.promotions[-1], at=promotion.at) == promotion
        written = (self._home(detector) / version / CARD).stat().st_mtime_ns
        if known and (not aliases.exists() or written > aliases.stat().st_mtime_ns):
            return
        self._write_card(replace(card, promotions=[*card.promotions, promotion]))

    def _write_card(self, card: Card) -> None:
        home = self._home(card.detector)
        replace_file(home / card.version / CARD, card.render(), beside=home)

    @contextmanager
    def _changing(self, detector: str) -> Iterator[dict[Place, Aliases]]:
        """The aliases, under a lock."""
        home = self._home(detector)
        with _readable(home):
            if self.versions(detector):
                home.mkdir(parents=True, exist_ok=True)
            else:
                raise NotFound(f'there is no model of the detector "{detector}" in {self.folder}')
            with locked(home):
                yield self.aliases(detector)

    def _for_all(self, detector: str, aliases: Mapping[Place, Aliases], stage: Stage) -> Aliases:
        """The aliases of a stage for all clusters; the shipped model is champion until another is promoted."""
        found = aliases.get((stage, None), Aliases())
        if found.champion is None:
            return replace(found, champion=self._shipped_for(detector, stage))
        return found

    def only_stage(self, detector: str) -> Stage:
        """The stage that is meant where none is named."""
        stages = {stage for (stage, _), entry in self.aliases(detector).items() if entry.champion}
        if not stages and BUILTIN in self._shipped(detector):
            stages = {self.card(detector, BUILTIN).stage}
        if len(stages) > 1:
            named = ", ".join(stage for stage in Stage if stage in stages)
            raise ModelError(f'"{detector}" has champions for {named}; name one with --stage')
        return stages.pop() if stages else Stage.SUBMIT

    def _challenged(self, detector: str, cluster: str | None) -> Stage:
        """The stage that is meant where a challenger is asked for and no stage is named."""
        aliases = self.aliases(detector)
        stages = [stage for stage in Stage if aliases.get((stage, cluster), Aliases()).challenger]
        if len(stages) > 1:
            raise ModelError(f'"{detector}" has challengers for {", ".join(stages)}; name one with --stage')
        if not stages:
            where = f" on {cluster}" if cluster else ""
            raise NotFound(
                f'the detector "{detector}" has no challenger{where}; see: tocsin models list; '
                f"make one with: tocsin models challenge {detector} VERSION"
            )
        return stages[0]

    def _shipped(self, detector: str) -> dict[str, Path]:
        """The shipped versions and their folders, by stage."""
        found = {}
        for root in self.builtin:
            folder = root / detector
            if (folder / CARD).exists():
                found[BUILTIN] = folder
            for stage in Stage:
                if (folder / stage / CARD).exists():
                    found[shipped_name(stage)] = folder / stage
        return found

    def _shipped_for(self, detector: str, stage: Stage) -> str | None:
        """The shipped version for this stage; its card is read only if the folder does not name the stage."""
        shipped, name = self._shipped(detector), shipped_name(stage)
        if name in shipped and shipped[name].name == stage:
            return name
        alone = BUILTIN in shipped and shipped[BUILTIN].name == detector
        return BUILTIN if alone and self.card(detector, BUILTIN).stage is stage else None

    def _home(self, detector: str) -> Path:
        if not _DETECTOR.fullmatch(detector):
            raise ModelError(
                f'"{detector[:80]}" cannot be the name of a detector; use lower-case letters, digits, - and _'
            )
        return self.folder / detector

    def _existing(self, detector: str, version: str) -> Path:
        folder = self._home(detector) / version
        if is_shipped(version):
            folder = self._shipped(detector).get(version, folder)
        elif not VERSION.fullmatch(version):
            raise ModelError(
                f'"{version[:80]}" is not a model version; versions are 1, 2, 3, … and {BUILTIN}'
            )
        if version not in (known := self.versions(detector)):
            trained = ", ".join(self.detectors()) or "none"
            there = f"the versions are {', '.join(known)}" if known else f"detectors with models: {trained}"
            raise NotFound(f'there is no version {version} of "{detector}" in {self.folder}; {there}')
        return folder


def _words(place: Place) -> str:
    """`submit`, or `submit on lab`."""
    stage, cluster = place
    return f"{stage} on {cluster}" if cluster else str(stage)


@contextmanager
def _readable(place: Path) -> Iterator[None]:
    """Errors of the operating system as ModelError."""
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"{error.filename or place} cannot be used ({error.strerror or error}); is it this user's folder, and is there room?"
        ) from None
