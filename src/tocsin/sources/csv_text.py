"""Lines of CSV as columns of text: regular blocks by polars, irregular ones line by line."""

import csv

import numpy as np
import numpy.typing as npt
import polars as pl

from tocsin.sources.lines import line_ends

__all__ = ["cells", "csv_words"]

_MOST_LINES = 50  # per quoted value
_QUOTE, _NEWLINE = ord('"'), ord("\n")


def csv_words(
    data: bytes, places: dict[str, int], *, columns: int, separator: str
) -> tuple[pl.DataFrame, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """The wanted columns of the well-formed records, a mask of their first lines, and one of their further lines."""
    ends = line_ends(data)
    right = _right_lines(data, ends, columns, separator)
    if right is not None and right.any():
        lengths = np.diff(ends, prepend=-1)
        whole = data if right.all() else np.frombuffer(data, np.uint8)[np.repeat(right, lengths)].tobytes()
        frame = _read(whole, places, columns, separator)
        if frame is not None and frame.height == right.sum():
            return frame, right, np.zeros(len(right), bool)
    return _line_by_line(data.decode("utf-8", "replace").split("\n")[:-1], places, columns, separator)


def cells(line: str, separator: str) -> list[str]:
    """Split one line. An unclosed quote ends with its line."""
    return next(csv.reader([line], delimiter=separator), [])


def _right_lines(
    data: bytes, ends: npt.NDArray[np.int64], columns: int, separator: str
) -> npt.NDArray[np.bool_] | None:
    """Mask of the lines with the right number of columns; None if quotes are irregular."""
    text = np.frombuffer(data, np.uint8)
    marks = np.flatnonzero(text == ord(separator))
    quotes = np.flatnonzero(text == _QUOTE)
    if len(quotes):
        edge = (text == ord(separator)) | (text == _NEWLINE)
        before = np.concatenate(([True], edge[:-1]))
        after = np.concatenate((edge[1:], [True]))
        if (np.diff(np.searchsorted(quotes, ends), prepend=0) % 2).any():
            return None
        if not (before[quotes[::2]].all() and after[quotes[1::2]].all()):
            return None
        marks = marks[np.searchsorted(quotes, marks) % 2 == 0]
    found = np.diff(np.searchsorted(marks, ends), prepend=0) == columns - 1
    return np.asarray(found & (np.diff(ends, prepend=-1) > 1))


def _read(data: bytes, places: dict[str, int], columns: int, separator: str) -> pl.DataFrame | None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        data = data.decode("utf-8", "replace").encode()
    try:
        frame = pl.read_csv(
            data,
            separator=separator,
            has_header=False,
            schema={f"c{place}": pl.String for place in range(columns)},
            columns=sorted(set(places.values())),
        )
    except pl.exceptions.PolarsError:
        return None
    return frame.select(pl.col(f"c{place}").alias(name) for name, place in places.items())


def _line_by_line(
    lines: list[str], places: dict[str, int], columns: int, separator: str
) -> tuple[pl.DataFrame, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    rows = [cells(line, separator) for line in lines]
    right = np.array(
        [len(row) == columns and bool(line) for row, line in zip(rows, lines, strict=True)], bool
    )
    further = np.zeros(len(lines), bool)
    for first, last in _split_records(lines, separator):
        rows[first] = _record(lines[first : last + 1], separator)
        right[first : last + 1] = False
        right[first] = whole = last > first and len(rows[first]) == columns
        further[first + 1 : last + 1] = whole
    good = [row for row, whole in zip(rows, right.tolist(), strict=True) if whole]
    frame = pl.DataFrame(
        {name: pl.Series([row[place] for row in good], dtype=pl.String) for name, place in places.items()}
    )
    return frame, right, further


def _record(lines: list[str], separator: str) -> list[str]:
    """The values of one record with newlines inside quotes; none if it is more than one."""
    try:
        rows = list(csv.reader([f"{line}\n" for line in lines], delimiter=separator))
    except csv.Error:  # a value of more than 128 KiB
        return []
    return rows[0] if len(rows) == 1 else []


def _split_records(lines: list[str], separator: str) -> list[tuple[int, int]]:
    """The first and last lines of records with an open quote; equal if it is never closed."""
    found: list[tuple[int, int]] = []
    number = 0
    while number < len(lines):
        if '"' in lines[number] and _left_open(lines[number], separator):
            # The record ends at the next line with a quote; a quote that is never closed must not reject the rest.
            ahead = range(number + 1, min(number + _MOST_LINES, len(lines)))
            end = next((place for place in ahead if lines[place].count('"') % 2), None)
            last = end if end is not None and not _left_open(lines[end], separator) else number
            found.append((number, last))
            number = last
        number += 1
    return found


def _left_open(line: str, separator: str) -> bool:
    try:
        next(csv.reader([line], delimiter=separator, strict=True), None)
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False
