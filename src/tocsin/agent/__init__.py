"""The node agent: samples what each CPU of a compute node does, and for which job. Standard library only."""
