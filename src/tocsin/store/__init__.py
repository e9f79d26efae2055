"""Where things are kept: the home folder, the database of jobs and verdicts, the scripts."""
