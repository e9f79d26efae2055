"""Samples as text for Prometheus and as JSON: by hand, because the client library costs ten times as much."""

import json
from collections.abc import Sequence

from tocsin.agent.sampler import Sample, Sampler
from tocsin.core.channels import MODES

__all__ = ["metrics", "window"]

_RATIO = "tocsin_cpu_ratio"
_COUNTERS = {
    "cpu_user_seconds_total": "CPU time of the job in user mode.",
    "cpu_system_seconds_total": "CPU time of the job in the kernel.",
    "cpu_throttled_seconds_total": "Time for which the job was throttled by its CPU quota.",
    "memory_bytes": "Memory of the job, page cache included.",
    "memory_peak_bytes": "Highest memory of the job so far.",
    "page_faults_total": "Page faults of the job.",
    "major_page_faults_total": "Page faults of the job that had to read from a disk.",
    "context_switches_total": "Context switches of the job's threads.",
    "io_read_bytes_total": "Bytes that the job read from block devices.",
    "io_written_bytes_total": "Bytes that the job wrote to block devices.",
    "pressure_cpu_seconds_total": "Time in which some task of the job waited for a CPU.",
    "pressure_memory_seconds_total": "Time in which some task of the job waited for memory.",
    "pressure_io_seconds_total": "Time in which some task of the job waited for I/O.",
}


def metrics(sampler: Sampler) -> str:
    """The newest sample in the text format of Prometheus. Job ids are digits, so labels need no escapes."""
    lines = [
        "# HELP tocsin_agent_gaps_total CPU readings from which no rates could be computed.",
        "# TYPE tocsin_agent_gaps_total counter",
        f"tocsin_agent_gaps_total {sampler.gaps}",
        "# HELP tocsin_agent_clock_jumps_total Jumps of the clock between two samples.",
        "# TYPE tocsin_agent_clock_jumps_total counter",
        f"tocsin_agent_clock_jumps_total {sampler.clock_jumps}",
    ]
    sample = sampler.newest
    if sample is None:
        return "\n".join(lines) + "\n"
    lines += [
        "# HELP tocsin_agent_sample_timestamp_seconds When the newest sample was taken.",
        "# TYPE tocsin_agent_sample_timestamp_seconds gauge",
        f"tocsin_agent_sample_timestamp_seconds {sample.at:.3f}",
        f"# HELP {_RATIO} Share of the CPU's time spent in each mode in the last interval; the label job is the Slurm job on that CPU.",
        f"# TYPE {_RATIO} gauge",
    ]
    for cpu, rates in sample.rates.items():
        labels = f'{_RATIO}{{cpu="{cpu}",job="{sample.jobs.get(cpu, "")}",mode="'
        lines += [f'{labels}{mode}"}} {rate:.4g}' for mode, rate in zip(MODES, rates, strict=True)]
    for name, text in _COUNTERS.items():
        values = [(job, used[name]) for job, used in sample.counters.items() if name in used]
        if values:
            metric = f"tocsin_job_{name}"
            lines += [
                f"# HELP {metric} {text}",
                f"# TYPE {metric} {'counter' if name.endswith('_total') else 'gauge'}",
            ]
            lines += [f'{metric}{{job="{job}"}} {value:.10g}' for job, value in values]
    return "\n".join(lines) + "\n"


def window(node: str, sampler: Sampler, samples: Sequence[Sample]) -> str:
    """Samples as JSON: for each, the instant, `[user, system, iowait]` and job by CPU, and counters by job."""
    return json.dumps(
        {
            "schema": 1,
            "node": node,
            "interval": sampler.interval,
            "gaps": sampler.gaps,
            "clock_jumps": sampler.clock_jumps,
            "samples": [
                {
                    "at": round(sample.at, 3),
                    "cpus": {
                        cpu: [round(rates.user, 4), round(rates.system, 4), round(rates.iowait, 4)]
                        for cpu, rates in sample.rates.items()
                    },
                    "jobs": sample.jobs,
                    "counters": sample.counters,
                }
                for sample in samples
            ],
        },
        separators=(",", ":"),
    )
