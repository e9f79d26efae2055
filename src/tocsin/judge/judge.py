"""The judge: detectors and rules that turn jobs into verdicts, with the facts that the store knows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from tocsin.core.actions import Mode
from tocsin.core.decision import Decision, Facts, FactsRequest, Screened
from tocsin.core.detector import Known
from tocsin.core.stages import Stage
from tocsin.core.verdict import Verdict
from tocsin.judge.actions import HOUR
from tocsin.judge.allow import AllowList
from tocsin.judge.answers import Answer, DetectorModels, assess_and_explain
from tocsin.judge.conclusion import conclude, facts_request, rows_at
from tocsin.judge.past_verdict import explain_past_verdict
from tocsin.judge.policy import NO_CASES, Policy

__all__ = ["Judge"]


@dataclass(slots=True)
class Judge:
    """Detectors and rules. It writes nothing: the caller stores the Decision as a whole."""

    detectors: Mapping[str, DetectorModels]
    policy: Policy = NO_CASES
    allow_list: Callable[[], AllowList] | None = None
    """The allow-list in force; None: permissions are not checked."""
    facts: Callable[[FactsRequest], Facts] = field(default=lambda _: Facts())
    """Reads what the store knows."""

    def decide(
        self,
        jobs: pl.DataFrame,
        stage: Stage,
        *,
        known: Known,
        at: int,
        seq: Sequence[int] | None = None,
        late: Sequence[bool] | None = None,
        known_until: Sequence[int] | None = None,
    ) -> Decision:
        """One verdict per job, in order, from what was known at the stage.

        `known_until`: up to when `known` had counted for each job; by default, up to the job's own moment.
        """
        answers = assess_and_explain(self.detectors, jobs, known, stage)
        return self.conclude(jobs, answers, stage, at=at, seq=seq, late=late, known_until=known_until)

    def conclude(
        self,
        jobs: pl.DataFrame,
        answers: Sequence[Sequence[Answer]],
        stage: Stage,
        *,
        at: int,
        seq: Sequence[int] | None = None,
        late: Sequence[bool] | None = None,
        known_until: Sequence[int] | None = None,
        other_screenings: Sequence[Screened] = (),
        open_cases: bool = True,
    ) -> Decision:
        """The decision on these jobs from answers and from what the store knows now.

        `other_screenings` are those of other jobs that are not stored yet. Without `open_cases`, it must not be stored.
        """
        request = facts_request(jobs, answers)
        if open_cases and request.cases and self.policy.actions.mode is not Mode.ADVISE:
            request = replace(request, actions_since=at - HOUR)
        facts = self.facts(request)
        return conclude(
            jobs,
            answers,
            stage=stage,
            at=at,
            seq=seq,
            late=late,
            known_until=known_until,
            facts=replace(facts, screened=[*other_screenings, *facts.screened])
            if other_screenings
            else facts,
            allowed=self.allow_list() if self.allow_list else None,
            policy=self.policy,
            open_cases=open_cases,
        )

    def explain(self, job: pl.DataFrame, stage: Stage, *, known: Known, at: int) -> Verdict:
        """The verdict on one job with contributions, similar jobs and advice. It opens no case.

        If the job already has a verdict, that one is explained, with what has changed since.
        """
        answers = assess_and_explain(self.detectors, job, known, stage, explain=True)
        facts = self.facts(facts_request(job, answers, verdicts=True))
        allowed = self.allow_list() if self.allow_list else None
        [today] = conclude(
            job,
            answers,
            stage=stage,
            at=at,
            facts=facts,
            allowed=allowed,
            policy=self.policy,
            open_cases=False,
        ).verdicts
        row = {**rows_at(job, stage)[0], "submit": at}
        rule_today = (lambda name: allowed.ruling(name, row).rule) if allowed else None
        return explain_past_verdict(today, facts.verdicts, facts.cases, rule_today)

    def preview(self, job: pl.DataFrame, stage: Stage, *, known: Known, at: int) -> Verdict:
        """The verdict that `decide` would give on a job without one; only alarms are explained. It opens no case."""
        answers = assess_and_explain(self.detectors, job, known, stage)
        [verdict] = self.conclude(job, answers, stage, at=at, open_cases=False).verdicts
        return verdict
