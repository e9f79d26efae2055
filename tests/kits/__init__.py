"""What tests of more than one room share: jobs, logs, scripts, recordings, and the command line."""
