"""The cause of one job's failure: from its output files, or else from Slurm's own record."""

import pwd
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tocsin.causes.catalogue import Catalogue, Rule
from tocsin.causes.matching import CONSEQUENCE, Match, find_matches, root_cause
from tocsin.causes.output_files import output_files
from tocsin.causes.reading import Excerpt, read_excerpt, within
from tocsin.core.errors import NotFound
from tocsin.core.outcomes import TARGETS, Outcome, Target
from tocsin.core.printable import printable
from tocsin.core.verdict import UNKNOWN_CAUSE, Cause
from tocsin.sources.permitted import Refused, submitter

__all__ = ["FAILURES", "CauseFound", "by_outcome", "by_record", "cause_of_job", "cause_of_texts"]

SECONDS = 5.0
FAILURES = frozenset(str(outcome) for outcome in TARGETS[Target.FAILED])
"""Outcomes that have a cause to look for."""
_NODE = "node"
_STATE = "state "
_BY_OUTCOME = {
    str(Outcome.OUT_OF_MEMORY): "memory",
    str(Outcome.TIMEOUT): "walltime",
    str(Outcome.DEADLINE): "walltime",
    str(Outcome.NODE_FAIL): _NODE,
    str(Outcome.BOOT_FAIL): _NODE,
}
_BY_SIGNAL = {
    4: "illegal_instruction",
    6: "abort",
    7: "segfault",
    8: "floating_point",
    9: "killed",
    11: "segfault",
    15: "killed",
}


@dataclass(frozen=True, slots=True)
class CauseFound:
    """A cause, or why there is none."""

    cause: Cause | None = None
    missing: str | None = None
    read: tuple[str, ...] = field(default=())
    """Files that were read."""


def cause_of_job(
    job: Mapping[str, Any], script: str | None, catalogue: Catalogue, *, seconds: float = SECONDS
) -> CauseFound:
    """Why an ended job failed; nothing for a job that did not fail."""
    if job["outcome"] not in FAILURES:
        return CauseFound()
    recorded = by_record(job, catalogue)
    try:
        excerpts, refused = within(seconds, lambda: _excerpts(job, script))
    except TimeoutError:
        excerpts, refused = [], f"its output files could not be read within {seconds:g} s"
    found = cause_of_texts(excerpts, catalogue, recorded)
    read = tuple(excerpt.path for excerpt in excerpts)
    if found.kind == UNKNOWN_CAUSE and not excerpts:
        return CauseFound(missing=refused, read=read)
    return CauseFound(cause=found, read=read)


def cause_of_texts(excerpts: list[Excerpt], catalogue: Catalogue, recorded: Cause | None = None) -> Cause:
    """The root cause in these outputs; if they show none, that of the record, or the unknown cause."""
    matches: list[tuple[Match, Excerpt, bool]] = []
    for excerpt in excerpts:
        inside = [m for m in find_matches(excerpt.head, catalogue) if m.rule.certain] if excerpt.head else []
        matches += [(m, excerpt, True) for m in inside]
        matches += [(m, excerpt, False) for m in find_matches(excerpt.tail, catalogue)]
    # A start-up message in the head counts only if the end shows nothing.
    ends = [entry for entry in matches if not entry[2]] or matches
    best: tuple[Match, Excerpt, bool] | None = None
    for excerpt in excerpts:
        own = {id(m): (m, e, h) for m, e, h in ends if e is excerpt}
        root = root_cause([entry[0] for entry in own.values()])
        if root and (best is None or root.rule.rank <= best[0].rule.rank):
            best = own[id(root)]
    if recorded and (best is None or _says_little(best[0].rule) or _outranked(best[0], recorded)):
        return recorded
    if best is None:
        return Cause(kind=UNKNOWN_CAUSE, title="unknown", text="")
    match, excerpt, head = best
    first = 1 if head else excerpt.tail_line
    kind = catalogue.kinds[match.rule.kind]
    return Cause(
        kind=kind.name,
        title=kind.title,
        text=printable(match.text),
        file=excerpt.path,
        line=None if first is None else first + match.line,
        advice=kind.advice,
    )


def by_outcome(outcome: str) -> str | None:
    """The kind of cause that an outcome alone implies."""
    return _BY_OUTCOME.get(outcome)


def by_record(job: Mapping[str, Any], catalogue: Catalogue) -> Cause | None:
    """The cause by Slurm's state, the signal or the exit code of the batch script, if it is specific."""
    name, text = by_outcome(job["outcome"]), f"{_STATE}{job['state'] or job['outcome']}"
    if name is None:
        code = job["exit_code"] or 0
        signal = job["exit_signal"] or (code - 128 if 128 < code < 160 else 0)
        name, text = _BY_SIGNAL.get(signal), f"ended by signal {signal}"
    kind = catalogue.kinds.get(name or "")
    return Cause(kind=kind.name, title=kind.title, text=text, advice=kind.advice) if kind else None


def _says_little(rule: Rule) -> bool:
    return rule.ending or rule.rank >= CONSEQUENCE


def _outranked(match: Match, recorded: Cause) -> bool:
    """Slurm knows when a node failed; on time and memory, only a certain line is better than its state."""
    if not recorded.text.startswith(_STATE) or match.rule.kind == recorded.kind:
        return False
    return recorded.kind == _NODE or not match.rule.certain


def _excerpts(job: Mapping[str, Any], script: str | None) -> tuple[list[Excerpt], str]:
    paths = output_files(job, script)
    if not paths:
        return [], "where its output is, is not known"
    try:
        uid = job["uid"] if job["uid"] is not None else pwd.getpwnam(job["user"] or "").pw_uid
        who = submitter(uid, job["gid"])
    except (KeyError, NotFound):
        return [], f"this host does not know its user {job['user'] or job['uid']}"
    found, refused = [], ""
    for path in paths:
        try:
            found.append(read_excerpt(who, path))
        except Refused as reason:
            refused = refused or f"{path} cannot be read: {reason}"
    return found, refused
