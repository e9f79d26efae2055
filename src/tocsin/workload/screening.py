"""The screener: classifies scripts by their text."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tocsin.core.errors import ModelError
from tocsin.core.verdict import SEEN_FROM, Evidence, Screening
from tocsin.models.files import MALFORMED, read_document
from tocsin.workload.applications import applications, language, main_application
from tocsin.workload.commands import command_lines
from tocsin.workload.conviction import SIGN_PROBABILITY, convict
from tocsin.workload.normal import Commands, commands, stretches
from tocsin.workload.own_programs import bare_commands, own_programs
from tocsin.workload.panel import Panel, evidence_lines, load_panel
from tocsin.workload.rules import Rule
from tocsin.workload.signs.effort import Effort
from tocsin.workload.signs.executed import executed_commands
from tocsin.workload.signs.look import OTHER_WORDS, Sign, look
from tocsin.workload.signs.rule import CRYPTOMINING
from tocsin.workload.signs.unread import DECODED, FETCHED
from tocsin.workload.what_runs import holder, run_by_lines, run_commands
from tocsin.workload.words import joined_words

__all__ = ["BUILTIN", "Screener", "builtin", "load_screener"]

BUILTIN = Path(__file__).parent / "builtin" / "workload"
FILE = "screener.json"
VERSION = 1
_PACKED = re.compile(r"[A-Za-z0-9+/=_-]{24,}")
"""A line that is mostly this is encoded data; its own letters carry no information."""
_HARMFUL = {"cryptomining": "cryptomining", "security": "cyber"}
"""Domains that count only if this operation was detected."""
_MOST_OPEN = 5
_MOST_RECENT = 2000
_CHUNK = 256
"""Scripts per batch, to limit memory."""


class Screener:
    """Panels of trained operations, a site's rules, and signs of misuse."""

    def __init__(
        self,
        panels: Sequence[Panel],
        rules: Sequence[Rule] = (),
        *,
        site_trained: frozenset[str] = frozenset(),
    ) -> None:
        self.panels = tuple(panels)
        self.rules = tuple(rules)
        self.site_trained = site_trained
        """Operations that a site trained on its own examples."""
        self._recent: dict[Any, Screening] = {}

    @property
    def operations(self) -> list[str]:
        names = [name for panel in self.panels for name in panel.operations]
        return list(dict.fromkeys([*names, *(rule.operation for rule in self.rules)]))

    def screen(
        self, texts: Sequence[str], *, requests: Sequence[Mapping[str, Any]] | None = None
    ) -> list[Screening]:
        """One per script, in order. `requests`: what is known besides the text, as `name` and `environment`."""
        found: list[Screening] = []
        for first in range(0, len(texts), _CHUNK):
            given = requests[first : first + _CHUNK] if requests is not None else None
            found += self._screen(texts[first : first + _CHUNK], given)
        return found

    def screen_again(self, texts: Sequence[str], *, requests: Sequence[Mapping[str, Any]]) -> list[Screening]:
        """The same for scripts of jobs. One screened recently with the same request is not screened again: many users
        submit the same script over and over."""
        keys = [(text, *sorted(request.items())) for text, request in zip(texts, requests, strict=True)]
        known = {key: self._recent[key] for key in keys if key in self._recent}
        new = [place for place, key in enumerate(keys) if key not in known]
        screened = self.screen([texts[n] for n in new], requests=[requests[n] for n in new])
        fresh = {keys[n]: each for n, each in zip(new, screened, strict=True)}
        if len(self._recent) + len(fresh) > _MOST_RECENT:
            self._recent = {}
        if len(fresh) <= _MOST_RECENT:
            self._recent |= fresh
        known |= fresh
        return [known[key] for key in keys]

    def _screen(self, texts: Sequence[str], requests: Sequence[Mapping[str, Any]] | None) -> list[Screening]:
        given = requests or [{}] * len(texts)
        scripts = [_beside(commands(text), request) for text, request in zip(texts, given, strict=True)]
        looks = [_signs(text) for text in texts]
        whole = [_joined(script, look.hidden) for script, look in zip(scripts, looks, strict=True)]
        p: list[dict[str, float]] = [{} for _ in whole]
        lines: list[dict[str, set[int]]] = [{} for _ in whole]
        for panel in self.panels:
            scored = panel.score(whole)
            for row, found in enumerate(panel.probabilities(whole, scored).tolist()):
                for place, name in enumerate(panel.operations):
                    p[row][name] = found[place]
                    if found[place] >= SEEN_FROM:
                        evidence = evidence_lines(whole[row], scored.line_scores(row, place))
                        lines[row].setdefault(name, set()).update(evidence)
        return list(map(self._one, whole, p, lines, looks))

    def _one(
        self, script: Commands, p: dict[str, float], lines: dict[str, set[int]], found: "_Look"
    ) -> Screening:
        signs = found.signs
        by_sign: list[str] = []
        unread = [sign for sign in signs if sign.kind in (DECODED, FETCHED)]
        left_open = unread + [sign for sign in signs if sign.operation is None and sign not in unread]
        hidden = {line for line, _ in found.hidden}
        convictions = convict(script, p, signs, hidden=hidden, site_trained=self.site_trained)
        for name, conviction in convictions.items():
            left_open += conviction.left_open
            if name in p or conviction.probability > 0:
                p[name] = conviction.probability
            lines.setdefault(name, set()).update(conviction.lines)
            by_sign += [name] if conviction.by_sign else []
        if p.get(CRYPTOMINING, 0.0) >= SEEN_FROM:
            left_open = [sign for sign in left_open if sign.kind not in OTHER_WORDS]
        for rule in self.rules:
            matched = rule.matching_lines(script)
            if matched:
                by_sign.append(rule.operation)
            p[rule.operation] = max(p.get(rule.operation, 0.0), SIGN_PROBABILITY if matched else 0.0)
            lines.setdefault(rule.operation, set()).update(matched)
        if found.hidden:
            run = run_commands(
                [line for line, number in zip(script.lines, script.numbers, strict=True) if number]
            )
        else:
            run = run_by_lines(found.lines)
        words = joined_words("\n".join(run))
        named = applications(run, words)
        one = main_application(named)
        if one and one.domain in _HARMFUL:  # it may only be mentioned
            sure = run_commands(executed_commands(script))
            one = main_application(applications(sure, joined_words("\n".join(sure))))
            if one and p.get(_HARMFUL.get(one.domain, ""), 1.0) < SEEN_FROM:
                one = None
        one = holder(script.lines, run) or one
        domain = one.domain if one else _domain(script, p)
        return Screening(
            operations={name: round(value, 6) for name, value in p.items()},
            application=one.name if one else None,
            domain=domain,
            language=language(run, words) or (one.language if one else None),
            evidence=[
                Evidence(line=line, operation=name)
                for name in p
                for line in sorted(lines.get(name, ()))
                if line > 0 and p[name] >= SEEN_FROM
            ],
            open=[f"line {sign.line}: {sign.why}" for sign in left_open[:_MOST_OPEN]],
            runs_unread=bool(unread),
            own_programs=own_programs(run, named, found.bare),
            signs=list(dict.fromkeys(by_sign)),
        )

    def save(self, folder: Path) -> None:
        names = [f"panel-{number}" for number in range(len(self.panels))]
        document = {
            "version": VERSION,
            "panels": names,
            **({"taught": sorted(self.site_trained)} if self.site_trained else {}),
            "rules": [
                {"operation": rule.operation, "words": sorted(rule.words), "phrases": list(rule.phrases)}
                for rule in self.rules
            ],
        }
        (folder / FILE).write_text(json.dumps(document, indent=1) + "\n", "utf-8")
        for name, panel in zip(names, self.panels, strict=True):
            panel.save(folder, name)

    def with_rules(self, rules: Sequence[Rule]) -> "Screener":
        """The same screener with other rules."""
        return Screener(self.panels, rules, site_trained=self.site_trained)

    def with_panel(self, panel: Panel) -> "Screener":
        """The same screener with one more panel, which replaces earlier ones of the same operations."""
        kept = [
            left for left in (_without(other, panel.operations) for other in self.panels) if left.operations
        ]
        return Screener([*kept, panel], self.rules, site_trained=self.site_trained.union(panel.operations))


def load_screener(folder: Path) -> Screener:
    """What `save` wrote; anything else is refused with the file's name."""
    path = folder / FILE
    again = "restore it from a backup or train again: tocsin train workload"
    document = read_document(path, version=VERSION, next_step=again)
    try:
        names = [str(name) for name in document["panels"]]
        site_trained = frozenset(map(str, document.get("taught", ())))
        rules = [
            Rule(str(rule["operation"]), frozenset(map(str, rule["words"])), tuple(map(str, rule["phrases"])))
            for rule in document["rules"]
        ]
        if any(Path(name).name != name for name in names):
            raise ValueError("a panel is not a file name")
    except MALFORMED as error:
        raise ModelError(f"{path} is damaged ({str(error)[:100]}); {again}") from None
    return Screener([load_panel(folder, name) for name in names], rules, site_trained=site_trained)


def builtin() -> Screener:
    """The weights shipped with tocsin."""
    return load_screener(BUILTIN)


def _domain(script: Commands, p: Mapping[str, float]) -> str | None:
    """For a script whose commands name no application: by what it loads and mentions, or by its operation."""
    loaded = main_application(applications(script.lines, script.words))
    if loaded and p.get(_HARMFUL.get(loaded.domain, ""), 1.0) >= SEEN_FROM:
        return loaded.domain
    return "machine learning" if p.get("ai", 0.0) >= SEEN_FROM else None


class _Look(NamedTuple):
    """What a script hides, with the line that hides it, and all signs."""

    hidden: list[tuple[int, str]]
    signs: list[Sign]
    lines: list[str]
    """Its commands as a shell would see them, without repeats."""
    bare: list[str]
    """Its commands that begin with a bare name that is not known."""


def _signs(text: str) -> _Look:
    found = _Look([], [], [], [])
    parts = stretches(text)
    if len(parts) > 1:
        unread = f"not read whole: the script has {len(text):,} characters"
        found.signs.append(Sign(parts[1][0] + 1, None, unread))
    effort = Effort()
    for offset, part in parts:
        found.lines.extend(dict.fromkeys(line for _, line in command_lines(part)))
        found.bare.extend(bare_commands(part))
        packed, signs = look(part, effort)
        found.hidden.extend((piece.line + offset, piece.text) for piece in packed)
        found.signs.extend(sign._replace(line=sign.line + offset) for sign in signs)
    return found


def _joined(script: Commands, hidden: Sequence[tuple[int, str]]) -> Commands:
    """The commands, with hidden ones in place of the line that hid them."""
    if not hidden:
        return script
    open_ones = [
        (number, line)
        for number, line in zip(script.numbers, script.lines, strict=True)
        if 2 * sum(map(len, _PACKED.findall(line))) < len(line)
    ]
    numbers, lines = [number for number, _ in open_ones], [line for _, line in open_ones]
    gpus, sources = script.gpus, list(script.sources)
    for line, text in hidden:
        inside = commands(text)
        numbers += [line] * len(inside.lines)
        lines += inside.lines
        gpus = gpus or inside.gpus
        sources += inside.sources
    return Commands(tuple(numbers), tuple(lines), gpus, sources=tuple(sources))


def _beside(script: Commands, request: Mapping[str, Any]) -> Commands:
    """The job's name and environment, read like commands without a line; and whether it requests GPUs."""
    environment = request.get("environment") or {}
    name = request.get("name") or script.name
    texts = [str(name)] if name else []
    texts += [f"export {name}={value}" for name, value in sorted(environment.items())]
    given = [line for text in texts for line in text.split("\n")]  # `sbatch -J $'a\nb'` is valid
    gpus = request.get("req_gpus")
    return Commands(
        (*script.numbers, *[0] * len(given)),
        (*script.lines, *given),
        script.gpus if gpus is None else gpus > 0,
        sources=script.sources,
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
