"""tocsin: early warning for HPC jobs."""

__version__ = "0.1.0"
