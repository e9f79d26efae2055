"""The channels of traces, recorded once a second for each CPU and for each job on a node."""

__all__ = ["CPU_CHANNELS", "JOB_CHANNELS", "MODES"]

CPU_CHANNELS = ("user", "system", "iowait")
"""Shares of a CPU's time. The rest is `other`: redundant, so it is neither stored nor used by a model."""

MODES = (*CPU_CHANNELS, "other")

JOB_CHANNELS = (
    "cpu_user",  # CPU seconds per second
    "cpu_system",
    "cpu_throttled",  # seconds per second of throttling by the job's CPU quota
    "memory",  # bytes now, including page cache
    "page_faults",  # per second
    "major_page_faults",
    "context_switches",
    "io_read",  # bytes per second, block devices only
    "io_written",
    "pressure_cpu",  # seconds per second in which some task waited
    "pressure_memory",
    "pressure_io",
    "gpu",  # share of the GPU's time, mean over the job's GPUs
)
