"""A job script as data: scheduler, request, commands, and changes written back; nothing is ever executed."""
