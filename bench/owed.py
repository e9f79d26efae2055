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
    below: tuple[str | int, ...] | None = None
    """Where a second figure lies, if owed is how far the first stays below it."""


_AI = ("script_ai", "tocsin")

OWED = (
    Owed("`tocsin --help`", "startup", ("help_seconds",), at_most=0.2, unit="s"),
    Owed("cold `tocsin check --local`", "startup", ("check_seconds",), at_most=1.5, unit="s"),
    Owed(
        "the same with a failure model",
        "startup",
        ("check_with_failure_model_seconds",),
        at_most=1.5,
        unit="s",
    ),
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
    *(
        Owed(
            f"one job's verdict on failure, {how} ({log})",
            "verdict",
            ("one_job", log, step, "median_ms"),
            at_most=most,
            unit="ms",
        )
        for log in ("KTH-SP2-1996-2.1-cln", "demo")
        for step, how, most in (("assess", "without reasons", 2), ("explain", "with reasons", 15))
    ),
    Owed(
        "failure scores in batch", "verdict", ("batch", "scores_per_second"), at_least=50_000, unit="jobs/s"
    ),
    Owed("AI, SCRIPT-AI, sources left out, macro-F1", "workload", (*_AI, "macro_f1"), at_least=0.92),
    Owed(
        "AI, jobspec, owners left out, macro-F1", "workload", ("jobspec", "tocsin", "macro_f1"), at_least=0.96
    ),
    Owed(
        "those without an AI word",
        "workload",
        ("jobspec_without_ai_word", "tocsin", "macro_f1"),
        at_least=0.93,
    ),
    *(
        owed
        for data in ("jobspec", "script-ai")
        for owed in (
            Owed(
                f"macro-F1 lost with 50 % of the lines disguised ({data})",
                "workload",
                ("disguise", data, "0.5", "macro_f1"),
                at_most=0.04,
                below=("disguise", data, "0.0", "macro_f1"),
            ),
            Owed(
                f"macro-F1 with 70 % ({data})",
                "workload",
                ("disguise", data, "0.7", "macro_f1"),
                at_least=0.85,
            ),
            Owed(
                f"macro-F1 with 90 % ({data})",
                "workload",
                ("disguise", data, "0.9", "macro_f1"),
                at_least=0.65,
            ),
        )
    ),
    *(
        owed
        for operation, recall in (("cryptomining", 0.95), ("cyber", 0.90))
        for owed in (
            Owed(
                f"{operation}, owners left out, recall",
                "workload",
                ("misuse", operation, "recall", "as they are"),
                at_least=recall,
            ),
            Owed(
                f"{operation}, false-positive rate over jobspec",
                "workload",
                ("misuse", operation, "false_alarm_rate"),
                at_most=0.001,
            ),
        )
    ),
    Owed(
        "a script, over sentence-transformers one at a time",
        "workload",
        ("speed", "times_faster"),
        at_least=10,
        unit="times",
    ),
    Owed(
        "scripts in batch, two cores",
        "workload",
        ("speed", "scripts_per_second_two_cores"),
        at_least=1000,
        unit="scripts/s",
    ),
    Owed(
        "`tocsin classify`, all of it",
        "startup",
        ("classify_scripts_per_second",),
        at_least=1000,
        unit="scripts/s",
    ),
    Owed("what ended jobs were, macro-F1", "execution", ("best", "all", "macro_f1")),
)


def rows(results: dict[str, Any]) -> list[str]:
    """The table's rows; what was not run is left out."""
    found = []
    for owed in OWED:
        value = _at(results.get(owed.bench), owed.path)
        if owed.below is not None and value is not None:
            whole = _at(results.get(owed.bench), owed.below)
            value = None if whole is None else whole - value
        if value is not None:
            found.append(
                f"| {owed.what} | {_bound(owed)} | {_number(value)} {owed.unit} | {_kept(owed, value)} |"
            )
    return found


def _at(value: Any, path: tuple[str | int, ...]) -> float | None:
    """The number that lies there, if one does."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value if isinstance(value, int | float) else None


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
