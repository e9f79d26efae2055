"""Acting on jobs, undoing it, and the hooks in Slurm's plug-ins."""
