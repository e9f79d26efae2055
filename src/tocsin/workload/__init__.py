"""The workload detector: classifies a job by its script and by its execution."""
