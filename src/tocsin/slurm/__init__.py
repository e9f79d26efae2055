"""Acts on jobs, undoes actions, and connects to Slurm's own plug-ins."""
