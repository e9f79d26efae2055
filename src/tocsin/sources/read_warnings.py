"""Counts what was left empty or ignored while reading, and notes each kind once."""

from collections import Counter

import polars as pl

from tocsin.sources.sacct_fields import SACCT_FIELDS

__all__ = ["ReadWarnings"]

_TITLES = {name.lower(): name for name in SACCT_FIELDS}
_MOST_STATES = 10


class ReadWarnings:
    """Counts of one reading; `notes` returns them as sentences."""

    def __init__(self) -> None:
        self._unreadable: Counter[str] = Counter()
        self._first: dict[str, tuple[int, str]] = {}
        self._states: Counter[str] = Counter()
        self._orphans = 0
        self._first_orphan = 0

    def unreadable(self, column: str, texts: pl.Series, lines: pl.Series) -> None:
        """Values of this column that could not be read; the field is left empty."""
        if len(texts):
            self._unreadable[column] += len(texts)
            self._first.setdefault(column, (int(lines[0]), str(texts[0])[:80]))

    def unknown_states(self, states: pl.Series) -> None:
        for state, number in states.drop_nulls().value_counts().iter_rows():
            if state[:40] in self._states or len(self._states) < 1000:
                self._states[state[:40]] += number

    def orphan_steps(self, lines: pl.Series) -> None:
        """Steps without their job."""
        if len(lines):
            self._first_orphan = self._first_orphan or int(lines[0])
            self._orphans += len(lines)

    def notes(self) -> list[str]:
        found = []
        for column, number in self._unreadable.items():
            line, text = self._first[column]
            title = _TITLES.get(column, column)
            found.append(
                f'{title} could not be read in {_records(number)} and is left empty (first at line {line}: "{text}")'
            )
        for state, number in self._states.most_common(_MOST_STATES):
            found.append(f'the state "{state}" of {_records(number)} is unknown; its outcome is "unknown"')
        if self._orphans:
            steps = (
                "1 step without its job"
                if self._orphans == 1
                else f"{self._orphans:,} steps without their job"
            )
            found.append(f"left out: {steps} (first at line {self._first_orphan})")
        return found


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number:,} records"
