"""The checks that every detector must pass, ours and a site's own: `for check in CHECKS: check(detector)`.

A failing check raises AssertionError and says what failed, and where.
"""

import copy
import json
import random
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path

import polars as pl

from tocsin.core.detector import Detector, Fitted, Parts
from tocsin.core.fields import FIELDS, Part, fields_of
from tocsin.core.frames import SCHEMA, key_text
from tocsin.core.schema import verdict_schema
from tocsin.core.stages import Stage
from tocsin.core.verdict import Finding, Verdict, worst
from tocsin.history.replay import Replay
from tocsin.judge.check_data import (
    BUDGET,
    SEED,
    CheckData,
    demo_check_data,
    odd_values,
    other_value,
    scrambled,
    scrambled_windows,
)

__all__ = ["CHECKS", "FORMATS"]

FORMATS = frozenset({".json", ".txt", ".onnx", ".safetensors", ".parquet"})
"""File formats that a detector may save: loading one can never run code."""

_KIND = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_PROGRAMS = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05", b"PK\x03\x04", b"\x1f\x8b")
"""How pickles, zip and gzip files begin."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One check of a detector at one of its stages."""

    detector: Detector
    stage: Stage
    data: CheckData

    @property
    def where(self) -> str:
        return f"{self.detector.name} at {self.stage}"

    @property
    def fitted(self) -> Fitted:
        return self.data.fitted(self.detector, self.stage)

    @property
    def jobs(self) -> pl.DataFrame:
        return self.data.asked(self.stage)

    def answers(
        self, jobs: pl.DataFrame, *, fitted: Fitted | None = None, known: Replay | None = None
    ) -> list[str]:
        """Each answer as text, for comparison."""
        found = (fitted or self.fitted).assess(jobs, known or self.data.known(), stage=self.stage)
        assert len(found) == jobs.height, f"{self.where} gives {len(found)} answers for {jobs.height} jobs"
        return [self.document(parts, key) for parts, key in zip(found, _keys(jobs), strict=True)]

    def document(self, parts: Parts, key: str) -> str:
        verdict = Verdict(
            job=key,
            stage=self.stage,
            at=0,
            known_until=0,
            level=worst([finding.level for finding in parts.findings]),
            **{part.name: getattr(parts, part.name) for part in fields(parts)},
        )
        with _sentence(f"{self.where} gives an answer that is not JSON"):
            return json.dumps(verdict.to_json(), sort_keys=True, allow_nan=False)

    def compare(self, one: list[str], other: list[str], jobs: pl.DataFrame, what: str) -> None:
        for key, first, second in zip(_keys(jobs), one, other, strict=True):
            if first != second:
                place = next((n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
                shown = " and ".join(f"…{text[max(place - 40, 0) : place + 40]}…" for text in (first, second))
                raise AssertionError(f"{self.where}: the answer for job {key} {what} ({shown})")


def _at_every_stage(check: Callable[[_Run], None]) -> Callable[..., None]:
    @wraps(check)
    def checked(detector: Detector, data: CheckData | None = None) -> None:
        for stage in detector.stages:
            check(_Run(detector, stage, data or demo_check_data()))

    return checked


@_at_every_stage
def no_leak(run: _Run) -> None:
    """What became known after T cannot change an answer about a moment before T, through Known or the job itself."""
    data, stage = run.data, run.stage
    windows = None if data.windows is None else scrambled_windows(data.windows, data.cut)
    known = data.known(other := scrambled(data.log, data.cut), now=data.cut, windows=windows)
    jobs = data.asked(stage, until=data.cut)
    key = ["cluster", "job_id", "task", "submit"]
    same = jobs.select(key).join(other, on=key, nulls_equal=True, maintain_order="left")
    fitted = data.fit(run.detector, stage, known)
    after = run.answers(same.select(SCHEMA.names()), fitted=fitted, known=known)
    before = run.answers(jobs, known=data.known(now=data.cut))
    run.compare(before, after, jobs, "changed when later facts were scrambled: it leaks")


@_at_every_stage
def respects_stages(run: _Run) -> None:
    """A column that becomes known only after the stage has no effect."""
    jobs = run.jobs
    late = [name for name, entry in FIELDS.items() if not run.stage.knows(entry.stage)]
    other = jobs.with_columns(other_value(name, random.Random(name)) for name in late)  # noqa: S311  # no secret
    what = "changed with columns that are known only later"
    run.compare(run.answers(jobs), run.answers(other), jobs, what)


@_at_every_stage
def no_mutation(run: _Run) -> None:
    """Frames and machine are unchanged after fit, assess and explain."""
    data, stage = run.data, run.stage
    known, train, jobs = data.known(), data.ended(), run.jobs
    kept = [frame.clone() for frame in (train, jobs, data.log)]
    machine = copy.deepcopy(data.machine)
    fitted = run.detector.fit(train, known, stage=stage, seed=SEED, budget=BUDGET)
    fitted.assess(jobs, known, stage=stage)
    fitted.explain(jobs.head(1), known, stage=stage)
    for name, frame, was in zip(("training", "jobs", "log"), (train, jobs, data.log), kept, strict=True):
        assert frame.equals(was), f"{run.where} changed the frame of the {name} it was given"
    assert known.machine == machine, f"{run.where} changed the machine it was given"


@_at_every_stage
def missing_values(run: _Run) -> None:
    """Nulls wherever allowed, no rows, one row, an unknown user: one answer per row, and no error."""
    jobs = run.jobs
    free = [name for name in fields_of(*Part) if name not in ("cluster", "job_id", "submit")]
    frames = {
        "without optional values": jobs.with_columns(pl.lit(None, SCHEMA[name]).alias(name) for name in free),
        "without rows": jobs.head(0),
        "of one row": jobs.head(1),
        "of a user never seen": jobs.with_columns(user=pl.lit("nobody-yet"), account=pl.lit("none-yet")),
    }
    for words, frame in frames.items():
        with _sentence(f"{run.where} fails on a frame {words}"):
            run.answers(frame)
            if frame.height:
                run.fitted.explain(frame.head(1), run.data.known(), stage=run.stage)


@_at_every_stage
def any_request(run: _Run) -> None:
    """Whatever a user writes into a field of the request: an answer, and no error. A failure would hide the job."""
    with_script = pl.col("script").is_in(list(run.data.scripts))
    job, known = run.jobs.sort(with_script, descending=True).head(1), run.data.known()
    for name in fields_of(Part.REQUEST):
        if name == "script":  # a hash, which no user can choose
            continue
        odd = pl.concat(
            job.with_columns(pl.lit(value, SCHEMA[name]).alias(name)) for value in odd_values(name)
        )
        with _sentence(f"{run.where} fails on a job with an odd {name}"):
            run.answers(odd, known=known)


@_at_every_stage
def any_order(run: _Run) -> None:
    """Answers come in the order of the rows, and do not depend on it."""
    jobs = run.jobs
    backwards = run.answers(jobs.reverse())[::-1]
    run.compare(run.answers(jobs), backwards, jobs, "depends on the order of the rows")


@_at_every_stage
def one_by_one(run: _Run) -> None:
    """The answer on a job is the same alone and in a batch."""
    jobs, known = run.jobs, run.data.known()
    alone = [run.answers(jobs[row], known=known)[0] for row in range(jobs.height)]
    run.compare(run.answers(jobs, known=known), alone, jobs, "differs for one job alone and among others")


@_at_every_stage
def saved_is_same(run: _Run) -> None:
    """A saved and loaded model gives the same answers."""
    jobs = run.jobs
    with tempfile.TemporaryDirectory() as folder:
        run.fitted.save(Path(folder))
        loaded = run.answers(jobs, fitted=run.detector.load(Path(folder)))
    run.compare(run.answers(jobs), loaded, jobs, "differs after save and load")


@_at_every_stage
def safe_files(run: _Run) -> None:
    """Only formats whose loading can never run code."""
    for name, content in _files(run.fitted).items():
        where = f"{run.where} saves {name}"
        allowed = ", ".join(sorted(FORMATS))
        assert Path(name).suffix in FORMATS, f"{where}, which is none of {allowed}"
        assert not content.startswith(_PROGRAMS), (
            f"{where}, which is a pickle or an archive by its first bytes"
        )
        if name.endswith(".json"):
            with _sentence(f"{where}, which is not JSON"):
                json.loads(content)


@_at_every_stage
def deterministic(run: _Run) -> None:
    """The same seed gives the same model: the same answers, and identical files."""
    jobs, twice = run.jobs, [run.data.fit(run.detector, run.stage) for _ in range(2)]
    one, other, again = (run.answers(jobs, fitted=fitted) for fitted in (*twice, twice[0]))
    run.compare(one, other, jobs, "differs when fitted again with the same seed")
    run.compare(one, again, jobs, "differs when asked again")
    first, second = (_files(fitted) for fitted in twice)
    differ = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    assert not differ, f"{run.where} saves a different {differ[0]} when fitted again with the same seed"


@_at_every_stage
def valid_parts(run: _Run) -> None:
    """Findings have a level, a kind and a text, and documents match the schema of a verdict."""
    try:
        from jsonschema import (  # type: ignore[import-untyped]  # its types are a package of their own
            Draft202012Validator,
        )
    except ImportError:
        raise AssertionError("this check needs jsonschema; install it: pip install 'tocsin[dev]'") from None
    validator = Draft202012Validator(verdict_schema())
    jobs, known = run.jobs, run.data.known()
    answers = list(run.fitted.assess(jobs, known, stage=run.stage))
    answers.append(run.fitted.explain(jobs.head(1), known, stage=run.stage))
    keys = _keys(jobs)
    for key, parts in zip((*keys, keys[0]), answers, strict=True):
        where = f"{run.where} for job {key}"
        assert isinstance(parts, Parts), f"{where} answers {type(parts).__name__}, not Parts"
        for finding in parts.findings:
            _check_finding(finding, run.detector, where)
        for what, reason in parts.missing.items():
            assert _is_sentence(reason), f"{where} gives no reason why {what} is missing: {reason!r}"
        for advice in parts.advice:
            assert advice.change.strip(), f"{where} advises a change without naming it"
            assert _is_sentence(advice.why), f"{where} advises {advice.change} without a sentence why"
        for wrong in validator.iter_errors(json.loads(run.document(parts, key))):
            raise AssertionError(f"{where} breaks the schema at {wrong.json_path}: {wrong.message[:200]}")


CHECKS: Sequence[Callable[..., None]] = (
    no_leak,
    respects_stages,
    no_mutation,
    missing_values,
    any_request,
    any_order,
    one_by_one,
    saved_is_same,
    safe_files,
    deterministic,
    valid_parts,
)


def _check_finding(finding: Finding, detector: Detector, where: str) -> None:
    assert isinstance(finding, Finding), f"{where} has a finding that is {type(finding).__name__}"
    assert finding.detector == detector.name, f"{where} has a finding in the name of {finding.detector}"
    assert _KIND.fullmatch(finding.kind), (
        f"{where} has a finding of the kind {finding.kind!r}; use small_letters"
    )
    assert _is_sentence(finding.text), f"{where} has a finding without a sentence: {finding.text!r}"


def _is_sentence(text: object) -> bool:
    return isinstance(text, str) and text == text.strip() and len(text.split()) > 1 and "\n" not in text


def _keys(jobs: pl.DataFrame) -> list[str]:
    return jobs.select(key_text()).to_series().to_list()


def _files(fitted: Fitted) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fitted.save(folder)
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if not path.is_dir()
        }


@contextmanager
def _sentence(words: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{words} ({type(error).__name__}: {error})") from error
