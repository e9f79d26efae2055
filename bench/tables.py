"""The sections of docs/benchmarks.md, made from the results."""

from collections.abc import Iterator
from typing import Any

from bench.dayone_tables import dayone_section
from bench.traces_tables import speed_section, traces_section
from bench.walk_tables import walk_section

__all__ = ["sections"]

Results = dict[str, Any]


def sections(results: Results) -> list[str]:
    """The lines of all sections; benchmarks that were not run are left out."""
    found: list[str] = []
    for name, section in (
        ("failure", _failure),
        ("dayone", dayone_section),
        ("walk", walk_section),
        ("imbalance", _imbalance),
        ("verdict", _verdict),
        ("workload", _workload),
        ("misuse", _innocent),
        ("execution", _execution),
        ("causes", _causes),
        ("beside_slurm", _beside_slurm),
        ("faults", _faults),
        ("live", _live),
        ("refusals", _refusals),
        ("traces", traces_section),
        ("traces_speed", speed_section),
    ):
        if name in results:
            found += section(results[name])
    return found


def _causes(result: Results) -> Iterator[str]:
    yield "## Causes of failures"
    yield ""
    yield (
        f"{result['kinds']} kinds, {result['patterns']} patterns, on excerpts of real outputs: from issue reports, and from "
        "programs that were run for this (out of memory, a full disk, a missing library, MPI, Fortran, R, Java and others). "
        "`general`: only the program's own error or Python's exception is quoted, which is less than the cause and not another "
        "one. `harmless`: outputs of jobs that completed, or that name no cause. Patterns were written on `first`; every other "
        "set was measured before anybody looked at what was missed in it (*first contact*), and then learned from, except "
        f"{', '.join(f'`{name}`' for name in result['held_out_sets'])}."
    )
    yield ""
    yield (
        "*By group*: kinds that call for the same next step count as one ("
        + "; ".join(f"{name}: {', '.join(kinds)}" for name, kinds in result["groups"].items())
        + "). This is the coarser question: memory, GPU memory, communication, something missing, disk, licence, time "
        "limit, crash, an error of the program, the node."
    )
    yield ""
    yield (
        "| set | failures | right | general | wrong | unknown | harmless | false | first contact: right | wrong "
        "| by group: right | wrong |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for name, now in result["sets"].items():
        then = result["first_contact"].get(name)
        contact = f"{then['right']} of {then['failures']} | {then['wrong']}" if then else "|"
        groups = then.get("groups") if then else None
        by_group = f"{groups['right']} of {then['failures']} | {groups['wrong']}" if then and groups else "|"
        yield (
            f"| {name} | {now['failures']} | {now['right']} | {now['general']} | {now['wrong']} | {now['unknown']} "
            f"| {now['harmless']} | {now['false']} | {contact} | {by_group} |"
        )
    yield ""
    contacts = [
        ("over all sets", result["at_first_contact"]),
        ("from `twenty_first` on", result["latest_at_first_contact"]),
        (f"on {', '.join(f'`{name}`' for name in result['held_out_sets'])}", result["held_out"]),
    ]
    if "last_met" in result:
        together = ", ".join(f"`{name}`" for name in result["last_met_sets"])
        contacts.append((f"on {together}, the last two collections", result["last_met"]))
    for label, whole in contacts:
        grouped = whole["by_group"]
        yield (
            f"At first contact {label}: {whole['right_share']:.1%} of {whole['failures']:,} right, {whole['wrong_share']:.1%} "
            f"wrong, {whole['general_share']:.1%} general, {whole['unknown_share']:.1%} unknown; by group "
            f"{grouped['right_share']:.1%} of {grouped['failures']:,} right, {grouped['wrong_share']:.1%} wrong. A cause was "
            f"named in {whole['false']} of {whole['harmless']} outputs without one."
        )
        yield ""
    yield (
        "Expect the figures from `twenty_first` on of programs that the catalogue has not met. A linear model over the words and "
        "word groups of each line, trained on the other sets and on the patterns, was tried as a second opinion where no "
        "pattern matched. Few more causes were right, and more harmless outputs got one, so it is not used."
    )
    yield ""
    yield (
        f"256 KiB of output take {result['milliseconds_for_a_long_output']:.0f} ms of computing if they are all failures, "
        f"{result['milliseconds_for_a_plain_log']:.0f} ms if they are a plain log."
    )
    yield ""


def _beside_slurm(result: Results) -> Iterator[str]:
    if "missing" in result:
        return
    yield f"## The service beside a real Slurm {result['slurm']}"
    yield ""
    yield (
        f"{result['jobs']} jobs that are bound to run out of memory, one every half second, with a policy that acts: each is "
        "also put off by the thread that gives the verdicts. Seconds from the return of sbatch until the verdict arrives as an "
        "event of the API. Then miners, one after the other: held before their screening window of 30 s "
        "was over, and seconds until that."
    )
    yield ""
    yield "| Slurm is read by | p50 | p95 | most | without reasons | without advice | miners held | median | most | load |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for way, words in (
        ("commands", "commands"),
        ("slurmrestd", "slurmrestd"),
        ("postgresql", "commands; the store is PostgreSQL"),
    ):
        if row := result.get(way):
            yield (
                f"| {words} | {row['p50_seconds']} s | {row['p95_seconds']} s | {row['most_seconds']} s "
                f"| {row['without_reasons']} | {row['without_advice']} | {row['miners_held']} of {row['miners']} "
                f"| {row['hold_median_seconds']} s | {row['hold_most_seconds']} s | {row['load'][0]} |"
            )
    yield ""


def _faults(result: Results) -> Iterator[str]:
    yield "## Faults"
    yield ""
    yield (
        f"{result['jobs']:,} jobs of a replayed slurmrestd (recorded replies of 22.05, a timetable of {result['seconds']:.0f} s) "
        f"while `tocsin serve` was killed {result['kills']} times and its store locked {result['locks']} times, once for longer "
        f"than it waits: of {result['verdicts']:,} verdicts that were due, {result['stored_lost']} are missing and "
        f"{result['stored_twice']} were given twice in the store, {result['logged_lost']} and {result['logged_twice']} in the "
        f"log; {result['late']:,} came after their stage and are marked so."
    )
    yield ""


def _live(result: Results) -> Iterator[str]:
    if "missing" in result:
        return
    yield "## One burst of jobs, read by commands and by slurmrestd"
    yield ""
    yield (
        "Jobs submitted at once, most of which start at once. By itself tocsin reads the queue in the newest API that reports "
        "which jobs want whole nodes: v0.0.45 does not."
    )
    yield ""
    yield "| Slurm | jobs | API | records | started | fields that differ | verdicts that differ | array and task held | unknown job | expired token |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for release in result["releases"]:
        for version, row in release["versions"].items():
            used = " (used)" if version == release["queue_read_in"] else ""
            yield (
                f"| {release['slurm']} | {release['jobs']} | {version}{used} | {row['records']} | {row['running_or_ended']} "
                f"| {', '.join(row['fields_that_differ']) or 'none'} | {row['verdicts_that_differ']} "
                f"| {row['array_held_and_released']} | {row['unknown_job']} | {row['expired_token']} |"
            )
    yield ""
    yield from _refusals(result["refusals"], f"Slurm {result['releases'][-1]['slurm']}")


def _refusals(result: Results, where: str = "this machine's Slurm") -> Iterator[str]:
    yield f"### Requests that {where} refuses"
    yield ""
    yield (
        f"{result['requests']} generated requests, each option alone and random combinations (seed {result['seed']}): "
        f"{result['found']} of {result['refused']} refusals found, {result['false']} false. A job that waits "
        "for resources on an idle cluster counts as refused, too. The rules were written with the "
        "single options at hand. When the rules change, the seed changes too, so a smaller seed is a record of older rules. Missed:"
    )
    yield ""
    yield from (f"- `{miss}`" for miss in result["missed"])
    yield ""


def _failure(result: Results) -> Iterator[str]:
    yield "## Failure prediction on public logs"
    yield ""
    yield (
        f"Target: {result['target']}. Split: {result['split']}. AUC and average precision (AP) have 95 % intervals from a "
        f"block bootstrap over time. tocsin ({result['trials']} search trials) is compared in the same run with the published "
        f"recipe: XGBoost on the log's own fields, random search ({result['rival_trials']} trials). Outcomes count as known "
        f"{result['lag']} s after the end of a job; `lag 0` counts them at once, as most papers do. `end` uses the finished "
        "record: it shows what the data hold, but comes too late for a warning."
    )
    yield ""
    yield "| log | stage | jobs | failing | tocsin AUC | AP | F1 | published AUC | AP | F1 |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for log, stages in result["logs"].items():
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
    yield "Precision, recall and F1 of both classes at probability 0.5 (as in HPE's Table I):"
    yield ""
    yield "| log at submit | class | jobs | precision | recall | F1 |"
    yield "|---|---|---|---|---|---|"
    for log, stages in result["logs"].items():
        for name, row in stages.get("submit", {}).get("both_classes", {}).items():
            yield f"| {log} | {name} | {row['jobs']:,} | {row['precision']:.3f} | {row['recall']:.3f} | {row['f1']:.3f} |"
    yield ""


def _imbalance(result: Results) -> Iterator[str]:
    """HPE's Table I on public logs (their classes: 0 failed, 1 completed), and the value of history."""
    logs = {log: row for log, row in result.items() if isinstance(row, dict)}
    yield "## Class imbalance"
    yield ""
    yield (
        "The same model at submit, trained on the first 80 % by time and tested on the last 20 %. Precision, recall and F1 are for "
        "failed/completed jobs at a raw score of 0.5, as in HPE's Table I. AUC, AP and best F1 (failed jobs) use calibrated "
        "probabilities and a threshold chosen on training data."
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
    yield "What helps:"
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
        f"- {log}: the best sampling strategy ({best}) changes average precision by {moved:+.3f}; like a threshold, sampling moves "
        f"alarms along the same curve. History raises it from {alone['average_precision']:.3f} to "
        f"{none['average_precision']:.3f}. The finished record would give {after['average_precision']:.3f}, but too late."
    )


def _verdict(result: Results) -> Iterator[str]:
    """Latency and throughput of failure verdicts."""
    yield "## Cost of a failure verdict"
    yield ""
    yield f"At {result['stage']}, warm: one job at a time from the ledger, as in the service, and a whole log at once."
    yield ""
    yield "| log | features | verdict, median | 95th percentile | explained, median | 95th percentile |"
    yield "|---|---|---|---|---|---|"
    for log, row in result["one_job"].items():
        plain, reasons = row["assess"], row["explain"]
        yield (
            f"| {log} | {row['features']} | {plain['median_ms']:.2f} ms | {plain['p95_ms']:.2f} ms "
            f"| {reasons['median_ms']:.2f} ms | {reasons['p95_ms']:.2f} ms |"
        )
    yield ""
    batch = result["batch"]
    yield (
        f"In batch ({batch['jobs']:,} jobs), per second: {batch['scores_per_second']:,} scores "
        f"({batch['scores_with_history_per_second']:,} including history features) or {batch['verdicts_per_second']:,} whole "
        f"verdicts ({batch['verdicts_with_history_per_second']:,})."
    )
    yield ""


def _workload(result: Results) -> Iterator[str]:
    """Classification of scripts: accuracy, misuse, obfuscation, domain and language, speed."""
    yield "## Workload classification from job scripts"
    yield ""
    yield f"{result['scripts']:,} scripts; {result['split']}. The positive class is AI."
    yield ""
    yield "| scripts | classifier | macro-F1 | F1 | TP | TN | FP | FN |"
    yield "|---|---|---|---|---|---|---|---|"
    sets = {
        "script_ai": "SCRIPT-AI",
        "jobspec": "jobspec",
        "jobspec_without_ai_word": "jobspec without AI words",
    }
    for key, name in sets.items():
        for who, row in result[key].items():
            if isinstance(row, dict):
                yield f"| {name} | {who} | {_figures(row)} |"
    yield ""
    for key, name in sets.items():
        yield f"- {name}: {result[key]['split']}."
    yield ""
    yield "![Macro-F1 of tocsin and published classifiers on SCRIPT-AI](pictures/workload-f1.svg)"
    yield ""
    yield from _misuse(result["misuse"])
    yield from _disguise(result["disguise"])
    yield from _speed(result["speed"])
    for kind, row in result["kinds"].items():
        yield (
            f"{kind.capitalize()}: given for {row['told']:,} of the {row['labelled']:,} scripts that SCRIPT-AI labels, "
            f"correct for {row['right']:,}."
        )
    yield ""


def _innocent(result: Results) -> Iterator[str]:
    yield "### Innocent scripts and disguised miners"
    yield ""
    yield (
        "Innocent scripts with the shipped weights, half of them generated around those of jobspec: they speak of misuse, "
        "search for it, and use proxies, tokens and hashes. An open sign is shown to people and accuses nobody. Without a "
        "sign, the verdict names the programs that tocsin does not know, because the script does not show what they do, or "
        "states that it knows no application or language in the script."
    )
    yield ""
    yield "| scripts | number | called misuse | only an open sign | only an unknown program named | only no known application | none |"
    yield "|---|---|---|---|---|---|---|"
    for name in ("jobspec", "generated"):
        each = result["innocent"][name]
        yield _innocent_row(f"innocent, {name}", each)
    each = result["disguises"]
    yield _disguised_row("disguised miners", each)
    for half, words in (
        ("seen", "seen when the rules were mended"),
        ("held_out", "held out at first, learned from since"),
    ):
        each = result["fresh_innocent"][half]
        yield _innocent_row(f"innocent, written blind, {words}", each)
        each = result["fresh_disguises"][half]
        yield _disguised_row(f"disguised miners, written blind, {words}", each)
    each = result["informed_innocent"]
    yield _innocent_row("innocent, written with the rules at hand", each)
    for part, words in (
        ("first", "37 of 81 passed at first"),
        ("second", "10 of 61 passed at first"),
        ("third", "5 of 44 passed at first"),
        ("fourth", "8 of 26 passed at first"),
        ("fifth", "30 of 88 passed at first"),
        ("sixth", "40 of 80 passed at first"),
        ("seventh", "10 of 66 passed at first"),
        ("eighth", "74 of 80 passed at first"),
        ("ninth", "66 of 80 passed at first"),
        ("tenth", "51 of 60 passed at first"),
        ("eleventh", "50 of 78 passed at first"),
        ("twelfth", "11 of 34 passed at first"),
        ("thirteenth", "22 of 60 passed at first"),
        ("fourteenth", "28 of 44 passed at first"),
        ("fifteenth", "55 of 60 passed at first, 32 of them in silence"),
        ("sixteenth", "an ordinary miner renamed, 38 of 60 passed at first, 1 of them in silence"),
    ):
        if (each := result["informed_disguises"].get(part)) is None:  # written since the last run
            continue
        yield _disguised_row(f"disguised miners, written with the rules at hand, {words}", each)
    yield ""


def _innocent_row(label: str, each: Results) -> str:
    return _classified_row(label, each, each["false_misuse"])


def _disguised_row(label: str, each: Results) -> str:
    return _classified_row(label, each, each["cryptomining"])


def _classified_row(label: str, each: Results, misuse: int) -> str:
    others = ("only_open_sign", "only_unknown_program", "nothing_known", "silent")
    cells = (each["scripts"], misuse, *(each[name] for name in others))
    return f"| {label} | {' | '.join(f'{cell:,}' for cell in cells)} |"


def _misuse(result: Results) -> Iterator[str]:
    yield "### Misuse"
    yield ""
    yield f"Recall; {result['split']}. Headers are removed from all scripts. False alarms are counted on harmless scripts."
    yield ""
    operations = {name: row for name, row in result.items() if isinstance(row, dict)}
    variants = next(iter(operations.values()))["recall"]
    yield f"| operation | scripts | {' | '.join(variants)} | false alarms | rate |"
    yield "|---" * (4 + len(variants)) + "|"
    for name, row in operations.items():
        recall = " | ".join(f"{value:.3f}" for value in row["recall"].values())
        yield (
            f"| {name} | {row['scripts']:,} | {recall} | {row['false_alarms']:,} | {row['false_alarm_rate']:.3%} |"
        )
    yield ""
    yield "| repository (its owner left out of training) | operation | found | scripts |"
    yield "|---|---|---|---|"
    for name, row in operations.items():
        for repository, (hits, scripts) in row["repositories"].items():
            yield f"| {repository} | {name} | {hits:,} | {scripts:,} |"
    yield ""


def _disguise(result: Results) -> Iterator[str]:
    yield "### Obfuscation"
    yield ""
    yield "Macro-F1 and F1 of AI when this share of the lines is replaced by random strings (not those used in training)."
    yield ""
    shares = list(next(iter(result.values())))
    yield f"| scripts | figure | {' | '.join(f'{float(share):.0%}' for share in shares)} |"
    yield "|---" * (2 + len(shares)) + "|"
    for name, curve in result.items():
        for figure, word in (("macro_f1", "macro-F1"), ("f1", "F1 of AI")):
            values = " | ".join(f"{curve[share][figure]:.3f}" for share in shares)
            yield f"| {name} | {word} | {values} |"
    yield ""
    yield "![Macro-F1 by the share of obfuscated lines](pictures/workload-obfuscation.svg)"
    yield ""


def _speed(result: Results) -> Iterator[str]:
    yield "### Speed"
    yield ""
    yield (
        f"One script: median {result['median_seconds'] * 1000:.2f} ms, 99th percentile {result['p99_seconds'] * 1000:.2f} ms; loading "
        f"the weights takes {result['load_seconds']:.2f} s. In batch: {result['scripts_per_second_one_core']:,} scripts per second on "
        f"one core, {result['scripts_per_second_two_cores']:,} on two."
    )
    if slow := result.get("sentence_transformers"):
        yield (
            f"sentence-transformers + scikit-learn, one script at a time: median {slow['median_seconds'] * 1000:.1f} ms; "
            f"tocsin is {result['times_faster']:,.0f} times faster."
        )
    yield ""
    yield "| jobs a day | share of one core |"
    yield "|---|---|"
    for jobs, share in result["jobs_a_day_to_share_of_a_core"].items():
        yield f"| {int(jobs):,} | {share:.3%} |"
    yield ""


def _figures(row: Results) -> str:
    counts = " | ".join(f"{row[key]:,}" for key in ("tp", "tn", "fp", "fn"))
    return f"{row['macro_f1']:.3f} | {row['f1']:.3f} | {counts}"


def _execution(result: Results) -> Iterator[str]:
    """Macro-F1 of each classifier at the best setting (RoWD's Table 5), and what limits it."""
    best = result["best"]
    yield "## Execution-time classification"
    yield ""
    yield f"{result['data']}; {result['split']}. α {best['alpha_hours']} h, β {best['beta_hours']} h: {best['chosen']}."
    yield ""
    yield "| classifier | macro-F1 | F1 | TP | TN | FP | FN |"
    yield "|---|---|---|---|---|---|---|"
    for name, row in result["same_setting"].items():
        yield f"| {name} | {_figures(row)} |"
    yield ""
    for name, grid in result["macro_f1"].items():
        betas = list(next(iter(grid.values())))
        yield f"| {name}, macro-F1 | {' | '.join(betas)} |"
        yield "|---" * (1 + len(betas)) + "|"
        for alpha, row in grid.items():
            yield f"| {alpha} | {' | '.join(f'{row[beta]:.3f}' for beta in betas)} |"
        yield ""
    yield result["reason"]
    yield ""
    yield "| jobs a day | training | screening | share of one core |"
    yield "|---|---|---|---|"
    for row in result["overhead"]:
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
