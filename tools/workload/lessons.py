"""The training data of the shipped models: scripts and disguised copies, with a label and weight for each operation."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tocsin.workload.keywords import find_keywords
from tocsin.workload.normal import commands
from tocsin.workload.signs.digests import digest_lines
from tocsin.workload.signs.look import signs
from tools.workload.ai_jobs import ai_jobs
from tools.workload.corpus import Example
from tools.workload.disguise import Disguise
from tools.workload.misuse_jobs import made_up
from tools.workload.science_jobs import python_jobs

__all__ = ["OPERATIONS", "Lesson", "labels", "lessons"]

OPERATIONS = ("ai", "cryptomining", "cyber")
MADE_UP = 400
"""Scripts of each misuse."""
PYTHON_JOBS = 2000
"""Half of them learn."""
_OWNERS = 40
"""That the made-up scripts are dealt to; they are never left out."""
_SHARES = ((0.3, 0.5, 0.7, 0.8, 0.9), (0.5, 0.7, 0.8, 0.9, 0.95))
# Weights, chosen leaving owners out (see the card): how much a script of SCRIPT-AI, labelled by hand, counts beside a
# weakly labelled one; a disguised copy beside its original; a script in which no rule found anything, as not AI;
# AI against the rest, clean and disguised.
_BY_HAND, _COPY, _PLAIN, _AI, _AI_DISGUISED = 3.0, 0.7, 0.05, 1.0, 1.25
_PYTHON_JOB = 0.25
"""A made-up Python job beside a real script; heavier ones cost real Python without a word of AI, which mostly is AI where
it asks for GPUs."""
AI_JOBS = 2000
_AI_JOB = 0.2
"""A made-up job with software for AI beside a real script."""
_MISUSE = 0.15
"""All misuse against all innocent scripts."""


@dataclass(slots=True)
class Lesson:
    """A script with its label and weight for each operation that it is an example of."""

    text: str
    owner: str
    example: int | None
    """The example that it is, as it stands; copies and made-up ones are none."""
    whole: bool = True
    """No part of it is random strings."""
    labels: dict[str, tuple[int, float]] = field(default_factory=dict)


def lessons(examples: Sequence[Example], seed: int = 0) -> list[Lesson]:
    """The examples themselves first, in their order."""
    found = [Lesson(example.text, example.owner, number) for number, example in enumerate(examples)]
    disguise = Disguise(seed)
    copies: list[tuple[int, Lesson]] = []
    for shares in _SHARES:
        for number, example in enumerate(examples):
            if example.ai is not None:
                copies.append(
                    (
                        number,
                        Lesson(
                            disguise.replaced_at_random(example.text, shares),
                            example.owner,
                            None,
                            whole=False,
                        ),
                    )
                )
    _label_ai(examples, found, copies)
    found += [copy for _, copy in copies]
    found += _python(seed)
    found += _ai_jobs(examples, seed)
    for operation in OPERATIONS[1:]:
        found += _misuse(examples, found, operation, disguise, seed)
    return found


def labels(
    training_set: Sequence[Lesson], operation: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Which lessons have a label for the operation, their labels and weights."""
    rows = [row for row, lesson in enumerate(training_set) if operation in lesson.labels]
    pairs = [training_set[row].labels[operation] for row in rows]
    return np.array(rows), np.array([label for label, _ in pairs]), np.array([weight for _, weight in pairs])


def _label_ai(
    examples: Sequence[Example], found: Sequence[Lesson], copies: Sequence[tuple[int, Lesson]]
) -> None:
    clean = {
        row: (example.ai or 0, _PLAIN if example.ai is None else _weight(example))
        for row, example in enumerate(examples)
        if example.ai is not None or (example.plain and not _names_ai(example.text))
    }
    for row, label in _balanced(clean, _AI).items():
        found[row].labels["ai"] = label
    copied = {place: (examples[row].ai or 0, _weight(examples[row])) for place, (row, _) in enumerate(copies)}
    for place, (label, weight) in _balanced(copied, _AI_DISGUISED).items():
        copies[place][1].labels["ai"] = (label, _COPY * weight)


def _python(seed: int) -> list[Lesson]:
    return [
        Lesson(
            text,
            f"made up python {number // 2 % _OWNERS}",
            None,
            labels={"ai": (int(learns), _PYTHON_JOB)},
        )
        for number, (text, learns) in enumerate(python_jobs(PYTHON_JOBS, seed))
    ]


def _ai_jobs(examples: Sequence[Example], seed: int) -> list[Lesson]:
    """They belong to the owner of the lines around them, and are left out with that one."""
    innocent = [
        example
        for example in examples
        if example.origin == "jobspec" and (example.ai == 0 or example.plain) and not _names_ai(example.text)
    ]
    return [
        Lesson(job.text, innocent[job.among].owner, None, labels={"ai": (int(job.runs), _AI_JOB)})
        for job in ai_jobs([example.text for example in innocent], AI_JOBS, seed)
    ]


def _weight(example: Example) -> float:
    return _BY_HAND if example.origin == "script-ai" else 1.0


def _balanced(given: dict[int, tuple[int, float]], share: float) -> dict[int, tuple[int, float]]:
    """Weights so that the operation weighs `share` times as much as the rest."""
    yes = sum(weight for label, weight in given.values() if label)
    no = sum(weight for label, weight in given.values() if not label)
    half = (yes + no) / 2
    return {
        key: (label, weight * (share * half / max(yes, 1e-9) if label else half / max(no, 1e-9)))
        for key, (label, weight) in given.items()
    }


def _misuse(
    examples: Sequence[Example], found: Sequence[Lesson], operation: str, disguise: Disguise, seed: int
) -> list[Lesson]:
    """Negatives: innocent scripts. Positives: real and made-up ones, alone, half hidden and among innocent lines."""
    chance = random.Random(f"{operation} {seed}")  # no secret
    innocent = [row for row, example in enumerate(examples) if example.misuse is None]
    crowd = Counter(example.source for example in examples if example.misuse == operation)
    yes: list[tuple[Lesson, float]] = []
    for row, example in enumerate(examples):
        if example.misuse == operation:
            if not _mentions_misuse(example.text):
                continue  # only the header named it: the rest (`make; ./a.out`) would make every build misuse
            weight = crowd[example.source] ** -0.5  # a repository of fifty alike scripts is not fifty voices
            yes.append((found[row], weight))
            yes.append(
                (Lesson(disguise.replaced(example.text, 0.5), example.owner, None, whole=False), 0.5 * weight)
            )
            hidden = _among(example.text, examples[chance.choice(innocent)].text, chance)
            yes.append((Lesson(hidden, example.owner, None), 0.5 * weight))
        elif example.misuse is not None:
            found[row].labels[operation] = (0, 1.0)
    for number, text in enumerate(made_up(operation, MADE_UP, seed)):
        if number % 2:
            text = _among(text, examples[chance.choice(innocent)].text, chance)
        yes.append((Lesson(text, f"made up {operation} {number % _OWNERS}", None), 0.1))
    for row in innocent:
        found[row].labels[operation] = (0, 1.0)
    scale = _MISUSE * len(innocent) / sum(weight for _, weight in yes)
    for lesson, weight in yes:
        lesson.labels[operation] = (1, scale * weight)
    return [lesson for lesson, _ in yes if lesson.example is None]


def _names_ai(text: str) -> bool:
    return find_keywords(commands(text)).names_ai


def _mentions_misuse(text: str) -> bool:
    script = commands(text)
    return (
        find_keywords(script).mentions_misuse
        or bool(digest_lines(script))
        or any(sign.operation for sign in signs(text))
    )


def _among(text: str, innocent: str, chance: random.Random) -> str:
    lines = innocent.split("\n")[:200]
    place = chance.randint(0, len(lines))
    return "\n".join([*lines[:place], text, *lines[place:]])
