"""Values that one release of Slurm accepts and another refuses: 22.05, 24.11 and 26.05 were compared."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tocsin.scripts.submission import Submission

__all__ = [
    "COUNTS",
    "NEWER",
    "NEWER_OPTIONS",
    "NEWEST_OPTIONS",
    "OLDER",
    "OLDEST",
    "as_read",
    "newer_options",
    "newer_values",
    "newest_options",
    "older_values",
    "oldest_values",
    "too_large",
]

_NESTED = r".*\([^)]*\(.*"
NEWER = {
    "--begin": ".*elevenses.*",
    "--deadline": ".*elevenses.*",
    "--constraint": _NESTED,
    "--exclusive": "topo",
    "--gres": "|(?:.*,)?(?:gres/.*|[^,:=]+=.*)",
    "--gres-flags": ".*(?:sharing|,).*",
    "--licenses": ".*[=|].*",
    "--prefer": _NESTED,
    "--tres-per-task": ".*",
}
"""By option, a pattern of the values that 22.05 refuses."""

OLDER = {
    "--get-user-env": ".+",
    "--mem-bind": "(?:.*,)?(?:no)?sort(?:,.*)?",
    "--wckey": r"\*.*",
}
"""By option, a pattern of the values that 26.05 refuses, and 24.11 accepts."""

OLDEST = {
    "--constraint": _NESTED,
    "--cpu-freq": "[^:]*-[^:]*",
    "--dependency": r".*_(?![\d*]).*",
    "--power": ".*",
    "--tres-per-task": "(?:.*,)?(?!cpu[:=]|mem[:=]|node[:=]|billing[:=])[^,:=/]+[:=].*",
}
"""By option, a pattern of the values that 24.11 refuses; 22.05 accepts all of them but nested parentheses."""

NEWER_OPTIONS = ("--container-id", "--oom-kill-step", "--segment", "--stepmgr", "--tres-bind")
"""Options that 22.05 does not know."""
NEWEST_OPTIONS = ("--consolidate-segments", "--external")
"""Options that 24.11 does not know."""
_NOT_READ = ("--get-user-env", "--power")
"""26.05 ignores or accepts their variables."""

COUNTS = (
    *("--ntasks", "--cpus-per-task", "--mincpus", "--sockets-per-node", "--cores-per-socket"),
    *("--threads-per-core", "--ntasks-per-node", "--ntasks-per-core", "--ntasks-per-socket"),
    *("--ntasks-per-gpu", "--core-spec", "--thread-spec", "--switches", "--wait-all-nodes"),
)
_LARGEST = 2**31 - 1
_OVERRIDES = (22, 6)
_READ_BY_SLURMCTLD = (
    *("--constraint", "--dependency", "--gres", "--licenses", "--prefer", "--tres-per-task", "--wckey"),
)
"""Only the last value is sent there; sbatch itself reads every one, even if a later one overrides it."""


def as_read(submission: Submission, release: tuple[int, int] | None) -> Submission:
    """Newer releases let a written --cpus-per-task override SBATCH_CPUS_PER_GPU; 22.05 refuses both together."""
    written = submission.last("--cpus-per-task")
    given = submission.last("--cpus-per-gpu")
    if not written or not given or not given.source or (release and release < _OVERRIDES):
        return submission
    overridden = given._replace(option="", value=None, field=None)
    directives = tuple(overridden if d is given else d for d in submission.script.directives)
    return replace(submission, script=replace(submission.script, directives=directives))


def newer_options(submission: Submission) -> str | None:
    return _unknown_option(submission, NEWER_OPTIONS)


def newest_options(submission: Submission) -> str | None:
    return _unknown_option(submission, NEWEST_OPTIONS)


def _unknown_option(submission: Submission, options: Sequence[str]) -> str | None:
    given = next((o for o in options if (d := submission.last(o)) and not d.source), None)
    return f"has {given}, which this release of Slurm does not know" if given else None


def newer_values(submission: Submission) -> str | None:
    return _unknown(submission, NEWER)


def older_values(submission: Submission) -> str | None:
    return _unknown(submission, OLDER)


def oldest_values(submission: Submission) -> str | None:
    return _unknown(submission, OLDEST)


def too_large(submission: Submission) -> str | None:
    """22.05 uses the lower bits of such a number."""
    for option in COUNTS:
        found = re.match(r"\s*\+?(\d{1,18})", submission.value(option), re.ASCII)
        if found and int(found[1]) >= _LARGEST:
            return f"has {option}={found[1]}, which is too large"
    return None


def _unknown(submission: Submission, patterns: Mapping[str, str]) -> str | None:
    for option, pattern in patterns.items():
        given = [
            d.value or ""
            for d in submission.script.directives
            if d.option == option and not (d.source and option in _NOT_READ)
        ]
        for value in given[-1:] if option in _READ_BY_SLURMCTLD else given:
            if re.fullmatch(pattern, value, re.IGNORECASE | re.DOTALL | re.ASCII):
                return f"has {option}={value[:60]}, which this release of Slurm does not accept"
    return None
