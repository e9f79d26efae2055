"""The section on traces of docs/benchmarks.md."""

from collections.abc import Iterator
from typing import Any

__all__ = ["speed_section", "traces_section"]

Results = dict[str, Any]

_ARCHITECTURES = {"vanilla": "vanilla", "node_graph": "node graph", "job_graph": "job graph"}
_DATA = {"recorded": "the recorded campaign", "simulated": "the simulated campaign"}


def traces_section(result: Results) -> Iterator[str]:
    yield "## Autoencoders of CPU traces"
    yield ""
    yield (
        f"Windows of 100 s, one in 10 s, and in the short recorded campaigns one in each second. Models learn from the normal windows of the campaigns for training; all figures are from "
        f"the campaigns for testing. Mean ± standard deviation over {result['seeds']} seeds, each trained for at most "
        f"{result['cpu_seconds_per_model']} s of CPU time. The simulated campaigns have 5 nodes of 32 threads and last "
        f"{result['simulated_seconds'] // 60} minutes; the paper's cluster had that size, but other jobs, so its figures "
        "are for orientation."
    )
    yield ""
    for name, table in result["table2"].items():
        yield from _table2(name, table, result["paper"])
    for name, found in result["anomalies"].items():
        yield from _anomalies(name, found)


def _table2(name: str, table: Results, paper: Results) -> Iterator[str]:
    count = table["windows"]
    yield (
        f"Table 2 of the paper on {_DATA[name]} ({count['train']:,} windows to learn from, {count['normal']:,} normal and "
        f"{count['anomalous']:,} `bad_io` windows to test, all of whose seconds are of one job):"
    )
    yield ""
    yield "| | error, normal | paper | error, `bad_io` | paper | silhouette | paper | seeds that separate both without error |"
    yield "|---|---|---|---|---|---|---|---|"
    for key, label in _ARCHITECTURES.items():
        row = table[key]
        cells = " | ".join(
            f"{_spread(row[figure])} | {_spread(paper[key][figure])}"
            for figure in ("normal", "anomalous", "silhouette")
        )
        yield f"| {label} | {cells} | {row['separated_seeds']} |"
    yield ""
    yield _cost(table)
    yield ""


def _cost(table: Results) -> str:
    """What the graphs add to the vanilla autoencoder, and what they cost."""
    vanilla = table["vanilla"]
    sentences = []
    for key in ("node_graph", "job_graph"):
        row = table[key]
        error = row["normal"][0] / vanilla["normal"][0] - 1
        sentences.append(
            f"The {_ARCHITECTURES[key]} changes the error on normal windows by {error:+.0%}, that on `bad_io` by "
            f"{row['anomalous'][0] / vanilla['anomalous'][0] - 1:+.0%} and the silhouette by "
            f"{row['silhouette'][0] - vanilla['silhouette'][0]:+.3f}; it has {row['parameters']:,} parameters instead of "
            f"{vanilla['parameters']:,} and takes {row['score_cpu_ms_per_1000']:.0f} ms of CPU time for 1,000 windows instead "
            f"of {vanilla['score_cpu_ms_per_1000']:.0f} ms."
        )
    return " ".join(sentences)


def _anomalies(name: str, found: Results) -> Iterator[str]:
    yield f"### Anomalies on {_DATA[name]}"
    yield ""
    yield (
        f"Recall of windows, and in brackets the jobs that rang ({found['in_a_row']} windows in a row). Thresholds: "
        f"{found['rate']:.0%} of the normal validation windows are above, for all job types together; for tocsin's own rule, the "
        f"default of `tocsin traces train` (0.1 % at 90 % confidence, a wide margin where normal windows are few); for iowait, a mean of {found['iowait']:g}. All detectors learn from the same windows. PCA reconstructs whole windows; the isolation forest "
        'reads the mean, spread, extremes and mean step of each channel. "Shows in" names the channels whose error grows most.'
    )
    yield ""
    for part, label in (("cpus", "windows of CPUs"), ("jobs", "counters of jobs")):
        rows = found[part]
        who = list(rows["false_alarms_per_hour"])
        yield f"| {label} | jobs | {' | '.join(who)} | shows in |"
        yield "|---" * (3 + len(who)) + "|"
        for anomaly, row in rows["anomalies"].items():
            cells = " | ".join(f"{row['recall'][each]:.3f} ({row['jobs_found'][each]})" for each in who)
            shown = ", ".join(
                f"{channel} × {times:,.0f}" for channel, times in row["channels"].items() if times >= 2
            )
            yield f"| `{anomaly}` | {row['jobs']} | {cells} | {shown or 'none'} |"
        alarms = " | ".join(f"{rows['false_alarms_per_hour'][each]:.3f}" for each in who)
        unit = "CPU" if part == "cpus" else "job"
        yield f"| false alarms per {unit}-hour ({rows['normal_hours']:.1f} h) | | {alarms} | |"
        yield ""


def speed_section(speed: Results) -> Iterator[str]:
    yield (
        f"Scoring {speed['windows']:,} windows on {speed['cores']} cores: {speed['seconds']:.1f} s with ONNX Runtime, "
        f"{speed['eager_pytorch_seconds']:.1f} s with the same network in eager PyTorch (batches of "
        f"{speed['eager_pytorch_batch']}, its best). In CPU time of one thread ONNX Runtime is {speed['times_less_cpu']:.1f} times cheaper."
    )
    yield ""


def _spread(figure: list[float]) -> str:
    return f"{figure[0]:.4f} ± {figure[1]:.4f}"
