"""Why a job failed, by its own output and by Slurm's record."""
