"""Miners that a script hides in its own text, written by somebody who had the rules at hand, in sixteen sets.

Each set was written when the rules had been mended for the one before, and measured before anything was changed for it. In
each script the command, the pool's address or their pieces stand in the text. Innocent scripts do the same things.
Before the fifth set, rules that follow where every word comes from took the place of patterns of single tricks. Of the
eighth, 74 of 80 passed at first contact, most by commands that were not walked and by numbers that were not followed; one
of the 80 does not work in a shell and is left out. Of the ninth (other languages and tools), 66 of 80 passed, of the tenth
(what the rules for words did not follow) 51 of 60, and of the eleventh (hosts without a port, other forms of hosts, fetched
arguments, relays) 50 of 78. Since then a host is a sign wherever it stands, and what is not followed counts as computed. Of
the twelfth (the rules' own excuses as doors, other tools), 11 of 34 passed. Four of these still do: nothing but the program
itself can make a host of what they hand to it. Of the thirteenth (containers, workflow and configuration tools, Slurm's own
features, formats of scientific data, settings of clients), 22 of 60 passed, and 10 still do, most for the same reason. Of its
60 innocent twins, 5 had an open sign, and 1 still has. Of the fourteenth (what stands next to a host, settings of harmless
programs, names that known programs give to things), 28 of 44 passed, and 17 still do; of its 43 twins, 3 have an open sign.
Since then, a verdict names the programs that tocsin does not know. Half of the fifteenth set was aimed at that: known programs
that start others, variables, lists, names in quotes. Of its 60, 55 passed at first contact, and 32 of them in silence; 53 still
pass, 30 in silence. A second reader of the shell, which names programs however a
script starts them, was written and left out, because new disguises avoided it again. None of its 60 twins had an open sign.
In the sixteenth set, the miner is an ordinary one under another name: it understands only the options and settings of real
miners, so that the shell or a tool must make them. Of its 60, 38 passed at first contact, one of them in silence; none does since the
keys of such settings are a sign. Of its 60 twins, 5 have an open sign, at first contact and since.
"""

import re
from pathlib import Path

__all__ = ["INNOCENT", "NOT_ALL_FOUND", "SETS", "script"]

_HEADER = (
    "#!/bin/bash\n#SBATCH --job-name=relax\n#SBATCH --ntasks=32\n#SBATCH --time=12:00:00\nmodule load gcc\n"
)


def _bodies(name: str) -> dict[str, str]:
    """The scripts of a file by the headings before them."""
    text = (Path(__file__).parent / "informed" / f"{name}.txt").read_text("utf-8")
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


SETS = {
    name: _bodies(name)
    for name in (
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "tenth",
        "eleventh",
        "sixteenth",
    )
}
NOT_ALL_FOUND = {name: _bodies(name) for name in ("twelfth", "thirteenth", "fourteenth", "fifteenth")}
"""Sets of which some still pass."""
INNOCENT = (
    _bodies("innocent")
    | _bodies("more_innocent")
    | _bodies("twins_of_eighth")
    | _bodies("innocent_tools")
    | _bodies("twins_of_eleventh")
    | _bodies("twins_of_twelfth")
    | _bodies("twins_of_thirteenth")
    | _bodies("twins_of_fourteenth")
    | _bodies("twins_of_fifteenth")
    | _bodies("twins_of_sixteenth")
)


def script(body: str) -> str:
    """The whole job script of one body."""
    return body if body.startswith("#!") else f"{_HEADER}{body}"
