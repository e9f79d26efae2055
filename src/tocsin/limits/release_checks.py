"""Values that one release of Slurm accepts and another refuses; 22.05 and 26.05 were compared, none between them."""

import re
from collections.abc import Mapping

from tocsin.scripts.submission import Submission

__all__ = ["COUNTS", "NEWER", "OLDER", "newer_values", "older_values", "too_large"]

_NESTED = r".*\([^)]*\(.*"
NEWER = {
    "--begin": ".*elevenses.*",
    "--deadline": ".*elevenses.*",
    "--constraint": _NESTED,
    "--exclusive": "topo",
    "--gres": "(?:.*,)?(?:gres/.*|[^,:=]+=.*)",
    "--gres-flags": ".*(?:sharing|,).*",
    "--licenses": ".*[=|].*",
    "--prefer": _NESTED,
    "--tres-per-task": ".*",
}
"""By option, a pattern of the values that 22.05 refuses."""

OLDER = {
    "--constraint": _NESTED,
    "--cpu-freq": "[^:]*-[^:]*",
    "--dependency": r"(?:.*[,?])?\d[^:]*|.*_(?![\d*]).*",
    "--mem-bind": "(?:.*,)?(?:no)?sort(?:,.*)?",
    "--power": ".*",
    "--tres-per-task": "(?:.*,)?(?!cpu[:=]|mem[:=]|node[:=]|billing[:=])[^,:=/]+[:=].*",
    "--wckey": r"\*.*",
}
"""By option, a pattern of the values that 26.05 refuses."""

COUNTS = (
    *("--ntasks", "--cpus-per-task", "--mincpus", "--sockets-per-node", "--cores-per-socket"),
    *("--threads-per-core", "--ntasks-per-node", "--ntasks-per-core", "--ntasks-per-socket"),
    *("--ntasks-per-gpu", "--core-spec", "--thread-spec", "--switches", "--wait-all-nodes"),
)
_LARGEST = 2**31 - 1
_READ_BY_SLURMCTLD = (
    *("--constraint", "--dependency", "--gres", "--licenses", "--prefer", "--tres-per-task", "--wckey"),
)
"""Only the last value is sent there; sbatch itself reads every one, even if a later one overrides it."""


def newer_values(submission: Submission) -> str | None:
    return _unknown(submission, NEWER)


def older_values(submission: Submission) -> str | None:
    return _unknown(submission, OLDER)


def too_large(submission: Submission) -> str | None:
    """22.05 uses the lower bits of such a number."""
    for option in COUNTS:
        found = re.match(r"\s*\+?(\d{1,18})", submission.value(option), re.ASCII)
        if found and int(found[1]) >= _LARGEST:
            return f"has {option}={found[1]}, which is too large"
    return None


def _unknown(submission: Submission, patterns: Mapping[str, str]) -> str | None:
    for option, pattern in patterns.items():
        given = submission.values(option)
        for value in given[-1:] if option in _READ_BY_SLURMCTLD else given:
            if re.fullmatch(pattern, value, re.IGNORECASE | re.DOTALL | re.ASCII):
                return f"has {option}={value[:60]}, which this release of Slurm does not accept"
    return None
