"""`tocsin models` shows how the models in use do on live jobs."""

import json
from pathlib import Path

from tests.kits.command_line import Tocsin
from tests.kits.live_verdicts import JOBS, THRESHOLD, give, guesses, jobs, key
from tests.kits.model_cards import card, write
from tocsin.core.stages import Stage
from tocsin.models.registry import Registry
from tocsin.store import scores
from tocsin.store.database import open_store
from tocsin.store.home import Home
from tocsin.store.scores import Score

RULE = {"value": THRESHOLD, "rule": {"kind": "precision_at_least", "value": 0.9}}


def test_live_precision_and_recall_are_listed_with_the_models(tocsin: Tocsin, tmp_path: Path) -> None:
    home, rows = Home(tmp_path / "home").prepare(), jobs()
    registry = Registry(home.models)
    for _ in range(3):
        registry.add("failure", write, card(thresholds=[RULE]))
    registry.promote("failure", "1")
    said = tocsin("models", "challenge", "failure", 2)
    assert (said.code, said.err) == (0, "failure 2 now runs beside the one in use at submit\n")
    with open_store(home.url) as store:
        give(store, rows, guesses(rows, 0.2))
        beside = guesses(rows[:40], 0.2, seed=2)
        scores.keep(
            store,
            [
                Score(key(row), Stage.SUBMIT, "failure", "2", row["submit"], p, THRESHOLD)
                for row, p in zip(rows[:40], beside, strict=True)
            ],
        )
    found = json.loads(tocsin("models", "list", "failure", "--json").out)
    one, two, three = (row for row in found if row["version"].isdigit())
    [live] = one["live"]
    assert (live["role"], live["stage"], live["cluster"]) == ("champion", "submit", "lab")
    assert live["precision"]["low"] < live["precision"]["value"] < live["precision"]["high"] < 0.9
    assert (live["promised"], live["held"]) == (0.9, False)
    assert live["jobs"] + sum(live["left_out"].values()) == JOBS
    [challenger] = two["live"]
    assert (challenger["role"], challenger["precision"]) == ("challenger", None)
    assert set(challenger["missing"]) == {"precision", "recall", "auc"}
    assert three["live"] == []
    table = tocsin("models", "list", "failure").out.splitlines()
    assert table[0].split()[-3:] == ["LiveJobs", "LivePrecision", "LiveRecall"]
    value, low, high = (live["precision"][name] for name in ("value", "low", "high"))
    assert f"{value:.2f} [{low:.2f},{high:.2f}]" in next(line for line in table if " 1 " in line)
    assert "too few" in next(line for line in table if " 2 " in line)
    shown = tocsin("models", "show", "failure", 1).out
    assert f"live         submit on lab, verdicts from {live['since']} to {live['until']}: " in shown
    assert "too few (" in tocsin("models", "show", "failure", 2).out
    ended = tocsin("models", "challenge", "failure", "--end")
    assert ended.err == "no version of failure runs beside the one in use at submit any more\n"
    assert registry.challenger("failure", Stage.SUBMIT) is None
    itself = tocsin("models", "challenge", "failure", 1)
    assert (itself.code, "cannot run beside itself" in itself.err) == (1, True)
