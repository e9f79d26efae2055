"""Parse job scripts into scheduler, request and commands, and edit their directives; nothing is ever executed."""
