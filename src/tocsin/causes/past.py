"""What the last runs of a program ended by, as advice for the next one. No model reads it."""

from collections import Counter
from collections.abc import Sequence

from tocsin.causes.catalogue import Catalogue
from tocsin.causes.job_cause import FAILURES, by_outcome
from tocsin.core.outcomes import Outcome
from tocsin.core.verdict import UNKNOWN_CAUSE, Advice, Cause

__all__ = ["advice_of_runs"]

_AT_LEAST = 2
"""One failure may be chance."""
_COUNTED = FAILURES | {str(Outcome.COMPLETED)}


def advice_of_runs(
    runs: Sequence[tuple[str, Cause | None]], *, name: str, user: str | None, catalogue: Catalogue
) -> list[Advice]:
    """Advice if one cause ended at least half of these runs, and at least two; `user` is None for one's own.

    Each run is an outcome, and the cause if somebody looked for it.
    """
    counted = [(outcome, cause) for outcome, cause in runs if outcome in _COUNTED]
    kinds = Counter(kind for outcome, cause in counted if (kind := _kind(outcome, cause)))
    if not kinds:
        return []
    kind, number = kinds.most_common(1)[0]
    if number < _AT_LEAST or 2 * number < len(counted) or kind not in catalogue.kinds:
        return []
    known = catalogue.kinds[kind]
    whose = "your" if user is None else f"{user}'s"
    why = f'{number} of {whose} last {len(counted)} runs of "{name}" ended by: {known.title}'
    return [Advice(change=known.advice, why=why)]


def _kind(outcome: str, cause: Cause | None) -> str | None:
    if cause and cause.kind != UNKNOWN_CAUSE:
        return cause.kind
    return by_outcome(outcome)
