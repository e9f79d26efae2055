"""The registry: versions of each detector's models, and which of them is champion at which stage."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tocsin.core.errors import ModelError, NotFound
from tocsin.core.stages import Stage
from tocsin.models.cards import Card, Promotion, read_card
from tocsin.models.files import hashes, locked, read_plain, replace_file, scratch, settle

__all__ = ["BUILTIN", "CARD", "Aliases", "Registry"]

BUILTIN = "builtin"
CARD = "card.json"
_ALIASES = "aliases.json"
_DETECTOR = re.compile(r"[a-z][a-z0-9_-]{0,63}", re.ASCII)
_VERSION = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
_MOST_CARD = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Aliases:
    """Which versions hold an office at one stage; `previous` are the champions before, the last one last."""

    champion: str | None = None
    challenger: str | None = None
    previous: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Registry:
    """The folder `models/`; `builtin` is a folder of shipped models, one a detector, never written to.

    A model answers for one stage (its card says which), so a detector has one champion a stage. Where `stage`
    is left out, the detector must have champions at one stage only.
    """

    folder: Path
    builtin: Path | None = None

    def detectors(self) -> list[str]:
        """All that have a model."""
        found = set()
        for folder in filter(None, (self.folder, self.builtin)):
            with _told(folder):
                if folder.is_dir():
                    found |= {path.name for path in folder.iterdir() if _DETECTOR.fullmatch(path.name)}
        return sorted(name for name in found if self.versions(name))

    def versions(self, detector: str) -> list[str]:
        """The oldest first; the shipped one before all."""
        home = self._home(detector)
        found: list[str] = []
        with _told(home):
            if home.is_dir():
                found = [p.name for p in home.iterdir() if _VERSION.fullmatch(p.name) and p.is_dir()]
        shipped = self.builtin is not None and (self.builtin / detector / CARD).exists()
        return [BUILTIN] * shipped + sorted(found, key=int)

    def add(self, detector: str, write: Callable[[Path], None], card: Card) -> str:
        """Keep a model as a new version: `write` fills an empty folder, which appears whole or not at all."""
        home = self._home(detector)
        if card.detector != detector:
            raise ModelError(f'the card is of the detector "{card.detector}", not of "{detector}"')
        with _told(home):
            home.mkdir(parents=True, exist_ok=True)
            with scratch(home) as folder:
                write(folder)
                files = hashes(folder)
                if not files or CARD in files:
                    what = f"its own {CARD}" if files else "no file"
                    raise ModelError(
                        f'the detector "{detector}" wrote {what}; it must write its model, and no card'
                    )
                with locked(home):
                    last = max((int(v) for v in self.versions(detector) if v != BUILTIN), default=0)
                    version = str(last + 1)
                    card = replace(card, version=version, files=files, promotions=())
                    (folder / CARD).write_bytes(card.render())
                    settle(folder, version)
        return version

    def card(self, detector: str, version: str) -> Card:
        """The card of a version, read strictly; the files beside it are not looked at."""
        folder = self._existing(detector, version)
        with _told(folder):
            card = read_card(read_plain(folder / CARD, most=_MOST_CARD), str(folder / CARD))
        if card.detector != detector or card.version != version:
            raise ModelError(
                f"{folder / CARD} is refused: it is the card of {card.detector} {card.version}, "
                f"not of {detector} {version}; was the folder renamed?"
            )
        return card

    def verify(self, detector: str, version: str) -> Card:
        """The card, after every file was compared with its hash; what differs is refused by name."""
        card = self.card(detector, version)
        folder = self._existing(detector, version)
        with _told(folder):
            found = hashes(folder)
        found.pop(CARD, None)  # it vouches for itself
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
        self, detector: str, version: str = "champion", *, stage: Stage | None = None
    ) -> tuple[Path, Card]:
        """Folder and card of a version or of `champion` or `challenger`, all hashes checked before any parsing."""
        version = self.resolve(detector, version, stage=stage)
        card = self.verify(detector, version)
        return self._existing(detector, version), card

    def resolve(self, detector: str, name: str, *, stage: Stage | None = None) -> str:
        """The version that a version or an alias names."""
        if name not in ("champion", "challenger"):
            self._existing(detector, name)
            return name
        stage = stage or self._only_stage(detector)
        found = self.champion(detector, stage) if name == "champion" else self.challenger(detector, stage)
        if found is None:
            raise NotFound(
                f'the detector "{detector}" has no {name} for {stage}; '
                f"see: tocsin models list; make one with: tocsin models promote {detector} VERSION"
            )
        return found

    def champion(self, detector: str, stage: Stage | None = None) -> str | None:
        """The version in service; the shipped one where none was ever promoted."""
        stage = stage or self._only_stage(detector)
        return self._office(detector, self.aliases(detector), stage).champion

    def challenger(self, detector: str, stage: Stage | None = None) -> str | None:
        stage = stage or self._only_stage(detector)
        return self.aliases(detector).get(stage, Aliases()).challenger

    def promote(self, detector: str, version: str, *, why: str = "by hand", at: int | None = None) -> None:
        """Make a sound version champion of its stage; the one before is remembered for a roll-back."""
        card = self.verify(detector, version)
        with self._changing(detector) as aliases:
            before = self._office(detector, aliases, card.stage)
            if before.champion == version:
                return
            aliases[card.stage] = Aliases(
                champion=version,
                challenger=None if before.challenger == version else before.challenger,
                previous=before.previous + ((before.champion,) if before.champion else ()),
            )
            self._write_aliases(detector, aliases)
            self._note(detector, version, before.champion, why, at)

    def challenge(self, detector: str, version: str | None, stage: Stage) -> None:
        """Let a sound version run beside the champion of this stage; None ends it."""
        if version is not None and (card := self.verify(detector, version)).stage is not stage:
            raise ModelError(f"{detector} {version} is a model for {card.stage}, not for {stage}")
        with self._changing(detector) as aliases:
            aliases[stage] = replace(aliases.get(stage, Aliases()), challenger=version)
            self._write_aliases(detector, aliases)

    def rollback(
        self, detector: str, stage: Stage | None = None, *, why: str = "roll-back", at: int | None = None
    ) -> str:
        """Give the office back to the champion before, which must still be sound; returned is its version."""
        stage = stage or self._only_stage(detector)
        with self._changing(detector) as aliases:
            now = aliases.get(stage, Aliases())
            if not now.previous:
                raise ModelError(
                    f'the detector "{detector}" had no other champion for {stage} before '
                    f"{now.champion or 'now'}; name one with: tocsin models promote {detector} VERSION"
                )
            version = now.previous[-1]
            self.verify(detector, version)
            aliases[stage] = replace(now, champion=version, previous=now.previous[:-1])
            self._write_aliases(detector, aliases)
            self._note(detector, version, now.champion, why, at)
            return version

    def aliases(self, detector: str) -> dict[Stage, Aliases]:
        """The offices of each stage as aliases.json tells them."""
        path = self._home(detector) / _ALIASES
        if not path.exists():
            return {}
        with _told(path):
            content = read_plain(path, most=_MOST_CARD)
        try:
            return {Stage(name): _aliases(offices) for name, offices in json.loads(content).items()}
        except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
            raise ModelError(
                f"{path} is not as tocsin writes it; remove it, and promote a version again with: "
                f"tocsin models promote {detector} VERSION"
            ) from None

    def _write_aliases(self, detector: str, aliases: Mapping[Stage, Aliases]) -> None:
        home = self._home(detector)
        document = {str(stage): asdict(aliases[stage]) for stage in Stage if stage in aliases}
        replace_file(home / _ALIASES, (json.dumps(document, indent=1) + "\n").encode(), beside=home)

    def _note(self, detector: str, version: str, before: str | None, why: str, at: int | None) -> None:
        """Write a promotion on the card, after the fact; the shipped card is never written to."""
        if version == BUILTIN:
            return
        promotion = Promotion(at=int(time.time()) if at is None else at, replaced=before, why=why)
        card = self.card(detector, version)
        card = replace(card, promotions=[*card.promotions, promotion])
        home = self._home(detector)
        replace_file(home / version / CARD, card.render(), beside=home)

    @contextmanager
    def _changing(self, detector: str) -> Iterator[dict[Stage, Aliases]]:
        """The aliases, while nobody else can change them."""
        home = self._home(detector)
        with _told(home):
            if self.versions(detector):
                home.mkdir(parents=True, exist_ok=True)
            else:
                raise NotFound(f'there is no model of the detector "{detector}" in {self.folder}')
            with locked(home):
                yield self.aliases(detector)

    def _office(self, detector: str, aliases: Mapping[Stage, Aliases], stage: Stage) -> Aliases:
        """The aliases of a stage; the shipped model is champion until another was."""
        office = aliases.get(stage, Aliases())
        if office.champion is None and BUILTIN in self.versions(detector):
            shipped = self.card(detector, BUILTIN)
            return replace(office, champion=BUILTIN) if shipped.stage is stage else office
        return office

    def _only_stage(self, detector: str) -> Stage:
        stages = [stage for stage, office in self.aliases(detector).items() if office.champion]
        if not stages and BUILTIN in self.versions(detector):
            stages = [self.card(detector, BUILTIN).stage]
        if len(stages) > 1:
            raise ModelError(
                f'"{detector}" has champions for {", ".join(stages)}; say which is meant (--stage)'
            )
        return stages[0] if stages else Stage.SUBMIT

    def _home(self, detector: str) -> Path:
        if not _DETECTOR.fullmatch(detector):
            raise ModelError(
                f'"{detector[:80]}" is no name of a detector; it has small letters, digits, - and _'
            )
        return self.folder / detector

    def _existing(self, detector: str, version: str) -> Path:
        folder = self._home(detector) / version
        if version == BUILTIN:
            folder = (self.builtin or self.folder) / detector
        elif not _VERSION.fullmatch(version):
            raise ModelError(
                f'"{version[:80]}" is no version of a model; versions are 1, 2, 3, … and {BUILTIN}'
            )
        if version not in (known := self.versions(detector)):
            there = f"there are {', '.join(known)}" if known else "there is none yet"
            raise NotFound(f'there is no version {version} of "{detector}" in {self.folder}; {there}')
        return folder


def _aliases(offices: Any) -> Aliases:
    offered = Aliases(**{**offices, "previous": tuple(offices["previous"])})
    names = [*filter(None, (offered.champion, offered.challenger)), *offered.previous]
    if len(offices) != 3 or not all(name == BUILTIN or _VERSION.fullmatch(name) for name in names):
        raise ValueError("no aliases")
    return offered


@contextmanager
def _told(place: Path) -> Iterator[None]:
    """What the system refuses is said as a sentence."""
    try:
        yield
    except OSError as error:
        raise ModelError(
            f"{error.filename or place} cannot be used ({error.strerror or error}); is it this user's folder, and is there room?"
        ) from None
