"""What a job can read back from its own request: its name, its folder, its files and its environment."""

import re

from tocsin.workload.signs.origins import Origins
from tocsin.workload.signs.values import OWN, UNKNOWN, Value, base
from tocsin.workload.signs.word_values import ALNUM

__all__ = ["note_request"]

_ASKED = re.compile(
    r"\n#(?:SBATCH|PBS|BSUB|\$)\s+--?(?P<option>job-name|chdir|workdir|output|error|wd|[JNDdoe])[ =]{0,3}(?P<value>\S+)"
)
_EXPORTED = re.compile(r"^#\S{1,6}.*?\s(?:--export|-v|-env|--env)[ =]\"?([^\s\"]+)", re.MULTILINE)
_FIELD = re.compile(r"%\d*\w|\$\{?\w+\}?")
_NAMES = ("SLURM_JOB_NAME", "PBS_JOBNAME", "JOB_NAME", "LSB_JOBNAME")
_FOLDERS = ("PWD", "SLURM_SUBMIT_DIR", "PBS_O_WORKDIR")


def note_request(origins: Origins, text: str) -> None:
    """Record what the directives of a script set."""
    for found in _ASKED.finditer(f"\n{text}"):
        option, value = found["option"], found["value"].strip("\"'")
        if option in ("job-name", "J", "N"):
            origins.values |= dict.fromkeys(_NAMES, Value(value, OWN))
        elif option in ("chdir", "D", "workdir", "d", "wd"):
            origins.values |= dict.fromkeys(_FOLDERS, Value(value, OWN))
        elif ALNUM.search(file := base(_FIELD.sub(UNKNOWN, value))):
            origins.files[file] = OWN
    for given in _EXPORTED.findall(text) if "--export" in text or " -v" in text else ():
        for setting in given.split(","):
            origins.assign(setting)
