"""The screener: what scripts are, by all that can be told from their text."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tocsin.core.errors import ModelError
from tocsin.core.verdict import SEEN_FROM, Evidence, Screening
from tocsin.models.files import read_document
from tocsin.workload.applications import applications, language, main_application
from tocsin.workload.normal import Commands, commands, stretches
from tocsin.workload.panel import Panel, load_panel
from tocsin.workload.rules import Rule
from tocsin.workload.signs.acts import acts
from tocsin.workload.signs.digests import DIGEST_PROBABILITY, digest_lines
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.look import look

__all__ = ["BUILTIN", "SIGN_PROBABILITY", "Screener", "builtin", "load_screener"]

BUILTIN = Path(__file__).parent / "builtin" / "workload"
FILE = "screener.json"
VERSION = 1
SIGN_PROBABILITY = 0.98
"""Of an operation with a sign: none of 20,230 innocent scripts of jobspec bears one, so 1 in 50 is a careful bound."""
_WORDS_ALONE = {"cryptomining": 0.9, "cyber": 0.9}
"""At most so much for what can harm, where words speak and no sign: geologists write of a stratum, economists of coins."""
_PACKED = re.compile(r"[A-Za-z0-9+/=_-]{24,}")
"""A line that is mostly this says nothing by its own letters; digits in it look like those of any command."""
_HARMFUL = ("cryptomining", "security")
"""Domains."""
_MOST_OPEN = 5
_CHUNK = 256
"""Scripts at a time: more would only take memory."""


class Screener:
    """Panels of trained operations, a site's rules, and the signs that no new name can hide."""

    def __init__(self, panels: Sequence[Panel], rules: Sequence[Rule] = ()) -> None:
        self.panels = tuple(panels)
        self.rules = tuple(rules)

    @property
    def operations(self) -> list[str]:
        names = [name for panel in self.panels for name in panel.operations]
        return list(dict.fromkeys([*names, *(rule.operation for rule in self.rules)]))

    def screen(
        self, texts: Sequence[str], *, requests: Sequence[Mapping[str, Any]] | None = None
    ) -> list[Screening]:
        """One a script, in order. `requests`: what is known beside the text, as `name` and `environment`."""
        found: list[Screening] = []
        for first in range(0, len(texts), _CHUNK):
            given = requests[first : first + _CHUNK] if requests is not None else None
            found += self._screen(texts[first : first + _CHUNK], given)
        return found

    def _screen(self, texts: Sequence[str], requests: Sequence[Mapping[str, Any]] | None) -> list[Screening]:
        given = requests or [{}] * len(texts)
        scripts = [_beside(commands(text), request) for text, request in zip(texts, given, strict=True)]
        told = [_signs(text) for text in texts]
        whole = [_joined(script, hidden) for script, (hidden, _, _) in zip(scripts, told, strict=True)]
        tables = [(panel, panel.probabilities(whole)) for panel in self.panels]
        found = []
        for row, script in enumerate(whole):
            _, by_operation, seen = told[row]
            p = {
                name: float(table[row, place])
                for panel, table in tables
                for place, name in enumerate(panel.operations)
            }
            found.append(self._one(script, p, by_operation, seen))
        return found

    def _one(
        self, script: Commands, p: dict[str, float], told: Mapping[str, list[int]], seen: list[str]
    ) -> Screening:
        lines: dict[str, set[int]] = {}
        for panel in self.panels:
            for name in panel.operations:
                if p[name] >= SEEN_FROM:
                    lines.setdefault(name, set()).update(panel.spoke(script, name))
        signs = list(told)
        p |= {name: min(p[name], most) for name, most in _WORDS_ALONE.items() if name in p}
        for rule in self.rules:
            matched = rule.spoke(script)
            if matched:
                signs.append(rule.operation)
            p[rule.operation] = max(p.get(rule.operation, 0.0), SIGN_PROBABILITY if matched else 0.0)
            lines.setdefault(rule.operation, set()).update(matched)
        if handed := digest_lines(script):
            p["cyber"] = max(p.get("cyber", 0.0), DIGEST_PROBABILITY)
            lines.setdefault("cyber", set()).update(handed)
        for name, where in told.items():
            p[name] = max(p.get(name, 0.0), SIGN_PROBABILITY)
            lines.setdefault(name, set()).update(where)
        one = main_application(applications(script.lines))
        if one and one.domain in _HARMFUL:  # then it may be only spoken of
            one = main_application(applications(acts(script.lines)))
        domain = one.domain if one else "machine learning" if p.get("ai", 0.0) >= SEEN_FROM else None
        return Screening(
            operations={name: round(value, 6) for name, value in p.items()},
            application=one.name if one else None,
            domain=domain,
            language=language(script.lines) or (one.language if one else None),
            evidence=[
                Evidence(line=line, operation=name)
                for name in p
                for line in sorted(lines.get(name, ()))
                if line > 0 and p[name] >= SEEN_FROM
            ],
            open=seen,
            signs=list(dict.fromkeys(signs)),
        )

    def save(self, folder: Path) -> None:
        names = [f"panel-{number}" for number in range(len(self.panels))]
        document = {
            "version": VERSION,
            "panels": names,
            "rules": [
                {"operation": rule.operation, "words": sorted(rule.words), "phrases": list(rule.phrases)}
                for rule in self.rules
            ],
        }
        (folder / FILE).write_text(json.dumps(document, indent=1) + "\n", "utf-8")
        for name, panel in zip(names, self.panels, strict=True):
            panel.save(folder, name)

    def with_panel(self, panel: Panel) -> "Screener":
        """The same with one more panel; it takes the place of those that told the same operations."""
        kept = [
            left for left in (_without(other, panel.operations) for other in self.panels) if left.operations
        ]
        return Screener([*kept, panel], self.rules)


def load_screener(folder: Path) -> Screener:
    """What `save` wrote; anything else is refused with the file's name."""
    path = folder / FILE
    again = "restore it from a backup or train again: tocsin train workload"
    document = read_document(path, version=VERSION, again=again)
    try:
        names = [str(name) for name in document["panels"]]
        rules = [
            Rule(str(rule["operation"]), frozenset(map(str, rule["words"])), tuple(map(str, rule["phrases"])))
            for rule in document["rules"]
        ]
        if any(Path(name).name != name for name in names):
            raise ValueError("a panel is no name of a file")
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path} is not as it was written ({str(error)[:100]}); {again}") from None
    return Screener([load_panel(folder, name) for name in names], rules)


def builtin() -> Screener:
    """The weights that come with tocsin."""
    return load_screener(BUILTIN)


def _signs(text: str) -> tuple[list[tuple[int, str]], dict[str, list[int]], list[str]]:
    """What a script hides, with the line that hides it; for each operation the lines that bear a sign of it; open signs."""
    hidden: list[tuple[int, str]] = []
    found: dict[str, list[int]] = {}
    seen: list[str] = []
    parts = stretches(text)
    if len(parts) > 1:
        seen.append(f"line {parts[1][0] + 1}: not read whole: the script has {len(text):,} characters")
    effort = Effort()
    for offset, part in parts:
        packed, said = look(part, effort)
        hidden += [(piece.line + offset, piece.text) for piece in packed]
        for line, operation, why in said:
            if operation is not None:
                found.setdefault(operation, []).append(line + offset)
            elif len(seen) < _MOST_OPEN:
                seen.append(f"line {line + offset}: {why}")
    return hidden, found, seen


def _joined(script: Commands, hidden: Sequence[tuple[int, str]]) -> Commands:
    """The commands with those that were hidden, each at the line that hid it, instead of what they were hidden in."""
    if not hidden:
        return script
    open_ones = [
        (number, line)
        for number, line in zip(script.numbers, script.lines, strict=True)
        if 2 * sum(map(len, _PACKED.findall(line))) < len(line)
    ]
    numbers, lines = [number for number, _ in open_ones], [line for _, line in open_ones]
    gpus = script.gpus
    for line, text in hidden:
        inside = commands(text)
        numbers += [line] * len(inside.lines)
        lines += inside.lines
        gpus = gpus or inside.gpus
    return Commands(tuple(numbers), tuple(lines), gpus)


def _beside(script: Commands, request: Mapping[str, Any]) -> Commands:
    """The job's name and environment, read like commands; they stand on no line. And whether it asks for GPUs."""
    environment = request.get("environment") or {}
    name = request.get("name") or script.name
    given = [str(name)] if name else []
    given += [f"export {name}={value}" for name, value in sorted(environment.items())]
    gpus = request.get("req_gpus")
    return Commands(
        (*script.numbers, *[0] * len(given)),
        (*script.lines, *given),
        script.gpus if gpus is None else gpus > 0,
    )


def _without(panel: Panel, names: Sequence[str]) -> Panel:
    places = [place for place, name in enumerate(panel.operations) if name not in names]
    return replace(
        panel,
        operations=tuple(panel.operations[place] for place in places),
        weights=panel.weights[:, places],
        bias=panel.bias[places],
        margins=tuple(panel.margins[place] for place in places) if panel.margins else (),
    )
