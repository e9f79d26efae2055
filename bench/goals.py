"""The goals of the benchmarks: each figure's name, its place in the results, and its bound."""

from typing import Any, NamedTuple

__all__ = ["GOALS", "Goal", "rows"]


class Goal(NamedTuple):
    what: str
    bench: str
    path: tuple[str | int, ...]
    at_least: float | None = None
    at_most: float | None = None
    unit: str = ""
    below: tuple[str | int, ...] | None = None
    """The place of a second figure, if the bound is on how far the first stays below it."""


_AI = ("script_ai", "tocsin")

GOALS = (
    Goal("`tocsin --help`", "startup", ("help_seconds",), at_most=0.2, unit="s"),
    Goal("cold `tocsin check --local`", "startup", ("check_seconds",), at_most=1.5, unit="s"),
    Goal(
        "cold `tocsin check --local` with a failure model",
        "startup",
        ("check_with_failure_model_seconds",),
        at_most=1.5,
        unit="s",
    ),
    Goal("parse SWF (SDSC-BLUE)", "intake", ("rows_per_second", "swf"), at_least=100_000, unit="rows/s"),
    Goal("parse sacct text", "intake", ("rows_per_second", "sacct"), at_least=100_000, unit="rows/s"),
    Goal("parse a CSV table", "intake", ("rows_per_second", "table"), at_least=100_000, unit="rows/s"),
    Goal(
        "import SDSC-BLUE, parsed and stored",
        "store",
        ("swf", "import_rows_per_second"),
        at_least=40_000,
        unit="rows/s",
    ),
    Goal(
        "import SDSC-BLUE again (nothing new)",
        "store",
        ("swf", "again_rows_per_second"),
        at_least=40_000,
        unit="rows/s",
    ),
    Goal(
        "import a million jobs",
        "store",
        ("million", "import_rows_per_second"),
        at_least=40_000,
        unit="rows/s",
    ),
    Goal("import a million jobs, peak memory", "store", ("million", "peak_mib"), at_most=1500, unit="MiB"),
    Goal("scheduler of a script recognized", "scripts", ("accuracy_with_header",), at_least=0.99),
    Goal("requests that Slurm refuses found by `check`", "refusals", ("share_found",), at_least=0.98),
    Goal("requests that Slurm accepts called impossible", "refusals", ("false",), at_most=0),
    *(
        Goal(f"`sbatch` with both hooks, {words}, against none", "hooks", ("over_none", state), at_most=1.1)
        for state, words in (
            ("stopped", "service stopped"),
            ("killed", "service killed"),
            ("hung", "service hung for more than 3 s"),
        )
    ),
    *(
        Goal(
            f"submit verdict on a real Slurm by the API, 95 % of 200 jobs ({words})",
            "beside_slurm",
            (way, "p95_seconds"),
            at_most=2,
            unit="s",
        )
        for way, words in (
            ("commands", "by commands"),
            ("slurmrestd", "by slurmrestd"),
            ("postgresql", "by commands, store in PostgreSQL"),
        )
    ),
    Goal(
        "miners held inside the screening window, of 10",
        "beside_slurm",
        ("commands", "miners_held"),
        at_least=10,
    ),
    Goal(
        "tests of actions, tokens, hooks and service that fail on Slurm 24.11 and 26.05",
        "releases",
        ("failed",),
        at_most=0,
    ),
    Goal("a check by the service, median at 50/s", "service", ("checks", "p50_ms"), at_most=10, unit="ms"),
    Goal("a check by the service, 99 % at 50/s", "service", ("checks", "p99_ms"), at_most=50, unit="ms"),
    Goal("checks that failed, of 3,000", "service", ("checks", "errors"), at_most=0),
    Goal(
        "of 100 listeners, those without events", "service", ("events", "clients_without_events"), at_most=0
    ),
    Goal(
        "memory of the service, growth from 50,000 to 100,000 verdicts",
        "service",
        ("memory", "growth_mib_second_half"),
        at_most=20,
        unit="MiB",
    ),
    Goal(
        "shipped failure model on clusters never seen: mean AUC behind own-trained at submit",
        "dayone",
        ("mean_loss", "submit"),
        at_most=0.04,
    ),
    Goal(
        "months in which the blend is over 0.005 of AUC behind the better model",
        "walk",
        ("blend_months_behind",),
        at_most=0,
    ),
    Goal(
        "months in which the promised precision lies in the interval of the model's alarms or below, or there were none",
        "walk",
        ("promise_possible",),
        at_least=0.8,
    ),
    Goal("mutated scripts, models and logs read", "mutations", ("cases",), at_least=30_000),
    Goal("mutated files that end in an exception", "mutations", ("exceptions",), at_most=0),
    Goal("mutated files that end in a crash", "mutations", ("crashes",), at_most=0),
    Goal("mutated files over 1 s of CPU time", "mutations", ("over_a_second",), at_most=0),
    Goal("kills of a writing command that lost, doubled or left something", "kills", ("wrong",), at_most=0),
    Goal(
        "10,000 jobs through Kafka, 20 kills, 5 cuts: verdicts lost or doubled",
        "streams",
        ("wrong",),
        at_most=0,
    ),
    Goal(
        "10,000 jobs through slurmrestd, 20 kills, store locked 5 times: verdicts lost or doubled",
        "faults",
        ("wrong",),
        at_most=0,
    ),
    Goal("the same on Slurm 26.05: refusals found", "live", ("refusals", "share_found"), at_least=0.98),
    Goal("the same on Slurm 26.05: called impossible", "live", ("refusals", "false"), at_most=0),
    *(
        Goal(
            f"an outcome on a real Slurm is in history ({way}), 95 %",
            "outcomes",
            (way, "p95_seconds"),
            at_most=10,
            unit="s",
        )
        for way in ("commands", "slurmrestd")
    ),
    Goal(
        "node agent, 128 CPUs and 256 threads at 1 Hz",
        "agent",
        ("core_percent",),
        at_most=0.5,
        unit="% of a core",
    ),
    Goal("anomalies in public series, mean AUC-PR over the better rival", "series", ("ratio",), at_least=1.3),
    Goal("128,000 windows of 100 s scored", "traces_speed", ("seconds",), at_most=60, unit="s"),
    Goal(
        "scoring windows, speed-up over eager PyTorch",
        "traces_speed",
        ("times_faster",),
        at_least=3,
        unit="times",
    ),
    *(
        Goal(
            f"seeds of 10 that separate normal and `bad_io` without error ({data}, {architecture.replace('_', ' ')})",
            "traces",
            ("table2", data, architecture, "separated_seeds"),
            at_least=10,
        )
        for data in ("recorded", "simulated")
        for architecture in ("vanilla", "node_graph", "job_graph")
    ),
    Goal("node agent, peak memory", "agent", ("peak_mib",), at_most=60, unit="MiB"),
    Goal(
        "history features, speed-up over a loop over rows",
        "history",
        ("times_faster",),
        at_least=10,
        unit="times",
    ),
    Goal(
        "history features, time per job with 2,000,000 jobs",
        "history",
        ("growth", 3, "microseconds_a_job"),
        unit="µs",
    ),
    Goal(
        "history features, time per job with 250,000 jobs",
        "history",
        ("growth", 0, "microseconds_a_job"),
        unit="µs",
    ),
    *(
        Goal(
            f"{log} at submit, {name}",
            "failure",
            ("logs", log, "submit", "tocsin", metric, 0),
            at_least=bound,
        )
        for log, metric, name, bound in (
            ("SDSC-BLUE-2000-4.2-cln", "auc", "AUC", 0.92),
            ("SDSC-BLUE-2000-4.2-cln", "average_precision", "average precision", 0.68),
            ("LLNL-Thunder-2007-1.1-cln", "auc", "AUC", 0.955),
            ("LLNL-Thunder-2007-1.1-cln", "average_precision", "average precision", 0.80),
            ("KTH-SP2-1996-2.1-cln", "auc", "AUC", 0.83),
            ("DOST-COARE-2020-cln", "auc", "AUC", 0.79),
        )
    ),
    Goal(
        "SDSC-BLUE, finished record, F1",
        "failure",
        ("logs", "SDSC-BLUE-2000-4.2-cln", "end", "tocsin", "f1", 0),
        at_least=0.90,
    ),
    Goal(
        "SDSC-BLUE, weekly back-test, time",
        "walk",
        ("logs", "SDSC-BLUE-2000-4.2-cln", "seconds"),
        at_most=900,
        unit="s",
    ),
    Goal(
        "SDSC-BLUE, weekly back-test, peak memory",
        "walk",
        ("logs", "SDSC-BLUE-2000-4.2-cln", "peak_mib"),
        at_most=3072,
        unit="MiB",
    ),
    Goal(
        "SDSC-BLUE, weekly back-test, calibration error",
        "walk",
        ("logs", "SDSC-BLUE-2000-4.2-cln", "figures", "calibration_error", 0),
        at_most=0.03,
    ),
    *(
        Goal(
            f"failure verdict on one job, {how} ({log})",
            "verdict",
            ("one_job", log, step, "median_ms"),
            at_most=most,
            unit="ms",
        )
        for log in ("KTH-SP2-1996-2.1-cln", "demo")
        for step, how, most in (("assess", "not explained", 2), ("explain", "explained", 15))
    ),
    Goal(
        "failure scores in batch", "verdict", ("batch", "scores_per_second"), at_least=50_000, unit="jobs/s"
    ),
    Goal("AI scripts, SCRIPT-AI, macro-F1 on unseen sources", "workload", (*_AI, "macro_f1"), at_least=0.92),
    Goal(
        "AI scripts, jobspec, macro-F1 on unseen owners",
        "workload",
        ("jobspec", "tocsin", "macro_f1"),
        at_least=0.96,
    ),
    Goal(
        "AI scripts, jobspec without AI words, macro-F1",
        "workload",
        ("jobspec_without_ai_word", "tocsin", "macro_f1"),
        at_least=0.93,
    ),
    *(
        goal
        for data in ("jobspec", "script-ai")
        for goal in (
            Goal(
                f"macro-F1 lost with 50 % of the lines obfuscated ({data})",
                "workload",
                ("disguise", data, "0.5", "macro_f1"),
                at_most=0.04,
                below=("disguise", data, "0.0", "macro_f1"),
            ),
            Goal(
                f"macro-F1 with 70 % of the lines obfuscated ({data})",
                "workload",
                ("disguise", data, "0.7", "macro_f1"),
                at_least=0.85,
            ),
            Goal(
                f"macro-F1 with 90 % of the lines obfuscated ({data})",
                "workload",
                ("disguise", data, "0.9", "macro_f1"),
                at_least=0.65,
            ),
        )
    ),
    *(
        goal
        for operation, recall in (("cryptomining", 0.95), ("cyber", 0.90))
        for goal in (
            Goal(
                f"{operation}, recall on unseen owners",
                "workload",
                ("misuse", operation, "recall", "as they are"),
                at_least=recall,
            ),
            Goal(
                f"{operation}, false-positive rate on jobspec",
                "workload",
                ("misuse", operation, "false_alarm_rate"),
                at_most=0.001,
            ),
        )
    ),
    Goal(
        "false misuse on innocent scripts that look like it",
        "misuse",
        ("innocent", "false_misuse_rate"),
        at_most=0.001,
    ),
    Goal("disguised miners without a sign, all sets", "misuse", ("all_disguises", "fine"), at_most=0),
    Goal(
        "one script, speed-up over sentence-transformers",
        "workload",
        ("speed", "times_faster"),
        at_least=10,
        unit="times",
    ),
    Goal(
        "scripts in batch on two cores",
        "workload",
        ("speed", "scripts_per_second_two_cores"),
        at_least=1000,
        unit="scripts/s",
    ),
    Goal(
        "`tocsin classify`, whole command",
        "startup",
        ("classify_scripts_per_second",),
        at_least=1000,
        unit="scripts/s",
    ),
    Goal(
        "causes of failures named right, newest outputs at first contact",
        "causes",
        ("last_met", "right_share"),
        at_least=0.85,
    ),
    Goal(
        "another cause named, newest outputs at first contact",
        "causes",
        ("last_met", "wrong_share"),
        at_most=0.05,
    ),
    Goal(
        "causes named right by group, newest outputs at first contact",
        "causes",
        ("last_met", "by_group", "right_share"),
        at_least=0.85,
    ),
    Goal(
        "another group named, newest outputs at first contact",
        "causes",
        ("last_met", "by_group", "wrong_share"),
        at_most=0.05,
    ),
    Goal(
        "causes named right at first contact, all sets",
        "causes",
        ("at_first_contact", "right_share"),
        at_least=0.85,
    ),
    Goal("another cause named at first contact", "causes", ("at_first_contact", "wrong_share"), at_most=0.05),
    Goal("causes named right today, all outputs", "causes", ("today", "right_share"), at_least=0.85),
    Goal("another cause named today", "causes", ("today", "wrong_share"), at_most=0.05),
    Goal("a cause named in an output without one", "causes", ("today", "false_share"), at_most=0.05),
    Goal("execution-time classification, macro-F1", "execution", ("best", "all", "macro_f1")),
)


def rows(results: dict[str, Any]) -> list[str]:
    """The rows of the table; figures that were not measured are left out."""
    found = []
    for goal in GOALS:
        value = _at(results.get(goal.bench), goal.path)
        if goal.below is not None and value is not None:
            whole = _at(results.get(goal.bench), goal.below)
            value = None if whole is None else whole - value
        if value is not None:
            found.append(
                f"| {goal.what} | {_bound(goal)} | {_amount(value, goal.unit)} | {_met(goal, value)} |"
            )
    return found


def _at(value: Any, path: tuple[str | int, ...]) -> float | None:
    """The number at this place, if there is one."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value if isinstance(value, int | float) else None


def _bound(goal: Goal) -> str:
    if goal.at_least is not None:
        return f"≥ {_amount(goal.at_least, goal.unit)}"
    return f"≤ {_amount(goal.at_most, goal.unit)}" if goal.at_most is not None else ""


def _met(goal: Goal, value: float) -> str:
    if goal.at_least is None and goal.at_most is None:
        return ""
    below = goal.at_least is not None and value < goal.at_least
    above = goal.at_most is not None and value > goal.at_most
    return "**missed**" if below or above else "met"


def _amount(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.4g}"
    return f"{number} {unit}".rstrip()
