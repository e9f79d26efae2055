"""False misuse on innocent scripts that look or read like it, and disguised miners that pass as fine.

Half of the innocent scripts are jobspec's, which the shipped weights learned from (`bench workload` leaves owners out);
the others are generated around jobspec's: they speak of misuse, search for it, and use proxies, tokens and hashes.
Two further sets were written before their author had read the rules; every second script of them was held out. Others
were written with the rules at hand; rules were changed for those of their disguises that passed, so what was found at first
contact is kept here as it was measured then.
"""

import os
from pathlib import Path
from typing import Any

from tools.workload.corpus import corpus
from tools.workload.innocent_jobs import innocent_jobs
from tools.workload.miner_disguises import DISGUISES, script

from bench import fresh_disguises, fresh_innocent, informed_disguises
from tocsin.core.verdict import SEEN_FROM, Screening
from tocsin.workload.conviction import MISUSE
from tocsin.workload.screening import Screener, builtin

__all__ = ["run"]

INNOCENT = 5000
"""Of each kind."""


def run(folder: Path | None = None) -> dict[str, Any]:
    folder = folder or Path(os.environ.get("TOCSIN_DATA", "../shared/data"))
    texts = [example.text for example in corpus(folder) if example.origin == "jobspec"]
    public = texts[:: len(texts) // INNOCENT][:INNOCENT]
    screener = builtin()
    innocent = {
        "jobspec": _figures(screener, public),
        "generated": _figures(screener, innocent_jobs(INNOCENT, bodies=public)),
    }
    count = sum(each["scripts"] for each in innocent.values())
    false = sum(each["false_misuse"] for each in innocent.values())
    disguises = _disguised(screener, {name: script(text) for name, text in DISGUISES.items()})
    fresh = {
        half: _disguised(screener, dict(texts))
        for half, texts in _halves(
            [(name, fresh_disguises.script(name)) for name in fresh_disguises.DISGUISES]
        ).items()
    }
    informed = {
        name: _disguised(screener, {each: informed_disguises.script(body) for each, body in bodies.items()})
        for name, bodies in (informed_disguises.SETS | informed_disguises.NOT_ALL_FOUND).items()
    }
    every = [disguises, *fresh.values(), *informed.values()]
    return {
        "innocent": {**innocent, "scripts": count, "false_misuse": false, "false_misuse_rate": false / count},
        "disguises": disguises,
        "fresh_innocent": {
            half: _figures(screener, texts)
            for half, texts in _halves(
                [*map(fresh_innocent.innocent_script, fresh_innocent.INNOCENT)]
            ).items()
        },
        "fresh_disguises": fresh,
        "informed_innocent": _figures(
            screener, [*map(informed_disguises.script, informed_disguises.INNOCENT.values())]
        ),
        "informed_disguises": informed,
        "all_disguises": {
            "scripts": sum(each["scripts"] for each in every),
            "fine": sum(each["fine"] for each in every),
            "silent": sum(each["silent"] for each in every),
        },
    }


def _halves(each: list[Any]) -> dict[str, list[Any]]:
    return {"seen": each[::2], "held_out": each[1::2]}


def _figures(screener: Screener, texts: list[str]) -> dict[str, int]:
    found = screener.screen(texts)
    seen = [each for each in found if max(each.operations[name] for name in MISUSE) >= SEEN_FROM]
    fine = [each for each in found if each not in seen and not each.open]
    return {
        "scripts": len(texts),
        "false_misuse": len(seen),
        "only_open_sign": len(found) - len(seen) - len(fine),
        **_said_of_fine(fine),
    }


def _disguised(screener: Screener, scripts: dict[str, str]) -> dict[str, Any]:
    found = dict(zip(scripts, screener.screen(list(scripts.values())), strict=True))
    seen = [name for name, each in found.items() if each.operations["cryptomining"] >= SEEN_FROM]
    fine = [name for name, each in found.items() if name not in seen and not each.open]
    return {
        "scripts": len(found),
        "cryptomining": len(seen),
        "only_open_sign": len(found) - len(seen) - len(fine),
        "fine": len(fine),
        **_said_of_fine([found[name] for name in fine]),
        "names_of_fine": fine,
    }


def _said_of_fine(fine: list[Screening]) -> dict[str, int]:
    """What the verdicts on scripts without a sign say that they do not cover; `silent`: nothing."""
    named = sum(bool(each.own_programs) for each in fine)
    silent = sum(
        not each.own_programs and any((each.application, each.domain, each.language)) for each in fine
    )
    return {
        "only_unknown_program": named,
        "nothing_known": len(fine) - named - silent,
        "silent": silent,
    }
