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
from pathlib import Path

import polars as pl

from tocsin.core.detector import Detector, Fitted, Parts
from tocsin.core.fields import FIELDS, Part, fields_of
from tocsin.core.frames import SCHEMA, key_text
from tocsin.core.schema import verdict_schema
from tocsin.core.stages import Stage
from tocsin.core.verdict import Finding, Verdict, worst
from tocsin.history.replay import Replay
from tocsin.judge.check_data import BUDGET, SEED, CheckData, demo_check_data, other_value, scrambled

__all__ = ["CHECKS", "FORMATS"]

FORMATS = frozenset({".json", ".txt", ".onnx", ".safetensors", ".parquet"})
"""Files that a detector may save: loading one can never run code."""

_KIND = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_PROGRAMS = (
    b"\x80\x02",
    b"\x80\x03",
    b"\x80\x04",
    b"\x80\x05",
    b"PK\x03\x04",
    b"\x1f\x8b",
)  # pickles, zip, gzip


def no_leak(detector: Detector, data: CheckData | None = None) -> None:
    """What became known after T cannot move an answer about a moment before it, through the known or the job itself."""
    data = data or demo_check_data()
    other = scrambled(data.log, data.cut)
    for stage in detector.stages:
        jobs = data.asked(stage, until=data.cut)
        same = (
            jobs.select("cluster", "job_id", "task", "submit")
            .join(other, on=["cluster", "job_id", "task", "submit"], nulls_equal=True, maintain_order="left")
            .select(SCHEMA.names())
        )
        before = _assess(data.fitted(detector, stage), jobs, data.known(), stage, detector)
        after = _assess(
            data.fit(detector, stage, data.known(other)), same, data.known(other), stage, detector
        )
        _same(
            before,
            after,
            jobs,
            detector,
            stage,
            "changed when later facts were scrambled: it leaks",
        )


def respects_stages(detector: Detector, data: CheckData | None = None) -> None:
    """A column that becomes known only after the stage has no effect."""
    data = data or demo_check_data()
    for stage in detector.stages:
        fitted, jobs = data.fitted(detector, stage), data.asked(stage)
        late = [name for name, entry in FIELDS.items() if not stage.knows(entry.stage)]
        other = jobs.with_columns(other_value(name, random.Random(name)) for name in late)  # noqa: S311  # no secret
        answers = [_assess(fitted, frame, data.known(), stage, detector) for frame in (jobs, other)]
        _same(answers[0], answers[1], jobs, detector, stage, "changed with columns that are known only later")


def no_mutation(detector: Detector, data: CheckData | None = None) -> None:
    """Frames and machine are as they were, after fit, assess and explain."""
    data = data or demo_check_data()
    for stage in detector.stages:
        known, train, jobs = data.known(), data.ended(), data.asked(stage)
        kept = [frame.clone() for frame in (train, jobs, data.log)]
        machine = copy.deepcopy(data.machine)
        fitted = detector.fit(train, known, stage=stage, seed=SEED, budget=BUDGET)
        fitted.assess(jobs, known, stage=stage)
        fitted.explain(jobs.head(1), known, stage=stage)
        for name, frame, was in zip(("training", "jobs", "log"), (train, jobs, data.log), kept, strict=True):
            assert frame.equals(was), (
                f"{detector.name} at {stage} changed the frame of the {name} it was given"
            )
        assert known.machine == machine, f"{detector.name} at {stage} changed the machine it was given"


def missing_values(detector: Detector, data: CheckData | None = None) -> None:
    """Nulls wherever allowed, no row, one row, an unknown user: one answer per row, and no error."""
    data = data or demo_check_data()
    for stage in detector.stages:
        fitted, jobs = data.fitted(detector, stage), data.asked(stage)
        free = [name for name in fields_of(*Part) if name not in ("cluster", "job_id", "submit")]
        frames = {
            "without optional values": jobs.with_columns(
                pl.lit(None, SCHEMA[name]).alias(name) for name in free
            ),
            "without rows": jobs.head(0),
            "of one row": jobs.head(1),
            "of a user never seen": jobs.with_columns(user=pl.lit("nobody-yet"), account=pl.lit("none-yet")),
        }
        for words, frame in frames.items():
            with _sentence(f"{detector.name} at {stage} fails on a frame {words}"):
                _assess(fitted, frame, data.known(), stage, detector)
                if frame.height:
                    fitted.explain(frame.head(1), data.known(), stage=stage)


def any_order(detector: Detector, data: CheckData | None = None) -> None:
    """Answers come in the order of the rows, and do not depend on it."""
    data = data or demo_check_data()
    for stage in detector.stages:
        fitted, jobs = data.fitted(detector, stage), data.asked(stage)
        answers = _assess(fitted, jobs, data.known(), stage, detector)
        backwards = _assess(fitted, jobs.reverse(), data.known(), stage, detector)[::-1]
        _same(answers, backwards, jobs, detector, stage, "depends on the order of the rows")


def one_by_one(detector: Detector, data: CheckData | None = None) -> None:
    """The answer on a job is the same alone and among others."""
    data = data or demo_check_data()
    for stage in detector.stages:
        fitted, jobs, known = data.fitted(detector, stage), data.asked(stage), data.known()
        together = _assess(fitted, jobs, known, stage, detector)
        alone = [_assess(fitted, jobs[row], known, stage, detector)[0] for row in range(jobs.height)]
        _same(together, alone, jobs, detector, stage, "differs for one job alone and among others")


def saved_is_same(detector: Detector, data: CheckData | None = None) -> None:
    """A model that was saved and loaded gives the same answers."""
    data = data or demo_check_data()
    for stage in detector.stages:
        fitted, jobs = data.fitted(detector, stage), data.asked(stage)
        with tempfile.TemporaryDirectory() as folder:
            fitted.save(Path(folder))
            loaded = detector.load(Path(folder))
            answers = [_assess(each, jobs, data.known(), stage, detector) for each in (fitted, loaded)]
        _same(answers[0], answers[1], jobs, detector, stage, "differs after save and load")


def safe_files(detector: Detector, data: CheckData | None = None) -> None:
    """Only formats whose loading can never run code."""
    data = data or demo_check_data()
    for stage in detector.stages:
        for name, content in _files(data.fitted(detector, stage)).items():
            where = f"{detector.name} at {stage} saves {name}"
            allowed = ", ".join(sorted(FORMATS))
            assert Path(name).suffix in FORMATS, f"{where}, which is none of {allowed}"
            assert not content.startswith(_PROGRAMS), (
                f"{where}, which is a pickle or an archive by its first bytes"
            )
            if name.endswith(".json"):
                with _sentence(f"{where}, which is not JSON"):
                    json.loads(content)


def deterministic(detector: Detector, data: CheckData | None = None) -> None:
    """The same seed gives the same model: the same answers, and the same files byte by byte."""
    data = data or demo_check_data()
    for stage in detector.stages:
        twice, jobs = [data.fit(detector, stage) for _ in range(2)], data.asked(stage)
        answers = [_assess(fitted, jobs, data.known(), stage, detector) for fitted in twice]
        _same(
            answers[0],
            answers[1],
            jobs,
            detector,
            stage,
            "differs when fitted again with the same seed",
        )
        again = _assess(twice[0], jobs, data.known(), stage, detector)
        _same(answers[0], again, jobs, detector, stage, "differs when asked again")
        first, second = (_files(fitted) for fitted in twice)
        differ = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
        assert not differ, (
            f"{detector.name} at {stage} saves a different {differ[0]} when fitted again with the same seed"
        )


def valid_parts(detector: Detector, data: CheckData | None = None) -> None:
    """Findings have a level, a kind and a text, and documents match the schema of a verdict."""
    data = data or demo_check_data()
    try:
        from jsonschema import (  # type: ignore[import-untyped]  # its types are a package of their own
            Draft202012Validator,
        )
    except ImportError:
        raise AssertionError("this check needs jsonschema; install it: pip install 'tocsin[dev]'") from None
    validator = Draft202012Validator(verdict_schema())
    for stage in detector.stages:
        fitted, jobs, known = data.fitted(detector, stage), data.asked(stage), data.known()
        answers = list(fitted.assess(jobs, known, stage=stage))
        answers.append(fitted.explain(jobs.head(1), known, stage=stage))
        keys = _keys(jobs)
        for key, parts in zip((*keys, keys[0]), answers, strict=True):
            where = f"{detector.name} at {stage} for job {key}"
            assert isinstance(parts, Parts), f"{where} answers {type(parts).__name__}, not Parts"
            for finding in parts.findings:
                _check_finding(finding, detector, where)
            for what, reason in parts.missing.items():
                assert _is_sentence(reason), f"{where} gives no reason why {what} is missing: {reason!r}"
            for advice in parts.advice:
                assert advice.change.strip(), f"{where} advises a change without naming it"
                assert _is_sentence(advice.why), f"{where} advises {advice.change} without a sentence why"
            document = json.loads(_document(parts, key, stage, where))
            for wrong in validator.iter_errors(document):
                raise AssertionError(f"{where} breaks the schema at {wrong.json_path}: {wrong.message[:200]}")


CHECKS: Sequence[Callable[..., None]] = (
    no_leak,
    respects_stages,
    no_mutation,
    missing_values,
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


def _assess(fitted: Fitted, jobs: pl.DataFrame, known: Replay, stage: Stage, detector: Detector) -> list[str]:
    """Each answer as text, for comparison."""
    answers = fitted.assess(jobs, known, stage=stage)
    assert len(answers) == jobs.height, (
        f"{detector.name} at {stage} gives {len(answers)} answers for {jobs.height} jobs"
    )
    where = f"{detector.name} at {stage}"
    return [_document(parts, key, stage, where) for parts, key in zip(answers, _keys(jobs), strict=True)]


def _keys(jobs: pl.DataFrame) -> list[str]:
    return jobs.select(key_text()).to_series().to_list()


def _document(parts: Parts, key: str, stage: Stage, where: str) -> str:
    verdict = Verdict(
        job=key,
        stage=stage,
        at=0,
        known_until=0,
        level=worst([finding.level for finding in parts.findings]),
        findings=list(parts.findings),
        failure=parts.failure,
        workload=parts.workload,
        resources=parts.resources,
        nodes=parts.nodes,
        anomalies=list(parts.anomalies),
        advice=list(parts.advice),
        missing=dict(parts.missing),
    )
    with _sentence(f"{where} gives an answer that is not JSON"):
        return json.dumps(verdict.to_json(), sort_keys=True, allow_nan=False)


def _same(
    one: list[str], other: list[str], jobs: pl.DataFrame, detector: Detector, stage: Stage, what: str
) -> None:
    for key, first, second in zip(_keys(jobs), one, other, strict=True):
        if first != second:
            place = next((n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
            shown = " and ".join(f"…{text[max(place - 40, 0) : place + 40]}…" for text in (first, second))
            raise AssertionError(f"{detector.name} at {stage}: the answer for job {key} {what} ({shown})")


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
