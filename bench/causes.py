"""Causes of failures: what the catalogue says of real outputs, beside what it said when it first met them.

`outputs/*.jsonl` hold a few lines of each output with its source: an issue report, or a program that was run for this.
Patterns were written on `first`; each later set was measured before anybody looked at its misses (`first_contact.json`),
and patterns were then written on it, too. Nothing was learned from the sets in HELD_OUT so far: keep it so. A new set has
no source of an older one, is labelled by the meanings in the catalogue before it is measured (twice, in another order, and
what got two labels is left out), and needs its counts in `first_contact.json`. `thirty_second`, `thirty_third` and
`thirty_fourth` were met twice, and only their counts were looked at: `before` the catalogue and the engine learned from
the sets before them, and after. `thirty_third` and `thirty_fourth` were collected and measured as one set (110 outputs,
27 of them without a cause) and then split by a hash of their sources: one half was learned from, the other was not. So were
`thirty_fifth` and `thirty_sixth` (125 outputs, 40 of them without a cause), and `thirty_seventh` and `thirty_eighth` (152, 48
of them without a cause). Five outputs without a cause of `thirty_fourth` were read, not measured, before the engine learned
from `thirty_fifth`. Who learned from `thirty_seventh` had collected and labelled `thirty_eighth`, too, but not seen what was
missed there. `thirty_ninth` (97, 13 of them without a cause) was collected by somebody who did not know the patterns.

Each output is judged twice: by the kind, and by the group of kinds that a person would tell apart (GROUPS).
"""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tocsin.causes.catalogue import load_catalogue
from tocsin.causes.matching import find_matches, root_cause

__all__ = ["run"]

OUTPUTS = Path(__file__).parent / "outputs"
SETS = (
    *(
        "first",
        "second",
        "programs",
        "third",
        "fourth",
        "more_programs",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
    ),
    *("ninth", "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth"),
    *("seventeenth", "eighteenth", "nineteenth", "twentieth", "last_programs"),
    *("twenty_first", "twenty_second", "twenty_third", "twenty_fourth", "further_programs"),
    *("twenty_fifth", "twenty_sixth", "twenty_seventh", "twenty_eighth", "twenty_ninth"),
    *("thirtieth", "thirty_first", "thirty_second", "thirty_third", "thirty_fourth"),
    *("thirty_fifth", "thirty_sixth", "thirty_seventh", "thirty_eighth", "thirty_ninth"),
)
HELD_OUT = ("thirty_fourth", "thirty_sixth", "thirty_eighth")
"""What counts is their first contact: a change made for another set may have met them since."""
LAST_MET = ("thirty_seventh", "thirty_eighth", "thirty_ninth")
"""The last two collections; the first of them was split in halves."""
LATEST = SETS[SETS.index("twenty_first") :]
"""Sets that were met with the catalogue in its present form, and judged by group, too."""
GENERAL = frozenset({"program_error", "python_exception"})
"""Kinds that only quote the program's own last word: less than the cause, but not another one."""
GROUPS = {
    "communication": ("mpi", "nccl"),
    "something missing": (
        "missing_command",
        "missing_file",
        "missing_library",
        "missing_module",
        "missing_package",
    ),
    "crash": ("abort", "illegal_instruction", "segfault"),
    "error that the program reports": ("bad_input", "program_error", "python_exception"),
    "node trouble": ("gpu", "node"),
}
"""Kinds that call for the same next step; every other kind is a group of its own."""
COUNTS = ("failures", "right", "general", "wrong", "unknown", "harmless", "false")
_JUDGED = COUNTS[1:5]


def run() -> dict[str, Any]:
    catalogue = load_catalogue()
    sets: dict[str, dict[str, Any]] = {}
    misses: list[str] = []
    size = seconds = 0.0
    for name in SETS:
        counts: Counter[str] = Counter(dict.fromkeys(COUNTS, 0))
        groups: Counter[str] = Counter(dict.fromkeys(_JUDGED, 0))
        for row in map(json.loads, (OUTPUTS / f"{name}.jsonl").read_text().splitlines()):
            start = time.perf_counter()
            found = root_cause(find_matches(row["text"], catalogue))
            seconds += time.perf_counter() - start
            size += len(row["text"])
            kind = found.rule.kind if found else None
            judged = _judged(row["cause"], kind)
            counts["failures" if row["cause"] else "harmless"] += 1
            counts[judged] += 1
            if row["cause"]:
                groups[_judged_by_group(row["cause"], kind)] += 1
            if judged not in ("right", "silent"):
                misses.append(f"{row['source']}: {row['cause'] or 'no cause'}, {judged}: {kind or 'nothing'}")
        del counts["silent"]
        sets[name] = {**counts, "groups": dict(groups)}
    contact = json.loads((OUTPUTS / "first_contact.json").read_text())
    return {
        "sets": sets,
        "today": _shares(sets.values()),
        "first_contact": contact,
        "at_first_contact": _shares(contact.values()),
        "latest_at_first_contact": _shares(contact[name] for name in LATEST),
        "groups": GROUPS,
        "held_out_sets": HELD_OUT,
        "held_out": _shares(contact[name] for name in HELD_OUT),
        "last_met_sets": LAST_MET,
        "last_met": _shares(contact[name] for name in LAST_MET),
        "kinds": len(catalogue.kinds),
        "patterns": len(catalogue.rules),
        "misses": misses,
        "milliseconds_for_a_long_output": round(_milliseconds(_failures(), catalogue), 1),
        "milliseconds_for_a_plain_log": round(_milliseconds(_plain_log(), catalogue), 1),
    }


def _judged(truth: str | None, kind: str | None) -> str:
    if truth is None:
        return "false" if kind else "silent"
    if kind == truth:
        return "right"
    return "unknown" if kind is None else "general" if kind in GENERAL else "wrong"


def _judged_by_group(truth: str, kind: str | None) -> str:
    group = {name: each for each, names in GROUPS.items() for name in names}
    if kind and group.get(kind, kind) == group.get(truth, truth):
        return "right"
    return _judged(truth, kind)


def _shares(sets: Any) -> dict[str, Any]:
    total: Counter[str] = Counter()
    groups: Counter[str] = Counter()
    grouped = 0
    for counts in sets:
        total.update({name: counts[name] for name in COUNTS})
        if "groups" in counts:  # of older sets the first contact by group was not recorded
            groups.update(counts["groups"])
            grouped += counts["failures"]
    shares = {f"{name}_share": total[name] / total["failures"] for name in _JUDGED}
    by_group = {f"{name}_share": groups[name] / max(grouped, 1) for name in _JUDGED}
    return {
        **total,
        **shares,
        "false_share": total["false"] / max(total["harmless"], 1),
        "by_group": {**groups, **by_group, "failures": grouped},
    }


def _failures() -> str:
    """Real lines of failures, repeated."""
    return "".join(json.loads(line)["text"] for line in (OUTPUTS / "programs.jsonl").read_text().splitlines())


def _plain_log() -> str:
    """Lines of a simulation that runs well."""
    return "".join(
        f"step {i:8d} energy {i * -1.37:.6f} temperature {i % 300:.3f} loss={i / 7:.5f}\n"
        for i in range(2000)
    )


def _milliseconds(lines: str, catalogue: Any) -> float:
    """Of computing, for the 256 KiB that are read of the end of a long file; its rules were looked up before."""
    text = (lines * (1 + (1 << 18) // len(lines)))[: 1 << 18]
    start = time.thread_time()
    find_matches(text, catalogue)
    return (time.thread_time() - start) * 1000


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
