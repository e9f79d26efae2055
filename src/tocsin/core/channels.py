"""The channels of traces: what is recorded of each CPU, and of each job on a node, once a second."""

__all__ = ["CPU_CHANNELS", "JOB_CHANNELS", "MODES"]

CPU_CHANNELS = ("user", "system", "iowait")
"""Shares of a CPU's time. What is left to one is `other`: redundant, so it is neither stored nor given to a model."""

MODES = (*CPU_CHANNELS, "other")

JOB_CHANNELS = (
    "cpu_user",  # CPU seconds per second
    "cpu_system",
    "cpu_throttled",  # seconds per second in which the job's CPU quota held it back
    "memory",  # bytes now, page cache included
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
