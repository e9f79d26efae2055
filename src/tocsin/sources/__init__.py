"""Where jobs, nodes and partitions come from: logs, sacct, slurmrestd, tables."""
