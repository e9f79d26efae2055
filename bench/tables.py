"""The results as tables for people: what was foreseen on which log, by whom, and how sure that is."""

from collections.abc import Iterator
from typing import Any

__all__ = ["sections"]

Results = dict[str, Any]


def sections(results: Results) -> list[str]:
    """The sections of the page; what was not run is left out."""
    found: list[str] = []
    for name, tell in (
        ("failure", _failure),
        ("walk", _walk),
        ("imbalance", _imbalance),
        ("verdict", _verdict),
        ("workload", _workload),
        ("execution", _execution),
    ):
        if name in results:
            found += tell(results[name])
    return found


def _failure(told: Results) -> Iterator[str]:
    yield "## Failure prediction on public logs"
    yield ""
    yield (
        f"Target {told['target']}; {told['split']}. AUC and average precision with 95 % intervals of blocks of time. Beside "
        f"tocsin ({told['trials']} trials) stands the published recipe in the same run: XGBoost, random search "
        f"({told['rival_trials']} trials), the log's own fields. Outcomes count as known {told['lag']} s after the end; `lag 0` "
        "counts them at once, as most papers do. `end` is the finished record: known only after the end, and a warning for nobody."
    )
    yield ""
    yield "| log | stage | jobs | failing | tocsin AUC | AP | F1 | published AUC | AP | F1 |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for log, stages in told["logs"].items():
        for stage, row in stages.items():
            if "refused" in row:
                yield f"| {log} | {stage} | {row['refused']} | | | | | | | |"
                continue
            ours, theirs = row["tocsin"], row["published"]
            yield (
                f"| {log} | {stage} | {row['test']:,} | {row['failing']:.1%} | {_interval(ours['auc'])} "
                f"| {_interval(ours['average_precision'])} | {_number(ours['f1'])} | {_number(theirs['auc'])} "
                f"| {_number(theirs['average_precision'])} | {_number(theirs['f1'])} |"
            )
    yield ""
    yield "![Area under the ROC curve on each log, tocsin and the published recipe](pictures/failure-auc.svg)"
    yield ""
    yield "![Precision and recall on each log](pictures/failure-precision-recall.svg)"
    yield ""
    yield "Both classes, each as the positive one at probability 0.5 (the form of HPE's Table I, whose positive class is completed):"
    yield ""
    yield "| log at submit | class | jobs | precision | recall | F1 |"
    yield "|---|---|---|---|---|---|"
    for log, stages in told["logs"].items():
        for name, row in stages.get("submit", {}).get("both_classes", {}).items():
            yield f"| {log} | {name} | {row['jobs']:,} | {row['precision']:.3f} | {row['recall']:.3f} | {row['f1']:.3f} |"
    yield ""


def _walk(told: Results) -> Iterator[str]:
    yield "## Weekly walk"
    yield ""
    yield (
        f"Target {told['target']} at {told['stage']}: trained anew every {told['every_days']} days on all that was known, each job "
        "after the first fifth predicted once. Run time: completed jobs within the bound for 95 %; in brackets all ended jobs. "
        "The last 20 % are the jobs that the single split predicts. Audit: predictions before T that differ when all that became known after T is changed."
    )
    yield ""
    yield "| log | predicted | AUC | AP | AUC, last 20 % | AP | calibration error | run time held | seconds | MiB | audit |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for log, row in told["logs"].items():
        figures, last, audit = row["figures"], row["last_fifth"], row.get("audit")
        proof = f"{audit['differing']} of {audit['compared']:,}" if audit else ""
        held = (
            f"{row['runtime_covered']:.1%} ({row['runtime_covered_all']:.1%})"
            if row["runtime_covered"]
            else ""
        )
        yield (
            f"| {log} | {row['predicted']:,} | {_interval(figures['auc'])} | {_interval(figures['average_precision'])} "
            f"| {_number(last['auc'])} | {_number(last['average_precision'])} | {_number(figures['calibration_error'])} | {held} | {row['seconds']:,.0f} | {row['peak_mib']:,} | {proof} |"
        )
    yield ""


def _imbalance(told: Results) -> Iterator[str]:
    """HPE's Table I on our logs (their classes: 0 failed, 1 completed; a score of 0.5 decides), and what knowledge is worth."""
    logs = {log: row for log, row in told.items() if isinstance(row, dict)}
    yield "## Imbalance"
    yield ""
    yield (
        "The same model at submit, first 80 % by time, last 20 % predicted. At a raw score of 0.5, as HPE's Table I has it: "
        "failed / completed. AUC, AP and the best F1 of the failed class are of calibrated probabilities with a threshold chosen "
        "inside the training."
    )
    yield ""
    yield "| log | strategy | precision | recall | F1 | accuracy | AUC | AP | best F1 |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for log, row in logs.items():
        for name, figures in (*row["strategies"].items(), *row["knowing"].items()):
            half = figures["at_half"]
            both = [f"{half['failed'][n]:.2f}/{half['completed'][n]:.2f}" for n in range(3)]
            values = [f"{figures[key]:.3f}" for key in ("auc", "average_precision", "f1")]
            yield f"| {log} | {name} | {' | '.join(both)} | {half['accuracy']:.2f} | {' | '.join(values)} |"
    yield ""
    yield "What really helps:"
    yield ""
    yield from (_what_helps(log, row) for log, row in logs.items())
    yield ""


def _what_helps(log: str, row: Results) -> str:
    sampled = {name: figures for name, figures in row["strategies"].items() if name != "none"}
    none = row["strategies"]["none"]
    best = max(sampled, key=lambda name: sampled[name]["average_precision"])
    moved = sampled[best]["average_precision"] - none["average_precision"]
    alone, _, after = row["knowing"].values()
    return (
        f"- {log}: the best way to weigh or draw rows ({best}) moves average precision by {moved:+.3f}; it moves alarms along the "
        f"same curve, as a threshold does. History moves it from {alone['average_precision']:.3f} to "
        f"{none['average_precision']:.3f}. Waiting for the finished record gives {after['average_precision']:.3f}, too late for anybody."
    )


def _verdict(told: Results) -> Iterator[str]:
    """What a verdict on failure costs."""
    yield "## What a verdict on failure costs"
    yield ""
    yield f"At {told['stage']}, warm; one job at a time from a ledger as in service, and a whole log at once."
    yield ""
    yield "| jobs of | features | verdict, median | 95 % | with reasons, median | 95 % |"
    yield "|---|---|---|---|---|---|"
    for log, row in told["one_job"].items():
        plain, reasons = row["assess"], row["explain"]
        yield (
            f"| {log} | {row['features']} | {plain['median_ms']:.2f} ms | {plain['p95_ms']:.2f} ms "
            f"| {reasons['median_ms']:.2f} ms | {reasons['p95_ms']:.2f} ms |"
        )
    yield ""
    batch = told["batch"]
    yield (
        f"In batch ({batch['jobs']:,} jobs): {batch['scores_per_second']:,} scores a second, "
        f"{batch['scores_with_history_per_second']:,} with the history of the log, {batch['verdicts_per_second']:,} whole verdicts, "
        f"{batch['verdicts_with_history_per_second']:,} with history."
    )
    yield ""


def _workload(told: Results) -> Iterator[str]:
    """What scripts are: tocsin beside its rivals, misuse, disguise, kinds and speed."""
    yield "## What scripts are"
    yield ""
    yield f"{told['scripts']:,} scripts; {told['split']}. The class is AI; F1 is of this class."
    yield ""
    yield "| scripts | who | macro-F1 | F1 | TP | TN | FP | FN |"
    yield "|---|---|---|---|---|---|---|---|"
    sets = {
        "script_ai": "SCRIPT-AI",
        "jobspec": "jobspec",
        "jobspec_without_ai_word": "jobspec, no AI word",
    }
    for key, name in sets.items():
        for who, row in told[key].items():
            if isinstance(row, dict):
                yield f"| {name} | {who} | {_figures(row)} |"
    yield ""
    for key, name in sets.items():
        yield f"{name}: {told[key]['split']}."
    yield ""
    yield from _misuse(told["misuse"])
    yield from _disguise(told["disguise"])
    yield from _speed(told["speed"])
    said = [
        f"{kind} told of {row['told']:,} of {row['labelled']:,} scripts that SCRIPT-AI labels, right for {row['right']:,}"
        for kind, row in told["kinds"].items()
    ]
    yield f"{'; '.join(said)}."
    yield ""


def _misuse(told: Results) -> Iterator[str]:
    yield "### Misuse"
    yield ""
    yield f"Recall, {told['split']}; headers are taken from all scripts alike. False alarms are among the innocent scripts."
    yield ""
    operations = {name: row for name, row in told.items() if isinstance(row, dict)}
    variants = next(iter(operations.values()))["recall"]
    yield f"| operation | scripts | {' | '.join(variants)} | false alarms | rate |"
    yield "|---" * (4 + len(variants)) + "|"
    for name, row in operations.items():
        recall = " | ".join(f"{value:.3f}" for value in row["recall"].values())
        yield (
            f"| {name} | {row['scripts']:,} | {recall} | {row['false_alarms']:,} | {row['false_alarm_rate']:.3%} |"
        )
    yield ""
    yield "| repository left out with its owner | operation | found | scripts |"
    yield "|---|---|---|---|"
    for name, row in operations.items():
        for repository, (hits, scripts) in row["repositories"].items():
            yield f"| {repository} | {name} | {hits:,} | {scripts:,} |"
    yield ""


def _disguise(told: Results) -> Iterator[str]:
    yield "### Disguise"
    yield ""
    yield "Lines replaced by random strings, other ones than in the training; macro-F1 and F1 of AI."
    yield ""
    shares = list(next(iter(told.values())))
    yield f"| scripts | figure | {' | '.join(f'{float(share):.0%}' for share in shares)} |"
    yield "|---" * (2 + len(shares)) + "|"
    for name, curve in told.items():
        for figure, word in (("macro_f1", "macro-F1"), ("f1", "F1 of AI")):
            values = " | ".join(f"{curve[share][figure]:.3f}" for share in shares)
            yield f"| {name} | {word} | {values} |"
    yield ""


def _speed(told: Results) -> Iterator[str]:
    yield "### Speed"
    yield ""
    yield (
        f"A script alone: median {told['median_seconds'] * 1000:.2f} ms, 99 % within {told['p99_seconds'] * 1000:.2f} ms; the weights "
        f"are read in {told['load_seconds']:.2f} s. In batch {told['scripts_per_second_one_core']:,} scripts a second on one core, "
        f"{told['scripts_per_second_two_cores']:,} on two."
    )
    if slow := told.get("sentence_transformers"):
        yield (
            f"sentence-transformers + scikit-learn, one at a time: median {slow['median_seconds'] * 1000:.1f} ms, "
            f"so tocsin is {told['times_faster']:,.0f} times faster."
        )
    yield ""
    yield "| jobs a day | share of one core |"
    yield "|---|---|"
    for jobs, share in told["jobs_a_day_to_share_of_a_core"].items():
        yield f"| {int(jobs):,} | {share:.3%} |"
    yield ""


def _figures(row: Results) -> str:
    counts = " | ".join(f"{row[key]:,}" for key in ("tp", "tn", "fp", "fn"))
    return f"{row['macro_f1']:.3f} | {row['f1']:.3f} | {counts}"


def _execution(told: Results) -> Iterator[str]:
    """Macro-F1 of each classifier at the best setting (the paper's Table 5), and what limits it."""
    best = told["best"]
    yield "## What ended jobs were, by what they did"
    yield ""
    yield f"{told['data']}; {told['split']}. α {best['alpha_hours']} h, β {best['beta_hours']} h: {best['chosen']}."
    yield ""
    yield "| classifier | macro-F1 | F1 | TP | TN | FP | FN |"
    yield "|---|---|---|---|---|---|---|"
    for name, row in told["same_setting"].items():
        yield f"| {name} | {_figures(row)} |"
    yield ""
    for name, grid in told["macro_f1"].items():
        betas = list(next(iter(grid.values())))
        yield f"| {name}, macro-F1 | {' | '.join(betas)} |"
        yield "|---" * (1 + len(betas)) + "|"
        for alpha, row in grid.items():
            yield f"| {alpha} | {' | '.join(f'{row[beta]:.3f}' for beta in betas)} |"
        yield ""
    yield told["reason"]
    yield ""
    yield "| jobs a day | training | screening | share of one core |"
    yield "|---|---|---|---|"
    for row in told["overhead"]:
        yield (
            f"| {row['jobs_a_day']:,} | {row['train_seconds']:.1f} s | {row['screen_seconds']:.1f} s "
            f"| {row['share_of_one_core']:.3%} |"
        )
    yield ""


def _number(value: list[float | None]) -> str:
    return "" if value[0] is None else f"{value[0]:.3f}"


def _interval(value: list[float | None]) -> str:
    if value[0] is None:
        return ""
    return f"{value[0]:.3f}" + (f" [{value[1]:.3f}–{value[2]:.3f}]" if value[1] is not None else "")
