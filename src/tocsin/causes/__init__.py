"""Why a job failed, according to its own output and Slurm's record."""
