"""Recorded replies of slurmrestd, sacct and scontrol, one folder for each release of Slurm."""

import gzip
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "sources" / "fixtures" / "slurm"
RELEASES = {
    "v0.0.36": "22.05",
    "v0.0.37": "22.05",
    "v0.0.38": "22.05",
    "v0.0.40": "24.11",
    "v0.0.41": "24.11",
    "v0.0.42": "24.11",
    "v0.0.43": "26.05",
    "v0.0.44": "26.05",
    "v0.0.45": "26.05",
}
VERSIONS = list(RELEASES)


def path_of(family: str, version: str, what: str) -> Path:
    return FOLDER / RELEASES[version] / f"{family}_{version}_{what}.json.gz"


def body(family: str, version: str, what: str) -> bytes:
    """A reply as slurmrestd sent it."""
    with gzip.open(path_of(family, version, what)) as file:
        return file.read()


def reply(family: str, version: str, what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(body(family, version, what))
    return found


def errors(release: str) -> dict[str, dict[str, tuple[int, Any]]]:
    """Refusals by version and cause: HTTP status and reply."""
    with gzip.open(FOLDER / release / "errors.json.gz") as file:
        found: dict[str, dict[str, tuple[int, Any]]] = json.load(file)
        return found


def text(name: str, release: str = "22.05") -> str:
    """What a command printed."""
    return (FOLDER / release / name).read_text()
