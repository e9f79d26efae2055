"""The public scripts that the shipped weights are made from, read from the folder of public data."""

import csv
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from tocsin.core.errors import InputError
from tocsin.scripts.text import decode

__all__ = ["Example", "corpus", "corpus_hash"]

_MISUSE = {"crypto": "cryptomining", "cyber": "cyber"}
_GITHUB = re.compile(r"https?://github\.com/([^/]+)")


class Example(NamedTuple):
    """A script with what is known of it. All scripts of one owner are alike, so owners are never split."""

    text: str
    owner: str
    source: str
    origin: str
    """script-ai, jobspec or misuse."""
    ai: int | None = None
    misuse: str | None = None
    ai_word: bool = False
    """jobspec's rule found a word of AI in the script itself."""
    plain: bool = False
    """jobspec's rules found nothing at all: most likely no AI."""
    application: str | None = None
    domain: str | None = None
    language: str | None = None


def corpus(folder: Path) -> list[Example]:
    """SCRIPT-AI, jobspec and misuse, in this order."""
    scripts = folder / "scripts"
    try:
        return [*_script_ai(scripts / "script-ai"), *_jobspec(scripts), *_misuse(scripts)]
    except OSError as error:
        raise InputError(
            f"{error.filename} cannot be read ({error.strerror}); give the folder of public data that holds scripts/"
        ) from None


def corpus_hash(examples: list[Example]) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(example.text.encode("utf-8", "surrogateescape"))
        digest.update(repr(example[1:]).encode())
    return digest.hexdigest()


def _script_ai(folder: Path) -> list[Example]:
    with (folder / "features.csv").open(encoding="utf-8") as file:
        return [
            Example(
                text=decode((folder / "job_scripts" / row["jid"]).read_bytes()),
                owner=_owner(row["source"]),
                source=row["source"],
                origin="script-ai",
                ai=int(row["label"]),
                application=row["application"] or None,
                domain=row["domain"] or None,
                language=row["lang"] or None,
            )
            for row in csv.DictReader(file)
        ]


def _owner(source: str) -> str:
    """The owner of a repository, so that it is known again in the other collections; else the site."""
    found = _GITHUB.match(source)
    if found:
        return found[1].lower()
    return source.split("/")[2].lower() if source.startswith("http") else source


def _jobspec(folder: Path) -> list[Example]:
    return [
        Example(
            text=row["text"],
            owner=row["repo"].split("/")[0].lower(),
            source=row["repo"],
            origin="jobspec",
            ai=row["label"],
            ai_word=bool(row["script_has_ai_kw"]),
            plain=row["label"] is None and not row["evidence"],
        )
        for row in _rows(folder / "jobspec.jsonl.gz")
    ]


def _misuse(folder: Path) -> list[Example]:
    return [
        Example(
            text=row["text"],
            owner=row["repo"].split("/")[0].lower(),
            source=row["repo"],
            origin="misuse",
            misuse=_MISUSE[row["label"]],
        )
        for row in _rows(folder / "misuse.jsonl.gz")
    ]


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
