"""Split the text of `sacct -P` into columns: find the header, and join broken lines where that is unambiguous."""

import io
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from tocsin.core.errors import SourceError
from tocsin.sources.lines import MAX_LINE, Block, line_ends
from tocsin.sources.records import LINE
from tocsin.sources.sacct_fields import unknown_fields

__all__ = ["SacctTable", "column_names", "column_words"]

_FREE_TEXT = frozenset(
    {"jobname", "comment", "admincomment", "systemcomment", "submitline", "workdir", "constraints", "extra"}
)
"""Columns that may contain newlines or the separator."""
_MOST_LINES = 50  # per record
_PIPE = "\x1e"  # replaces a separator inside a name
_RULER = re.compile(rb"-+( -+)*\s*$")  # under the header of text of fixed width
_START = re.compile(rb"\d+(?:[_+.].*)?", re.DOTALL)  # of an id

Indices = npt.NDArray[np.int64]


def column_names(text: str | Sequence[str]) -> list[str]:
    """Column names of `-o` or of a header line, in lower case, without widths such as `%20`."""
    return [word.lower() for word in column_words(text)]


def column_words(text: str | Sequence[str]) -> list[str]:
    """Column names as written, without widths."""
    words = re.split(r"[|,]", text) if isinstance(text, str) else list(text)
    return [re.sub(r"%-?\d*$", "", word.strip()) for word in words]


class SacctTable:
    """Takes blocks, returns frames of text. Keeps the start of a record that the end of a block cuts."""

    def __init__(
        self,
        columns: Sequence[str] | str | None,
        *,
        wanted: frozenset[str],
        notes: list[str],
        separator: str = "|",
    ) -> None:
        self.columns = column_names(columns) if columns else []
        self.wanted = wanted
        self.separator = separator
        self.notes = notes
        self._tail = b""
        self._tail_line = 0
        self._looked = False
        self._repaired = self._replaced = False

    def rows(self, block: Block, *, name: str) -> tuple[pl.DataFrame, Indices]:
        """The records as columns of text with line numbers, and the numbers of invalid lines."""
        data, first = self._tail + block.data, self._tail_line if self._tail else block.first
        self._tail = b""
        if not self._looked:
            self._look(data, name)
        if not self._looked:  # only blank lines so far
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
        repair = _Repair(data, ends, counts, self.columns, self.separator.encode())
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

    def rest(self) -> Indices:
        """Line numbers of an incomplete record at the end of the file."""
        count = self._tail.count(b"\n")
        self._tail = b""
        return self._tail_line + np.arange(count)

    def _look(self, data: bytes, name: str) -> None:
        """Set the columns: those given, or those in the first line."""
        lines = (line for line in data.splitlines() if line.strip() and not line.startswith(b"#"))
        first = next(lines, None)
        if first is None:
            return
        self._looked = True
        text = first.decode("utf-8", "replace")
        header = column_names(text)
        named = {"jobid", "jobidraw"} & set(header) and len(self.wanted & set(header)) > 1
        if not self.columns:
            if not named and b"|" not in first and _RULER.match(next(lines, b"")):
                raise SourceError(
                    f"{name} looks like sacct's text of fixed width, which cuts values off; use sacct -P"
                )
            if not named:
                raise SourceError(
                    f"the first line of {name} is not a header; name the columns with -o, such as -o JobID,Submit,State"
                )
            self.columns = header
            unknown = ", ".join(f'"{word}"' for word in unknown_fields(column_words(text))[:10])
            if unknown:
                self.notes.append(f"columns that sacct does not have were ignored: {unknown}")
        elif first.count(b"|") == len(self.columns) and first.rstrip(b"\r").endswith(b"|"):
            self.columns = [*self.columns, ""]  # sacct -p ends each line with a separator
        missing = {"jobid", "submit"} - set(self.columns)
        if missing:
            words = " and ".join(sorted(missing))
            raise SourceError(
                f"{name} has no column {words}: a job is identified by JobID and Submit; add them to -o"
            )

    def _words(self, data: bytes, lines: Indices) -> pl.DataFrame:
        """The wanted columns as text; empty is null. Of a repeated column the first counts."""
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
            pl.col(f"c{place}").str.replace_all(_PIPE, self.separator, literal=True).alias(name)
            if self._repaired and name in _FREE_TEXT
            else pl.col(f"c{place}").alias(name)
            for name, place in places.items()
        ).with_columns(pl.Series(LINE, lines))
        # Concatenated files repeat the header.
        return frame.filter(pl.col("jobid").str.to_lowercase().ne_missing("jobid"))


class _Repair:
    """Joins or rejects the lines of a block that have too few or too many separators."""

    def __init__(
        self, data: bytes, ends: Indices, counts: Indices, columns: list[str], separator: bytes
    ) -> None:
        self.data, self.ends, self.counts = data, ends, counts
        self.upto = np.cumsum(counts)
        self.want = len(columns) - 1
        self.separator = separator
        self.free = [place for place, name in enumerate(columns) if name in _FREE_TEXT]
        self.by_id = columns[0] in ("jobid", "jobidraw")
        self.records: dict[int, bytes] = {}
        self.bad: list[int] = []
        self.cut: int | None = None

    @property
    def cut_at(self) -> int:
        return 0 if not self.cut else int(self.ends[self.cut - 1]) + 1

    def _line(self, number: int) -> bytes:
        start = int(self.ends[number - 1]) + 1 if number else 0
        return self.data[start : int(self.ends[number])]

    def _starts(self, line: bytes) -> bool:
        if not self.by_id:
            return True
        first, separator, _ = line.partition(self.separator)
        return bool(separator) and bool(_START.fullmatch(first))

    def run(self) -> None:
        irregular = np.flatnonzero(self.counts != self.want).tolist()
        owner, after = -1, 0  # the record that the line before belongs to, and the first line after it
        for number in irregular:
            if number < after:
                continue
            line = self._line(number)
            if number > after:
                owner = number - 1
            after = number + 1
            if self.counts[number] > self.want:
                owner = number if self._too_many(number, line) else -1
                continue
            if not line.strip() or line.startswith(b"#"):
                continue
            joined, after = self._join(number, line)
            if joined is not None:
                self.records[number], owner = joined, number
            elif after == len(self.ends) and self._starts(line) and self._may_wait(number):
                self.cut = number
                return
            else:
                after = number + 1
                if not self._continues(owner, number, line):
                    self.bad.append(number)
                    owner = -1

    def _join(self, number: int, line: bytes) -> tuple[bytes | None, int]:
        """Join this line with the next ones to one record; a newline becomes a blank."""
        pieces, total, place = [line], int(self.counts[number]), number + 1
        last = min(number + _MOST_LINES, len(self.ends)) - 1
        if self.upto[last] - self.upto[number] + total < self.want:
            return None, last + 1
        while total < self.want and place < len(self.ends) and len(pieces) < _MOST_LINES:
            more = int(self.counts[place])
            piece = self._line(place)
            if more >= self.want or (self.by_id and self._starts(piece)):
                return None, place
            pieces.append(piece)
            total, place = total + more, place + 1
        whole = total == self.want and self._starts(line) and bool(self.free)
        return (b" ".join(pieces) if whole else None), place

    def _may_wait(self, number: int) -> bool:
        lines = len(self.ends) - number
        return bool(self.free) and lines < _MOST_LINES and len(self.data) - self.ends[number] < MAX_LINE

    def _continues(self, owner: int, number: int, line: bytes) -> bool:
        """Whether the line continues a name in the last column; messages of sacct itself do not."""
        if self.counts[number] or owner < 0 or self.want not in self.free or line.startswith(b"sacct:"):
            return False
        if number - owner > _MOST_LINES:
            return False
        self.records[owner] = self.records.get(owner, self._line(owner)) + b" " + line
        return True

    def _too_many(self, number: int, line: bytes) -> bool:
        """Repair separators inside a name, if exactly one column can have them."""
        extra = int(self.counts[number]) - self.want
        if len(self.free) != 1 or not self._starts(line):
            self.bad.append(number)
            return False
        parts = line.split(self.separator)
        place = self.free[0]
        name = _PIPE.encode().join(parts[place : place + extra + 1])
        self.records[number] = self.separator.join([*parts[:place], name, *parts[place + extra + 1 :]])
        return True
