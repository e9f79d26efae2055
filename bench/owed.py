"""What we owe: each figure's name, where it lies in the results, and what it must not fall behind."""

from typing import Any, NamedTuple

__all__ = ["OWED", "Owed", "rows"]


class Owed(NamedTuple):
    what: str
    bench: str
    path: tuple[str | int, ...]
    at_least: float | None = None
    at_most: float | None = None
    unit: str = ""


OWED = (
    Owed("`tocsin --help`", "startup", ("help_seconds",), at_most=0.2, unit="s"),
    Owed("parse SWF (SDSC-BLUE)", "intake", ("rows_per_second", "swf"), at_least=100_000, unit="rows/s"),
    Owed("parse sacct text", "intake", ("rows_per_second", "sacct"), at_least=100_000, unit="rows/s"),
    Owed("parse a CSV table", "intake", ("rows_per_second", "table"), at_least=100_000, unit="rows/s"),
    Owed(
        "import SDSC-BLUE, parsed and stored",
        "store",
        ("swf", "import_rows_per_second"),
        at_least=40_000,
        unit="rows/s",
    ),
    Owed("import it again", "store", ("swf", "again_rows_per_second"), at_least=40_000, unit="rows/s"),
    Owed(
        "import a million jobs",
        "store",
        ("million", "import_rows_per_second"),
        at_least=40_000,
        unit="rows/s",
    ),
    Owed("peak memory of a million jobs", "store", ("million", "peak_mib"), at_most=1500, unit="MiB"),
    Owed("scheduler of a script recognised", "scripts", ("accuracy_with_header",), at_least=0.99),
    Owed("history: at once over row by row", "history", ("times_faster",), at_least=10, unit="times"),
    Owed("history: two million jobs, a job", "history", ("growth", 3, "microseconds_a_job"), unit="µs"),
    Owed("history: 250,000 jobs, a job", "history", ("growth", 0, "microseconds_a_job"), unit="µs"),
    *(
        Owed(
            f"{log} at submit, {name}", "failure", ("logs", log, "submit", "tocsin", metric, 0), at_least=goal
        )
        for log, metric, name, goal in (
            ("SDSC-BLUE-2000-4.2-cln", "auc", "AUC", 0.92),
            ("SDSC-BLUE-2000-4.2-cln", "average_precision", "average precision", 0.68),
            ("LLNL-Thunder-2007-1.1-cln", "auc", "AUC", 0.955),
            ("LLNL-Thunder-2007-1.1-cln", "average_precision", "average precision", 0.80),
            ("KTH-SP2-1996-2.1-cln", "auc", "AUC", 0.83),
            ("DOST-COARE-2020-cln", "auc", "AUC", 0.79),
        )
    ),
    Owed(
        "SDSC-BLUE, finished record, F1",
        "failure",
        ("logs", "SDSC-BLUE-2000-4.2-cln", "end", "tocsin", "f1", 0),
        at_least=0.90,
    ),
    Owed(
        "SDSC-BLUE's weekly walk",
        "walk",
        ("logs", "SDSC-BLUE-2000-4.2-cln", "seconds"),
        at_most=900,
        unit="s",
    ),
    Owed("its memory", "walk", ("logs", "SDSC-BLUE-2000-4.2-cln", "peak_mib"), at_most=3072, unit="MiB"),
    Owed(
        "its calibration error",
        "walk",
        ("logs", "SDSC-BLUE-2000-4.2-cln", "figures", "calibration_error", 0),
        at_most=0.03,
    ),
)


def rows(results: dict[str, Any]) -> list[str]:
    """The table's rows; what was not run is left out."""
    found = []
    for owed in OWED:
        value: Any = results.get(owed.bench)
        for step in owed.path:
            if isinstance(value, dict):
                value = value.get(str(step))
            elif isinstance(value, list) and isinstance(step, int):
                value = value[step]
        if isinstance(value, int | float):
            found.append(
                f"| {owed.what} | {_bound(owed)} | {_number(value)} {owed.unit} | {_kept(owed, value)} |"
            )
    return found


def _bound(owed: Owed) -> str:
    if owed.at_least is not None:
        return f"≥ {_number(owed.at_least)} {owed.unit}"
    return f"≤ {_number(owed.at_most)} {owed.unit}" if owed.at_most is not None else ""


def _kept(owed: Owed, value: float) -> str:
    if owed.at_least is None and owed.at_most is None:
        return ""
    below = owed.at_least is not None and value < owed.at_least
    above = owed.at_most is not None and value > owed.at_most
    return "**missed**" if below or above else "kept"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.4g}"
