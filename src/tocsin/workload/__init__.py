"""The workload detector: what a job is, by its script and by what it did."""
