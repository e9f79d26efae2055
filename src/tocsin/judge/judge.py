"""The judge: the one place where detectors' parts are joined to a Verdict, levels set and cases considered."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import polars as pl

from tocsin import __version__
from tocsin.core.detector import Budget, Detector, Fitted, Known, Parts
from tocsin.core.errors import ModelError
from tocsin.core.fields import FIELDS
from tocsin.core.frames import SCHEMA, key_text
from tocsin.core.stages import Stage, reached_at
from tocsin.core.verdict import Advice, Finding, Level, Rogue, Verdict, severity, worst
from tocsin.judge.cases import CaseBook, Considered, Heard
from tocsin.judge.rogue import ROGUE, WITHOUT_CASE, Opinion, RogueBook, silenced
from tocsin.models.registry import Registry
from tocsin.store.cases import Status

__all__ = ["UNTRAINED", "Judge", "Model", "Seat", "as_known", "seats"]

UNTRAINED = "no model is trained for {stage} yet; see `tocsin train --help`"
_SINGLE = ("failure", "workload", "resources", "nodes")  # a verdict has one of each
_MOST_FAILURES = 100  # rows that a detector may fail on before the others of the frame are not tried


@dataclass(frozen=True, slots=True)
class Model:
    """A fitted detector and the version that verdicts name."""

    fitted: Fitted
    version: str


@dataclass(frozen=True, slots=True)
class Seat:
    """A detector as the judge hears it: a model for each stage, or the reason why there is none."""

    models: Mapping[Stage, Model] = field(default_factory=dict)
    missing: Mapping[Stage, str] = field(default_factory=dict)


def seats(
    detectors: Mapping[str, Detector], registry: Registry, past: Known, *, cluster: str | None = None
) -> dict[str, Seat]:
    """Every detector with its champions for the cluster; those that need no training are fitted at once."""
    nothing = pl.DataFrame(schema=SCHEMA)
    found = {}
    for name, detector in detectors.items():
        models: dict[Stage, Model] = {}
        missing: dict[Stage, str] = {}
        for stage in detector.stages:
            try:
                if not detector.learns:
                    fitted = detector.fit(nothing, past, stage=stage, seed=0, budget=Budget(trials=0))
                    models[stage] = Model(fitted, __version__)
                elif registry.champion(name, stage, cluster) is None:
                    missing[stage] = UNTRAINED.format(stage=stage)
                else:
                    folder, card = registry.open_verified(name, stage=stage, cluster=cluster)
                    models[stage] = Model(detector.load(folder), card.version)
            except ModelError as error:
                missing[stage] = str(error)
            except Exception as error:  # a plug-in may be wrong in any way; the others are still heard
                missing[stage] = _failure(error)
        found[name] = Seat(models, missing)
    return found


def as_known(jobs: pl.DataFrame, stage: Stage) -> pl.DataFrame:
    """The jobs with nothing in them that was not known at the stage, though it may be known by now."""
    return jobs.with_columns(
        pl.lit(None, dtype=SCHEMA[name]).alias(name)
        for name, known in FIELDS.items()
        if not stage.knows(known.stage)
    )


class Judge:
    """Hears every detector and says one thing of each job.

    Without a case book no cases are looked at, without a rogue book nobody asks whether a job may be what it is.
    """

    def __init__(
        self, detectors: Mapping[str, Seat], cases: CaseBook | None = None, rogues: RogueBook | None = None
    ) -> None:
        self.detectors = dict(detectors)
        self.cases = cases
        self.rogues = rogues

    def assess(
        self,
        jobs: pl.DataFrame,
        stage: Stage,
        *,
        past: Known,
        at: int,
        late: Sequence[bool] | bool = False,
        known_until: Sequence[int] | None = None,
    ) -> list[Verdict]:
        """One verdict a job, in order, from what was known at the stage; cases are opened as policy says.

        `known_until`: what the past had counted for each job; without it, all up to the job's own moment.
        """
        return self._judge(
            jobs,
            stage,
            at,
            [late] * jobs.height if isinstance(late, bool) else list(late),
            known_until,
            lambda fitted, known: fitted.assess(known, past, stage=stage),
            past.script,
            open_new=True,
        )

    def explain(self, job: pl.DataFrame, stage: Stage, *, past: Known, at: int) -> Verdict:
        """The verdict on one job with all evidence: contributions, similar jobs, advice. It opens no case."""
        return self._judge(
            job,
            stage,
            at,
            [False],
            None,
            lambda fitted, known: [fitted.explain(known, past, stage=stage)],
            past.script,
            open_new=False,
        )[0]

    def _judge(
        self,
        jobs: pl.DataFrame,
        stage: Stage,
        at: int,
        late: Sequence[bool],
        known_until: Sequence[int] | None,
        ask: Callable[[Fitted, pl.DataFrame], list[Parts]],
        script: Callable[[str], str | None],
        *,
        open_new: bool,
    ) -> list[Verdict]:
        if jobs.is_empty():
            return []
        known = as_known(jobs, stage)
        drafts = [_Draft() for _ in range(jobs.height)]
        for name, seat in self.detectors.items():
            if model := seat.models.get(stage):
                for draft, parts in zip(drafts, _answers(name, model.fitted, known, ask), strict=True):
                    draft.add(name, model.version, parts)
            elif reason := seat.missing.get(stage):
                for draft in drafts:
                    draft.missing[name] = reason
        rows = known.select(SCHEMA.names()).to_dicts()
        keys = jobs.select(key_text()).to_series().to_list()
        if self.rogues:
            workloads = [draft.parts.get("workload") for draft in drafts]
            opinions = self.rogues.consider(
                rows, workloads, keys, stage=stage, script=script, remember=open_new
            )
            for draft, opinion in zip(drafts, opinions, strict=True):
                draft.hear(opinion)
        if self.cases:
            heard = [
                Heard(row, draft.findings, draft.wrong(), draft.by_sign)
                for row, draft in zip(rows, drafts, strict=True)
            ]
            for draft, told in zip(drafts, self.cases.consider(heard, at=at, open_new=open_new), strict=True):
                draft.tell(told)
        findings = [sorted(draft.findings, key=_gravest) for draft in drafts]
        return [
            Verdict(
                job=keys[number],
                stage=stage,
                at=at,
                known_until=known_until[number] if known_until else _moment(rows[number], stage, at),
                level=draft.level(findings[number]),
                late=late[number],
                findings=findings[number],
                models=draft.models,
                missing=draft.missing,
                **draft.parts,
            )
            for number, draft in enumerate(drafts)
        ]


class _Draft:
    """A verdict while the detectors are heard."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.parts: dict[str, Any] = {"anomalies": [], "advice": []}
        self.models: dict[str, str] = {}
        self.missing: dict[str, str] = {}
        self.by_sign = False
        self._from: dict[str, str] = {}

    def add(self, name: str, version: str, parts: Parts | str) -> None:
        if isinstance(parts, str):
            self.missing[name] = parts
            return
        self.models[name] = version
        self.findings += parts.findings
        self.parts["anomalies"] += parts.anomalies
        self.parts["advice"] = _one_a_line([*self.parts["advice"], *parts.advice])
        self.missing |= parts.missing
        for part in _SINGLE:
            value = getattr(parts, part)
            if value is None:
                continue
            if part in self.parts:
                self.missing[f"{part} by {name}"] = f"{self._from[part]} has told it already"
            else:
                self.parts[part], self._from[part] = value, name

    def hear(self, opinion: Opinion) -> None:
        """Take in whether the job may be what it is."""
        self.findings = silenced(self.findings, opinion.permitted) + opinion.findings
        self.by_sign = opinion.by_sign
        if opinion.workload:
            self.parts["workload"] = opinion.workload
        if opinion.rogue:
            self.parts["rogue"] = opinion.rogue
        if opinion.missing:
            self.missing["allow-list"] = opinion.missing

    def wrong(self) -> Sequence[str]:
        """The operations that are against the rules."""
        rogue: Rogue | None = self.parts.get("rogue")
        return rogue.operations if rogue and rogue.rogue else ()

    def tell(self, told: Considered) -> None:
        """Take in what people said: a rogue job whose case was dismissed is none."""
        self.findings = told.findings
        for finding, case in zip(told.findings, told.cases, strict=True):
            if finding.kind == ROGUE and case is not None:
                rogue: Rogue = replace(self.parts["rogue"], case=str(case.id))
                if case.status is Status.DISMISSED:
                    rule = f"case {case.id} was dismissed; {WITHOUT_CASE}{rogue.rule}"
                    rogue = replace(rogue, rogue=False, action="none", rule=rule)
                    why = f"case {case.id} was dismissed"
                    self.findings = silenced(self.findings, dict.fromkeys(rogue.operations, why))
                self.parts["rogue"] = rogue

    def level(self, findings: Sequence[Finding]) -> Level:
        """Nothing found is fine; nothing found because nobody could look is not known."""
        if self.missing and not self.models:
            return worst([Level.UNKNOWN, *(finding.level for finding in findings)])
        return worst([finding.level for finding in findings])


def _answers(
    name: str, fitted: Fitted, jobs: pl.DataFrame, ask: Callable[[Fitted, pl.DataFrame], list[Parts]]
) -> list[Parts | str]:
    """The detector's parts for each job, or the sentence why it has none: a wrong one harms nobody else.

    A frame that it fails on is tried again by halves, so that one odd job does not silence it on all the others.
    """
    failures = 0

    def answers(part: pl.DataFrame) -> list[Parts | str]:
        nonlocal failures
        try:
            said = ask(fitted, part)
            if not isinstance(said, list) or len(said) != part.height:
                count = len(said) if isinstance(said, list) else "no"
                raise ValueError(f"{count} answers for {part.height} jobs")
            return [_sound(name, parts) for parts in said]
        except Exception as error:  # a plug-in may be wrong in any way
            half = part.height // 2
            if not half or failures >= _MOST_FAILURES:
                failures += 1
                return [_failure(error)] * part.height
            return answers(part.head(half)) + answers(part.slice(half))

    return answers(jobs)


def _sound(name: str, parts: Any) -> Parts | str:
    """The parts, if a verdict can hold them."""
    if not isinstance(parts, Parts):
        return f"its answer is no Parts but {type(parts).__name__}"
    if parts == _NOTHING:
        return parts
    for finding in parts.findings:
        if (
            not isinstance(finding, Finding)
            or finding.detector != name
            or not isinstance(finding.level, Level)
        ):
            return "one of its findings is none, bears another detector's name or has no level"
    try:
        json.dumps(asdict(parts), allow_nan=False)
    except (TypeError, ValueError) as error:
        return f"its answer cannot be written as JSON: {str(error)[:200]}"
    return parts


_NOTHING = Parts()


def _gravest(finding: Finding) -> int:
    return -severity(finding.level)


def _one_a_line(advice: list[Advice]) -> list[Advice]:
    """Of two changes of one line of the script, that whose effect is known: a person can make only one of them."""
    kept: dict[object, Advice] = {}
    for each in advice:
        place: object = each.edit.line if each.edit and each.edit.old is not None else id(each)
        if place not in kept or kept[place].risk_after is None:
            kept[place] = each
    return list(kept.values())


def _failure(error: Exception) -> str:
    return f"it failed: {type(error).__name__}: {str(error)[:300]}"


def _moment(row: dict[str, Any], stage: Stage, at: int) -> int:
    instant = reached_at(stage, row["submit"], row["start"], row["end"])
    return at if instant is None else min(instant, at)
