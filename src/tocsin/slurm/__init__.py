"""Act on jobs, undo it, and connect to Slurm's own plug-ins."""
