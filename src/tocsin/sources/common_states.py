"""States as tables name them: Slurm's, and other words in common use."""

import re

from tocsin.core.outcomes import STATES
from tocsin.sources.sacct_values import parse_state

__all__ = ["common_state"]

_WORDS = {
    "COMPLETED": "complete success succeeded successful pass passed done finished ok completedsuccessfully",
    "FAILED": "fail failure error errored completedfailed",
    "CANCELLED": "canceled cancel killed aborted deleted removed completedkilled userkilled",
    "TIMEOUT": "timedout timelimit walltimeexceeded walltimereached completedwalltimereached",
    "OUT_OF_MEMORY": "outofmemory oomkilled memoryexceeded",
    "NODE_FAIL": "nodefail nodefailure nodefailed",
    "PREEMPTED": "preempt evicted",
    "PENDING": "queued waiting held",
}
_STATES = {word: state for state, words in _WORDS.items() for word in words.split()}


def common_state(text: str) -> str:
    """Slurm's name of a state; an unknown word as it is, in capitals."""
    word: str = parse_state(text)["state"] or ""
    if word in STATES:
        return word
    return _STATES.get(re.sub(r"[^a-z]", "", text.lower()), text.strip().upper())
