"""Measurements of speed and accuracy on public data; `python -m bench.NAME` prints one."""
