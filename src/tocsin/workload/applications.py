"""Which application a script runs, with its domain and language, by a catalogue of names."""

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tocsin.workload.words import joined_words, plain_text

__all__ = [
    "DOMAINS",
    "LANGUAGES",
    "Application",
    "ai_names",
    "ai_phrases",
    "ai_programs",
    "ai_words",
    "applications",
    "domains",
    "language",
    "language_of",
    "main_application",
]


class Application(NamedTuple):
    """What a word of a command refers to."""

    name: str
    domain: str
    language: str | None = None
    operation: str | None = None


_AI_WORDS = frozenset("pretrain finetun deeplearning neuralnet rlhf".split())  # noqa: SIM905  # a list of words reads best so
"""Words that are not the name of a single program."""
_AI_INSIDE = (
    "torch",
    "tensorflow",
    "keras",
    "deeplearning",
    "neuralnet",
    "alphafold",
    "colabfold",
    "huggingface",
)
"""These also count inside a word: localcolabfold, mytorchenv."""
_AI_PHRASES = (
    "random forest", "neural net", "deep learning", "machine learning", "reinforcement learning", "language model",
    "gradient boost", "support vector machine", "transfer learning", "federated learning", "contrastive learning",
    "supervised learning", "few shot", "zero shot", "fine tun", "q learning", "knowledge distillation", "image classification",
    "object detection", "semantic segmentation",
)  # fmt: skip
"""However their words are joined: random_forest.R."""
_AI_PHRASE_ENDS = tuple((phrase, phrase.split()[-1]) for phrase in _AI_PHRASES)
"""With the last word of each: few texts have one, and looking for it is fast."""
DOMAINS = (
    "machine learning", "chemistry", "bioinformatics", "engineering", "earth science", "physics", "math", "benchmark",
    "cryptomining", "security",
)  # fmt: skip
"""Those that are features of the shipped weights; the catalogue has more."""
_LANGUAGES = (
    # name, words, beginnings of words, endings of files
    ("python", "jupyter ipython pip conda", "python", "py ipynb"),
    ("R", "rscript", "", "r"),
    ("matlab", "matlab mcc", "", "m"),
    ("julia", "julia", "", "jl"),
    ("java", "java", "", "jar"),
    ("perl", "perl", "", "pl"),
    ("lua", "lua luajit", "", "lua"),
    ("fortran", "gfortran ifort ifx mpif90 mpif77 mpifort mpifrt mpifrtpx frt frtpx", "", "f90 f95 f03 f"),
    ("c++", "g++ mpic++ mpicxx icpc icpx nvcc clang++", "", "cpp cu cxx cc"),
    ("c", "gcc icc mpicc clang fcc fccpx mpifcc mpifccpx", "", "c"),
    ("mpi", "mpirun mpiexec aprun ibrun jsrun orterun", "", ""),
)  # the last: a program that runs in parallel and whose language is unknown
_PARALLEL = "mpi"
_LAUNCHERS = {
    "srun",
    "mpirun",
    "mpiexec",
    "aprun",
    "ibrun",
    "jsrun",
    "numactl",
    "singularity",
    "apptainer",
    "exec",
    "run",
}
_BUILD = re.compile(r"[_.\d-]|hpc")
"""Where the name of a program ends and its variant begins."""
_LEAST_STEM = 4
"""Letters of one, unless an underscore follows: lmp_hpc."""
_SCRIPTS = (".sh", ".py", ".r", ".jl", ".pl", ".m", ".bash", ".log", ".out", ".txt")
_PROGRAM = re.compile(r"[\w.+:~=-]+$")
_CONTAINERS = frozenset({"singularity", "apptainer"})
_IMAGES = (".sif", ".simg", ".sqsh")
"""Containers as files."""
LANGUAGES = tuple(name for name, *_ in _LANGUAGES)
_BY_LANGUAGE = tuple(
    (name, frozenset(words.split()), beginning, frozenset(endings.split()))
    for name, words, beginning, endings in _LANGUAGES
)


@cache
def _document() -> dict[str, dict[str, str]]:
    return tomllib.loads((Path(__file__).parent / "applications.toml").read_text("utf-8"))


@cache
def _catalogue() -> dict[str, Application]:
    found: dict[str, Application] = {}
    for domain, entry in _document().items():
        for item in f"{entry['words']} {entry.get('alone', '')} {entry.get('data', '')}".split():
            name, _, words = item.partition("=")
            kind = Application(name, domain.replace("-", " "), entry.get("language"), entry.get("operation"))
            for word in (words or name).split(","):
                found.setdefault(word, kind)
    return found


@cache
def _programs() -> dict[str, Application]:
    """The catalogue without entries that are not programs: data sets and file formats."""
    data = {word for entry in _document().values() for word in entry.get("data", "").split()}
    return {word: kind for word, kind in _catalogue().items() if word not in data}


@cache
def _heads() -> frozenset[str]:
    """The first four letters of all programs, for a quick check."""
    return frozenset(word[:4] for word in _programs())


def applications(commands: Sequence[str], words: Collection[str]) -> list[Application | None]:
    """For each command, the application that it names, if any; `words` are the joined words of all commands."""
    catalogue = _programs()
    known = catalogue.keys() & words
    if not known:
        if catalogue.keys().isdisjoint(_stem(word) for word in words if word[:4] in _heads()):
            return [None] * len(commands)
        return [_by_build(command.lower()) for command in commands]
    found: list[Application | None] = []
    for command in commands:
        low = command.lower()
        here = known & joined_words(command) if any(name in low for name in known) else set()
        first = min(sorted(here), key=low.find) if here else None  # an option follows its program
        found.append(catalogue[first] if first else _by_build(low))
    return found


def _by_build(command: str) -> Application | None:
    """The application of a program's build or container: castep for `mpirun -np 4 castep.mpi`, ansys for `ansys232`."""
    words = command.split(None, 24)
    names = [
        name
        for word in words
        if word[0] != "-"
        and (name := word.rpartition("/")[2].rstrip("`)\"'"))[:1].isalpha()
        and name not in _LAUNCHERS
    ]
    inside = names[:1]
    if not _CONTAINERS.isdisjoint(words):
        image = next((place for place, name in enumerate(names) if name.endswith(_IMAGES)), 0)
        inside = names[image + 1 : image + 2] + names[image : image + 1] + inside
    stems = (_stem(name) for name in inside if not name.endswith(_SCRIPTS) and _PROGRAM.match(name))
    return next((kind for stem in stems if (kind := _programs().get(stem))), None)


def _stem(name: str) -> str:
    """The name before its variant; empty if that is too short to mean anything."""
    stem = _BUILD.split(name, maxsplit=1)[0]
    return stem if len(stem) >= _LEAST_STEM or name[len(stem) : len(stem) + 1] == "_" else ""


def domains(words: set[str]) -> set[str]:
    """The domains of all software that these joined words name."""
    catalogue = _catalogue()
    return {catalogue[word].domain for word in catalogue.keys() & words}


def ai_words(words: Iterable[str]) -> set[str]:
    """The plain words that name AI software, or begin with such a name: torch, torchrl."""
    names = _ai_names()
    words = list(words)
    found = {
        word
        for word in words
        if (word[:4] in names.heads and word.startswith(names.beginnings)) or word in names.alone
    }
    together = " ".join(words)
    for name in _AI_INSIDE:
        if name in together:
            found.update(word for word in words if name in word)
    return found


def ai_programs(words: set[str]) -> set[str]:
    """The joined words that are one name of more than letters: llama-cli, svm-train, flux.jl."""
    return words & _ai_names().joined


def ai_phrases(text: str) -> set[str]:
    """The phrases about AI in a text, however their words are joined."""
    low = text.lower()
    known = [phrase for phrase, ends in _AI_PHRASE_ENDS if ends in low]
    plain = plain_text(low) if known else ""
    return {phrase for phrase in known if phrase in plain}


def ai_names() -> list[str]:
    """All of them, as they appear in commands."""
    return sorted(word for word, one in _catalogue().items() if one.operation == "ai")


class _Names(NamedTuple):
    """Names of AI software."""

    beginnings: tuple[str, ...]
    heads: frozenset[str]
    """Their first four letters, for a quick check."""
    alone: frozenset[str]
    joined: frozenset[str]


@cache
def _ai_names() -> _Names:
    entries = _document()
    alone = {word for entry in entries.values() for word in entry.get("alone", "").split()}
    named = {word for word, one in _catalogue().items() if one.operation == "ai"}
    plain = {word for word in named if word.isalnum()} - alone | _AI_WORDS
    return _Names(
        tuple(sorted(plain)),
        frozenset(word[:4] for word in plain),
        frozenset(alone),
        frozenset(named - plain - alone),
    )


def main_application(named: Iterable[Application | None]) -> Application | None:
    """The one that most lines name; in case of a tie the last, since what is run comes at the end."""
    counted = Counter(one for one in named if one is not None)
    return max(reversed(counted), key=lambda one: counted[one], default=None)


def language(commands: Sequence[str], words: Collection[str]) -> str | None:
    """The language of the programs that are run, if the commands show it: that of most of them, or the last in a tie.

    `words` are the joined words of all commands.
    """
    every = list(_languages(words))
    if len(every) < 2:
        return next(iter(every), None)
    found = [name for command in commands if (name := language_of(joined_words(command)))]
    counted = Counter([name for name in found if name != _PARALLEL] or found)
    return max(reversed(counted), key=lambda name: counted[name], default=None)


def language_of(words: Collection[str]) -> str | None:
    """The first language of the table that these joined words name."""
    return next(_languages(words), None)


def _languages(words: Collection[str]) -> Iterator[str]:
    endings = {word.rpartition(".")[2] for word in words if "." in word}
    together = f" {' '.join(words)}"
    for name, own, beginning, files in _BY_LANGUAGE:
        if not (own.isdisjoint(words) and files.isdisjoint(endings)) or (
            beginning and f" {beginning}" in together
        ):
            yield name
