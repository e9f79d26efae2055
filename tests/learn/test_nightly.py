"""A night's work: who is promoted, who is not, and that a killed run ends as one that was not killed."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import REPOSITORY
from tests.learn.siren_contest import (
    DAY,
    NOW,
    SIREN,
    LiveSirenContest,
    SirenContest,
    card,
    night,
    prepared,
    save,
    state,
)
from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage
from tocsin.learn.comparison import Measure, decide, require_blocks
from tocsin.learn.journal import Journal, Step
from tocsin.models.drift import Drift, stability
from tocsin.models.registry import Registry

BLOCKS = np.arange(500) // 5
LATER = {"now": NOW + 86400, "day": "2027-01-16"}


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return prepared(tmp_path / "models")


@pytest.mark.parametrize("gain", ["0.1", "-0.1"], ids=["promoted", "kept"])
def test_a_run_killed_at_each_step_ends_in_the_same_state(tmp_path: Path, gain: str) -> None:
    # in a process of its own, which is forked before any library has started a thread
    done = subprocess.run(
        [sys.executable, "-m", "tests.learn.siren_contest", str(tmp_path), gain],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [name.split()[1] for name in found] == (
        ["begun", "trained", "stored", "retrained", "challenging", "figures", "contested"]
        + (["promoted", "done"] if gain == "0.1" else ["done"])
    )
    assert {name: files for name, files in found.items() if files} == {}


def test_a_better_challenger_is_promoted_and_can_be_rolled_back(registry: Registry) -> None:
    [found] = night(registry.folder, SirenContest(gain=0.1))
    assert (found.state, found.champion, found.challenger) == ("promoted", "1", "2")
    assert found.result is not None
    assert found.result.better
    assert registry.champion(SIREN) == "2"
    assert registry.challenger(SIREN) is None
    card = registry.verify(SIREN, "2")
    assert (card.parent, card.created, card.promotions[0].at) == ("1", NOW, NOW)
    assert "better beyond noise" in card.promotions[0].why
    assert {figure.name for figure in card.figures if "contest with 1" in figure.split} == {
        "loudness",
        "loudness_gain",
    }
    assert [drift.name for drift in found.drift] == ["loudness of the champion", "pitch"]
    assert found.drift[0].then == 1.0
    assert registry.rollback(SIREN) == "1"


def test_a_worse_one_stays_beside_the_champion_with_its_figures(registry: Registry) -> None:
    [found] = night(registry.folder, SirenContest(gain=-0.1))
    assert (found.state, registry.champion(SIREN), registry.challenger(SIREN)) == ("kept", "1", "2")
    assert registry.versions(SIREN) == ["1", "2"]
    assert any(figure.name == "loudness_gain" for figure in registry.card(SIREN, "2").figures)


def test_a_worse_one_is_removed_after_the_next_night(registry: Registry) -> None:
    night(registry.folder, SirenContest(gain=-0.1))
    by_hand = registry.add(SIREN, lambda to: save(to, 0.5), card(5))
    [found] = night(registry.folder, SirenContest(gain=-0.2), **LATER)
    assert (found.state, found.challenger) == ("kept", "4")
    assert registry.versions(SIREN) == ["1", by_hand, "4"]


def test_models_of_long_ago_are_removed_and_ten_can_be_rolled_back_to(registry: Registry) -> None:
    for day in range(14):
        night(registry.folder, SirenContest(), now=NOW + day * 86400, day=f"2027-02-{day + 1:02}")
    kept = [str(version) for version in range(5, 16)]
    assert registry.versions(SIREN) == ["1", *kept], "the first one was trained by hand"
    assert registry.aliases(SIREN)[Stage.SUBMIT, None].previous == tuple(kept[:-1])
    assert [registry.rollback(SIREN) for _ in range(10)] == kept[-2::-1]


def test_a_worse_one_that_a_person_promoted_is_never_removed(registry: Registry) -> None:
    night(registry.folder, SirenContest(gain=-0.1))
    registry.promote(SIREN, "2")
    night(registry.folder, SirenContest(gain=0.1), **LATER)
    assert registry.versions(SIREN) == ["1", "2", "3"]
    assert registry.rollback(SIREN) == "2"


def test_one_that_is_not_worse_is_promoted_because_it_is_fresher(registry: Registry) -> None:
    [found] = night(registry.folder, SirenContest(gain=-0.01))
    assert found.state == "promoted"
    assert "not worse" in found.why


def test_a_second_run_of_the_day_does_nothing_and_says_so(registry: Registry) -> None:
    night(registry.folder, SirenContest())
    before = state(registry.folder)
    [again] = night(registry.folder, SirenContest(), now=NOW + 60)
    assert again.state == "done"
    assert state(registry.folder) == before
    [tomorrow] = night(registry.folder, SirenContest(), **LATER)
    assert (tomorrow.state, tomorrow.champion, tomorrow.challenger) == ("promoted", "2", "3")


def test_a_model_with_a_period_waits_for_its_day_and_shows_drift_meanwhile(registry: Registry) -> None:
    night(registry.folder, SirenContest())
    before = state(registry.folder)
    week = {"every_days": 7, "now": NOW + 6 * 86400}
    [waits] = night(registry.folder, SirenContest(), day="2027-01-21", **week)
    assert (waits.state, waits.why) == ("skipped", "it was retrained on 2027-01-15; next on 2027-01-22")
    assert waits.drift == [Drift(name="pitch", stability=0.3)]
    assert state(registry.folder) == before
    [found] = night(registry.folder, SirenContest(), day="2027-01-22", **week)
    assert (found.state, found.champion, found.challenger) == ("promoted", "2", "3")


def test_a_challenger_that_is_no_worse_on_live_jobs_goes_into_use_when_a_contest_is_due(
    registry: Registry,
) -> None:
    night(registry.folder, SirenContest(gain=-0.1))
    live = LiveSirenContest(gain=-0.2, live_gain=0.1)
    [waits] = night(registry.folder, live, **LATER, every_days=7)
    assert (waits.state, registry.champion(SIREN)) == ("skipped", "1")
    first, second = night(registry.folder, live, **LATER)
    assert (first.state, first.champion, first.challenger) == ("promoted", "1", "2")
    assert first.why.startswith("on live jobs beside the champion, it was better beyond noise: loudness")
    assert (second.state, second.champion, second.challenger) == ("kept", "2", "3")
    assert (registry.champion(SIREN), registry.challenger(SIREN)) == ("2", "3")
    [promotion] = registry.card(SIREN, "2").promotions
    assert "100 live jobs" in promotion.why


def test_a_challenger_that_is_worse_on_live_jobs_is_replaced_by_the_next(registry: Registry) -> None:
    night(registry.folder, SirenContest(gain=-0.1))
    [found] = night(registry.folder, LiveSirenContest(gain=-0.2, live_gain=-0.1), **LATER)
    assert (found.state, found.champion, found.challenger) == ("kept", "1", "3")
    assert (registry.versions(SIREN), registry.challenger(SIREN)) == (["1", "3"], "3")


def test_a_run_that_dies_after_a_live_promotion_is_continued(registry: Registry) -> None:
    night(registry.folder, SirenContest(gain=-0.1))

    def die(step: str) -> None:
        if step == "promoted live":
            raise KeyboardInterrupt

    live = LiveSirenContest(gain=-0.2)
    with pytest.raises(KeyboardInterrupt):
        night(registry.folder, live, **LATER, reached=die)
    [found] = night(registry.folder, live, **LATER)
    assert (found.state, found.champion, found.challenger) == ("kept", "2", "3")
    assert len(registry.card(SIREN, "2").promotions) == 1


def test_a_dry_run_changes_nothing(registry: Registry) -> None:
    before = state(registry.folder)
    [found] = night(registry.folder, SirenContest(), dry_run=True)
    assert (found.state, found.drift) == ("planned", [Drift(name="pitch", stability=0.3)])
    assert state(registry.folder) == before


def test_the_detectors_own_gate_has_the_last_word(registry: Registry) -> None:
    [found] = night(registry.folder, SirenContest(refusal="it has no licence to wail"))
    assert (found.state, found.why) == ("kept", "it has no licence to wail")
    assert (registry.champion(SIREN), registry.challenger(SIREN)) == ("1", None)


def test_a_roll_back_by_hand_is_respected(registry: Registry) -> None:
    night(registry.folder, SirenContest())
    registry.rollback(SIREN)
    [found] = night(registry.folder, SirenContest(), **LATER)
    assert (found.state, registry.champion(SIREN)) == ("skipped", "1")
    assert "rolled back by hand" in found.why
    registry.promote(SIREN, "2")
    [found] = night(registry.folder, SirenContest(), **LATER)
    assert found.state == "promoted"


def test_without_a_contest_a_detector_is_named_and_left_alone(registry: Registry) -> None:
    [found] = night(registry.folder, None)
    assert (found.state, found.why) == (
        "skipped",
        "the detector has no contest, so it is never retrained automatically",
    )
    [found] = night(registry.folder, SirenContest(stages=(Stage.END,)))
    assert found.why == "models for submit are trained by hand only"
    [found] = night(registry.folder, SirenContest(missing="a confirmed anomaly of today"))
    assert (found.state, found.why) == ("skipped", "a confirmed anomaly of today")
    assert not (registry.folder / "nightly.json").exists()


def test_a_champion_promoted_by_hand_meanwhile_stays(registry: Registry) -> None:
    by_hand = registry.add(SIREN, lambda to: save(to, 0.5), card(5))

    def promote(step: str) -> None:
        if step == "contested":
            registry.promote(SIREN, by_hand)

    [found] = night(registry.folder, SirenContest(), reached=promote)
    assert (found.state, registry.champion(SIREN), registry.challenger(SIREN)) == ("kept", by_hand, None)


def test_yesterdays_killed_run_is_finished_before_tonights(registry: Registry) -> None:
    class Dead(BaseException):
        """As a kill, but in this process."""

    def die(step: str) -> None:
        if step == "stored":
            raise Dead

    with pytest.raises(Dead):
        night(registry.folder, SirenContest(), reached=die)
    assert registry.versions(SIREN) == ["1", "2"]
    found = night(registry.folder, SirenContest(), **LATER)
    assert [(one.state, one.champion, one.challenger) for one in found] == [
        ("promoted", "1", "2"),
        ("promoted", "2", "3"),
    ]
    assert registry.versions(SIREN) == ["1", "2", "3"]


def test_a_broken_contest_is_reported_as_failed(registry: Registry) -> None:
    class Broken(SirenContest):
        def prepare(self, champion: object, night: object) -> None:  # type: ignore[override]
            raise ZeroDivisionError("oops")

    [found] = night(registry.folder, Broken())
    assert (found.state, found.why) == ("failed", "it failed: ZeroDivisionError: oops")


def test_a_damaged_champion_is_named_and_harms_no_other(registry: Registry) -> None:
    (registry.folder / SIREN / "1" / "siren.json").write_text("2.0")
    [found] = night(registry.folder, SirenContest())
    assert (found.state, "was changed after it was written" in found.why) == ("skipped", True)
    (registry.folder / SIREN / "1" / "card.json").write_text("{}")
    [found] = night(registry.folder, SirenContest())
    assert (found.state, "card.json is refused" in found.why) == ("skipped", True)


def test_a_damaged_journal_is_refused_by_name(registry: Registry) -> None:
    night(registry.folder, SirenContest())
    path = registry.folder / "nightly.json"
    path.write_text(path.read_text()[:-20])
    with pytest.raises(ModelError, match=r"nightly\.json is damaged .* remove it"):
        Journal(path)


def means(one: np.ndarray, other: np.ndarray) -> Measure:  # type: ignore[type-arg]
    return lambda weight: (
        float(np.average(one, weights=weight)),
        float(np.average(other, weights=weight)),
    )


def test_the_rule_of_a_contest() -> None:
    noise = np.random.default_rng(0)
    one = noise.normal(1, 0.3, 500)

    def gain(shift: float, spread: float, **more: bool) -> tuple[bool, bool]:
        other = one + shift + noise.normal(0, spread, 500)
        result = decide(
            means(one, other), BLOCKS, figure="f", held_back="rows", **{"higher_is_better": True, **more}
        )
        return result.better, result.promotes

    assert gain(0.1, 0.1) == (True, True)
    assert gain(-0.1, 0.1) == (False, False)
    assert gain(-0.1, 0.1, higher_is_better=False) == (True, True)
    assert gain(0.0, 0.01) == (False, True), "as good, and that is certain"
    assert gain(0.0, 3.0) == (False, False), "as good, but that is noise"
    assert gain(0.0, 0.01, confident=False) == (False, True)
    assert gain(-0.1, 0.1, confident=False) == (False, False), "its figure is lower"
    assert gain(1.0, 30.0, confident=False)[1], "its figure is higher, and a fresher model is preferred"


def test_too_few_blocks_decide_nothing() -> None:
    with pytest.raises(ModelError, match="9 independent blocks"):
        require_blocks(BLOCKS[:45], "rows")


def test_stability_is_small_for_the_same_population_and_large_for_another() -> None:
    noise = np.random.default_rng(0)
    then, same, moved = noise.normal(0, 1, 5000), noise.normal(0, 1, 5000), noise.normal(1, 1, 5000)
    index = [stability(then, now) for now in (then, same, moved)]
    assert index[0] == 0.0
    assert index[1] is not None
    assert index[2] is not None
    assert index[1] < 0.02 < 0.25 < index[2]
    gone = np.where(np.arange(5000) < 2500, np.nan, then)
    assert (stability(then, gone) or 0) > 0.25, "missing values are drift, too"
    assert stability(then, np.empty(0)) is None
    strengths = [Drift(name="x", stability=value).strength for value in (0.05, 0.1, 0.3, None)]
    assert strengths == ["none", "moderate", "strong", None]


def test_the_day_of_an_entry_is_kept(registry: Registry) -> None:
    night(registry.folder, SirenContest())
    entry = Journal(registry.folder / "nightly.json").last(SIREN, Stage.SUBMIT, None)
    assert entry is not None
    assert (entry.day, entry.now, entry.step) == (DAY, NOW, Step.DONE)
