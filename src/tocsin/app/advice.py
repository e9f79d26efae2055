"""Advice on a script in a few lines of text, as sbatch prints them at a terminal."""

from collections.abc import Iterator

from tocsin.app.verdict_text import check_headline
from tocsin.core.printable import printable
from tocsin.core.verdict import ALARMS, Advice, Verdict

__all__ = ["advice_text"]

_MOST_LINES = 12
_WIDEST = 300


def advice_text(verdict: Verdict) -> str:
    """Empty if nothing is wrong, so that a good submission prints nothing."""
    if verdict.level not in ALARMS:
        return ""
    lines = list(_lines(verdict))
    more = [] if len(lines) <= _MOST_LINES else ["and more; run: tocsin check SCRIPT"]
    return "".join(f"tocsin: {_one_line(line)}\n" for line in [*lines[:_MOST_LINES], *more])


def _lines(verdict: Verdict) -> Iterator[str]:
    yield f"{verdict.level}: {check_headline(verdict)}"
    for finding in verdict.findings:
        if finding.level in ALARMS:
            yield f"  {finding.text}"
    for advice in verdict.advice:
        yield f"  → {advice.change}{_effect(advice)}"


def _effect(advice: Advice) -> str:
    if advice.risk_before is None or advice.risk_after is None:
        return ""
    return f" (risk {advice.risk_before:.0%} → {advice.risk_after:.0%})"


def _one_line(text: str) -> str:
    shown = printable(text)
    return shown if len(shown) <= _WIDEST else f"{shown[: _WIDEST - 1]}…"
