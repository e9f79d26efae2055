"""Repairs lines of `sacct -P` broken by newlines or separators inside names, if that is unambiguous."""

import re

import numpy as np
import numpy.typing as npt

from tocsin.sources.lines import MAX_LINE

__all__ = ["FREE_TEXT", "LineRepair"]

FREE_TEXT = frozenset(
    {
        "admincomment",
        "comment",
        "constraints",
        "container",
        "extra",
        "jobname",
        "stderr",
        "stdin",
        "stdout",
        "submitline",
        "systemcomment",
        "workdir",
    }
)
"""Columns that may contain newlines or the separator."""
_MESSAGE = b"sacct:"  # starts a message of sacct itself
_FEWEST_KNOWN = 4  # columns whose shape shows that a line starts a record
_MOST_LINES = 50  # per record
_MOST_SEPARATORS = 200  # inside the names of one record
_ID = re.compile(rb"\d+(?:[_+.].*)?", re.DOTALL)


def _shapes() -> dict[str, re.Pattern[bytes]]:
    """What the values of columns look like; other columns may have any value."""
    words = {
        rb"\d*": "alloccpus allocnodes ncpus nnodes ntasks reqcpus reqnodes uid gid elapsedraw cputimeraw priority",
        rb"\d*(?:\.\w+(?:\+\d+)?)?": "jobidraw",
        rb"(?:\d[\d:T.+Z-]*|Unknown|None|N/A)?": "start end eligible",
        rb"\d[\d:T.+Z-]*": "submit",
        rb"(?:[\d:.-]*|UNLIMITED|Partition_Limit|INVALID)": "elapsed cputime totalcpu usercpu systemcpu suspended "
        "planned reserved timelimit timelimitraw avecpu mincpu",
        rb"[A-Za-z_]+\+?(?: by \d+)?": "state",
        rb"(?:\d+:\d+)?": "exitcode derivedexitcode",
        rb"[\d.?]*[KMGTP]?[nc]?": "reqmem maxrss averss maxvmsize avevmsize maxdiskread maxdiskwrite",
        rb"(?:[\w/:.-]+=[^,=]*(?:,[\w/:.-]+=[^,=]*)*)?": "reqtres alloctres tresusageintot tresusageouttot",
    }
    return {name: re.compile(shape) for shape, names in words.items() for name in names.split()}


_SHAPES = _shapes() | {"jobid": _ID}


class LineRepair:
    """Joins the lines of a block with too few or too many separators into records, or rejects them."""

    def __init__(
        self,
        data: bytes,
        ends: npt.NDArray[np.int64],
        counts: npt.NDArray[np.int64],
        columns: list[str],
        separator: bytes,
        *,
        joint: bytes,
    ) -> None:
        self.data, self.ends, self.counts = data, ends, counts
        self.want = len(columns) - 1
        self.separator, self.joint = separator, joint
        self.free = [name in FREE_TEXT for name in columns]
        self.shapes = [_SHAPES.get(name) for name in columns]
        self.id_place = columns.index("jobid")
        self.records: dict[int, bytes] = {}
        """Repaired records by the number of their first line."""
        self.bad: list[int] = []
        self.cut: int | None = None
        """The first line of a record that may be cut off by the end of the block."""

    @property
    def cut_at(self) -> int:
        return 0 if not self.cut else int(self.ends[self.cut - 1]) + 1

    def run(self) -> None:
        after = 0
        for number in np.flatnonzero(self.counts != self.want).tolist():
            if number < after:
                continue
            after = number + 1
            line = self._line(number)
            if not line.strip() or line.startswith(b"#"):
                continue
            first = number if self._starts(line) else number - 1 if self._continues(number, line) else None
            if first is None:
                self.bad.append(number)
                continue
            after = self._end_of(number)
            joined = self._joined([self._line(place) for place in range(first, after)])
            if joined is not None:
                self.records[first] = joined
            elif after == len(self.ends) and first == number and self._may_wait(number):
                self.cut = number
            else:
                self.bad.append(number)

    def _line(self, number: int) -> bytes:
        start = int(self.ends[number - 1]) + 1 if number else 0
        return self.data[start : int(self.ends[number])]

    def _starts(self, line: bytes) -> bool:
        """Whether the line has the columns of a record up to its id; if a newline comes earlier, enough of them."""
        parts = line.split(self.separator, self.id_place + 1)[: self.id_place + 1]
        known = [(part, shape) for part, shape in zip(parts, self.shapes, strict=False) if shape]
        enough = len(parts) > self.id_place or len(known) >= _FEWEST_KNOWN
        return enough and all(shape.fullmatch(part) for part, shape in known)

    def _continues(self, number: int, line: bytes) -> bool:
        """Whether the line may continue a name in the last column of the previous record; messages of sacct do not."""
        if not number or not self.free[-1] or line.startswith(_MESSAGE):
            return False
        return bool(self.counts[number - 1] == self.want) and self._starts(self._line(number - 1))

    def _end_of(self, number: int) -> int:
        """The first line after this one that belongs to another record."""
        last = min(number + _MOST_LINES, len(self.ends))
        for place in range(number + 1, last):
            line = self._line(place)
            if self.counts[place] == self.want or self._starts(line) or line.startswith(_MESSAGE):
                return place
        return last

    def _may_wait(self, number: int) -> bool:
        lines = len(self.ends) - number
        return any(self.free) and lines < _MOST_LINES and len(self.data) - self.ends[number] < MAX_LINE

    def _joined(self, lines: list[bytes]) -> bytes | None:
        """The lines as one record, with a blank for each newline; None if that is impossible or ambiguous."""
        parts = b" ".join(lines).rstrip(b" ").split(self.separator)
        extra = len(parts) - 1 - self.want
        if extra < 0 or extra > _MOST_SEPARATORS or not any(self.free):
            return None
        if not extra:
            return self.separator.join(parts)
        clear = sum(self.free) == 1
        # By the number of extra separators so far: in how many ways (at most 2), and how many came before the column.
        ways, trail = [1] + [0] * extra, list[list[int]]()
        for column, (free, shape) in enumerate(zip(self.free, self.shapes, strict=True)):
            if free:
                total = before = 0
                found, behind = [], []
                for used, number in enumerate(ways):
                    total, before = min(total + number, 2), used if number else before
                    found.append(total)
                    behind.append(before)
                ways = found
                trail.append(behind)
            else:
                if not clear and shape is not None:
                    ways = [
                        n and int(bool(shape.fullmatch(parts[column + used]))) * n
                        for used, n in enumerate(ways)
                    ]
                trail.append(list(range(extra + 1)))
        if ways[extra] != 1:
            return None
        inside, used = [], extra
        for behind in reversed(trail):
            inside.append(used - behind[used])
            used = behind[used]
        place, cells = 0, []
        for more in reversed(inside):
            cells.append(self.joint.join(parts[place : place + more + 1]))
            place += more + 1
        return self.separator.join(cells)
