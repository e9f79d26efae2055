"""Storage: the home folder, the database of jobs and verdicts, the scripts."""
