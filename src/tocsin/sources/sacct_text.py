"""Splits the text of `sacct -P` into columns: finds the header and the separator."""

import io
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from tocsin.core.errors import SourceError
from tocsin.sources.line_repair import FREE_TEXT, LineRepair
from tocsin.sources.lines import Block, line_ends
from tocsin.sources.quoted_text import is_quoted, without_quotes
from tocsin.sources.records import LINE
from tocsin.sources.sacct_fields import unknown_fields

__all__ = ["SacctTable", "column_names", "column_words", "header_delimiter"]

_SEPARATOR = "\x1f"  # replaces a delimiter of several characters, or of CSV
_OF_CSV = (",", ";", "\t")
_PIPE = "\x1e"  # replaces a separator inside a name
_RULER = re.compile(rb"-+( -+)*\s*$")  # under the header of fixed-width text

Indices = npt.NDArray[np.int64]


def column_names(text: str | Sequence[str], separator: str = ",") -> list[str]:
    """Column names of `-o` or of a header line, in lower case, without widths such as `%20`."""
    return [word.lower() for word in column_words(text, separator)]


def column_words(text: str | Sequence[str], separator: str = ",") -> list[str]:
    """Column names as written, without widths."""
    words = text.split(separator) if isinstance(text, str) else list(text)
    return [re.sub(r"%-?\d*$", "", word.strip()) for word in words]


def header_delimiter(line: str) -> str | None:
    """The separator of the columns of a header line of sacct; None if it is not one, or separated by blanks."""
    line = line.replace('"', "").lstrip(",;")  # CSV may quote names, and pandas starts with a nameless column
    found = re.match(r"\s*\w+(?:%-?\d+)?([^\w%]+)\w", line)
    if not found or found[1].strip(" ") == "":
        return None
    words = column_words(line, found[1])
    known = len(words) - len(unknown_fields(words))
    return found[1] if known > 1 and {"jobid", "jobidraw"} & {word.lower() for word in words} else None


class SacctTable:
    """Takes blocks, returns frames of text. Keeps the start of a record that the end of a block cuts."""

    def __init__(
        self,
        columns: Sequence[str] | str | None,
        *,
        wanted: frozenset[str],
        notes: list[str],
        delimiter: str = "|",
    ) -> None:
        self.columns = column_names(columns) if columns else []
        self.wanted = wanted
        self.delimiter = delimiter
        self.separator = _SEPARATOR if len(delimiter.encode()) > 1 or delimiter in _OF_CSV else delimiter
        self.notes = notes
        self._tail = b""
        self._tail_line = 0
        self._has_columns = False
        self._repaired = self._replaced = self._quoted = False

    def rows(self, block: Block, *, name: str) -> tuple[pl.DataFrame, Indices]:
        """The records as columns of text with line numbers, and the numbers of invalid lines."""
        data, first = self._tail + self._split(block.data), self._tail_line if self._tail else block.first
        self._tail = b""
        if not self._has_columns:
            self._find_columns(data, name)
        if not self._has_columns:  # only blank lines so far
            return pl.DataFrame(schema={"jobid": pl.String, LINE: pl.Int64}), np.empty(0, np.int64)
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        ends = line_ends(data)
        text = np.frombuffer(data, np.uint8)
        counts = np.diff(np.searchsorted(np.flatnonzero(text == ord(self.separator)), ends), prepend=0)
        lengths = np.diff(ends, prepend=-1)
        right = counts == len(self.columns) - 1
        if right.all():
            return self._words(data, first + np.arange(len(ends))), np.empty(0, np.int64)
        repair = LineRepair(data, ends, counts, self.columns, self.separator.encode(), joint=_PIPE.encode())
        repair.run()
        if repair.cut is not None:
            self._tail, self._tail_line = data[repair.cut_at :], first + repair.cut
        if repair.records and not self._repaired:
            self.notes.append("records split by newlines or separators in names were joined")
            self._repaired = True
        right[list(repair.records)] = False
        whole = text[np.repeat(right, lengths)].tobytes()
        joined = b"".join(line + b"\n" for line in repair.records.values())
        lines = np.concatenate((np.flatnonzero(right), np.array(list(repair.records), np.int64)))
        rows = self._words(whole + joined, first + lines).sort(LINE)
        return rows, first + np.array(repair.bad, np.int64)

    def _split(self, data: bytes) -> bytes:
        """The lines with a separator of one byte."""
        if self.separator == self.delimiter:
            return data
        separator = _SEPARATOR.encode()
        data = data.replace(separator, b" ")
        if self.delimiter in _OF_CSV:
            self._quoted = self._quoted or is_quoted(data, self.delimiter)
            if self._quoted:
                return without_quotes(data, self.delimiter, separator)
        return data.replace(self.delimiter.encode(), separator)

    def rest(self) -> Indices:
        """Line numbers of an incomplete record at the end of the file."""
        count = self._tail.count(b"\n")
        self._tail = b""
        return self._tail_line + np.arange(count)

    def _find_columns(self, data: bytes, name: str) -> None:
        """Set the columns: those given, or those in the first line."""
        lines = (
            line for line in data.splitlines() if line.strip() and not line.startswith((b"#", b"sacct: "))
        )
        first = next(lines, None)
        if first is None:
            return
        self._has_columns = True
        text = first.decode("utf-8", "replace")
        header = column_names(text, self.separator)
        named = {"jobid", "jobidraw"} & set(header) and len(self.wanted & set(header)) > 1
        if not self.columns:
            if not named and self.separator.encode() not in first and _RULER.match(next(lines, b"")):
                raise SourceError(
                    f"{name} looks like sacct's text of fixed width, which cuts values off; use sacct -P"
                )
            if not named:
                raise SourceError(
                    f"the first line of {name} is not a header; name the columns with -o, such as -o JobID,Submit,State"
                )
            self.columns = header
            unknown = ", ".join(
                f'"{word}"' for word in unknown_fields(column_words(text, self.separator))[:10]
            )
            if unknown:
                self.notes.append(f"columns that sacct does not have were ignored: {unknown}")
        elif text.count(self.separator) == len(self.columns) and text.rstrip("\r").endswith(self.separator):
            self.columns = [*self.columns, ""]  # sacct -p ends each line with a separator
        missing = {"jobid", "submit"} - set(self.columns)
        if missing:
            words = " and ".join(sorted(missing))
            raise SourceError(
                f"{name} has no column {words}: a job is identified by JobID and Submit; add them to -o"
            )

    def _words(self, data: bytes, lines: Indices) -> pl.DataFrame:
        """The wanted columns as text; empty is null. The first of a repeated column counts."""
        places = {name: self.columns.index(name) for name in sorted(self.wanted & set(self.columns))}
        schema = {f"c{place}": pl.String for place in range(len(self.columns))}
        if not len(lines):
            return pl.DataFrame(schema=dict.fromkeys(places, pl.String) | {LINE: pl.Int64})
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            data = data.decode("utf-8", "replace").encode()
            if not self._replaced:
                self.notes.append("invalid UTF-8 was replaced")
                self._replaced = True
        frame = pl.read_csv(
            io.BytesIO(data),
            separator=self.separator,
            has_header=False,
            quote_char=None,
            schema=schema,
            columns=sorted(places.values()),
        )
        frame = frame.select(
            pl.col(f"c{place}").str.replace_all(_PIPE, self.delimiter, literal=True).alias(name)
            if self._repaired and name in FREE_TEXT
            else pl.col(f"c{place}").alias(name)
            for name, place in places.items()
        ).with_columns(pl.Series(LINE, lines))
        # Concatenated files repeat the header.
        header = pl.col("jobid").str.to_lowercase().str.replace(r"%-?\d*$", "")
        return frame.filter(header.ne_missing("jobid"))
