"""A site trains a shipped operation on its own examples: the shipped weights are the starting point."""

from pathlib import Path

import pytest

from tests.kits.scripts import CRACK, FOAM, MINE, TRAIN, labelled_scripts
from tests.workload.test_screening import trained_on
from tocsin.core.errors import InputError
from tocsin.core.verdict import SEEN_FROM
from tocsin.workload.own_examples import read_examples
from tocsin.workload.screening import Screener, builtin, load_screener
from tocsin.workload.site_training import train_operation

OWN = "#!/bin/bash\nmodule load acme\nacmesolve --case {} --gauss-forest forest{}.afm --grow 40\n"
OTHER = "#!/bin/bash\nmodule load acme\nacmesolve --case {} --mesh mesh{}.msh --implicit\n"


@pytest.fixture(scope="module")
def shipped() -> Screener:
    return builtin()


def written(folder: Path, yes: list[str], no: list[str]) -> Path:
    for name, texts in (("yes", yes), ("no", no)):
        (folder / name).mkdir(parents=True)
        for number, text in enumerate(texts):
            (folder / name / f"{number:03}.sh").write_text(text)
    return folder


def names(stem: str) -> list[str]:
    words = "amber birch cedar delta ember fjord grove heath inlet jetty knoll larch"
    return [stem.format(word, word[::-1]) for word in words.split()]


def ai_of(screener: Screener, *texts: str) -> list[float]:
    return [said.operations["ai"] for said in screener.screen(list(texts))]


def test_twelve_scripts_are_learned_and_what_was_known_stays(tmp_path: Path, shipped: Screener) -> None:
    data = written(tmp_path / "data", names(OWN), names(OTHER))
    result = trained_on(shipped, "ai", data)
    assert result.before is not None
    assert result.before.yes < 6  # no shipped weight knows this site's solver
    assert min(result.now) >= 11
    assert result.no_worse
    new, old = ai_of(result.screener, OWN.format("moor", "room"), OTHER.format("moor", "room"))
    assert new >= SEEN_FROM > old
    for text in (TRAIN, FOAM, MINE, CRACK):
        (before,), (after,) = ai_of(shipped, text), ai_of(result.screener, text)
        assert (after >= SEEN_FROM) == (before >= SEEN_FROM)
    assert [s.operations["cyber"] for s in result.screener.screen([CRACK])] == [
        s.operations["cyber"] for s in shipped.screen([CRACK])
    ]


def test_examples_that_are_known_already_move_almost_nothing(tmp_path: Path, shipped: Screener) -> None:
    yes = [TRAIN.replace("resnet50", word) for word in ("vit", "bert", "gpt2", "unet", "lstm", "dqn")]
    no = [
        FOAM.replace("simpleFoam", word) for word in ("icoFoam", "pisoFoam", "rhoFoam", "potFoam", "dnsFoam")
    ]
    result = trained_on(shipped, "ai", written(tmp_path / "data", yes, no))
    other = "module load samtools\nsamtools sort -o a.bam a.sam\n"
    (before,), (after,) = ai_of(shipped, other), ai_of(result.screener, other)
    assert abs(after - before) < 0.02


def test_to_teach_the_same_twice_changes_nothing(tmp_path: Path, shipped: Screener) -> None:
    data = written(tmp_path / "data", names(OWN), names(OTHER))
    once = trained_on(shipped, "ai", data).screener
    (tmp_path / "saved").mkdir()
    once.save(tmp_path / "saved")
    twice = trained_on(load_screener(tmp_path / "saved"), "ai", data).screener
    texts = [OWN, OTHER, TRAIN, FOAM]
    assert twice.screen(texts) == once.screen(texts)
    assert len(twice.panels) == 1  # the vocabulary is not kept twice


def test_labels_that_say_nothing_are_no_better_than_chance(tmp_path: Path, shipped: Screener) -> None:
    texts = names(OTHER)
    result = trained_on(shipped, "rendering", written(tmp_path / "data", texts[::2], texts[1::2]))
    assert not result.no_worse


def test_a_script_that_is_both_is_refused(tmp_path: Path) -> None:
    texts = names(OWN)
    data = written(tmp_path / "data", texts, [*names(OTHER), texts[3].replace("40", "  41")])
    with pytest.raises(InputError, match=r"003\.sh and .*012\.sh say the same"):
        read_examples("ai", data)


def test_an_answer_outweighs_a_file_that_says_the_same(tmp_path: Path) -> None:
    texts = names(OWN)
    data = written(tmp_path / "data", texts, names(OTHER))
    found = read_examples("ai", data, more=[(texts[0], False), (texts[1], True), (texts[1], False)])
    assert (len(found.yes), len(found.no), found.contradicting) == (10, 13, 2)


def test_what_is_no_text_is_counted_and_not_learned_from(tmp_path: Path) -> None:
    data = written(tmp_path / "data", names(OWN), names(OTHER))
    (data / "yes" / "program").write_bytes(b"\x7fELF\0\0\0")
    found = read_examples("ai", data)
    assert (len(found.yes), found.no_text) == (12, 1)


def test_an_operation_that_is_taught_again_takes_the_old_ones_place(
    tmp_path: Path, shipped: Screener
) -> None:
    trained = trained_on(shipped, "cyber", labelled_scripts(tmp_path)).screener
    assert sorted(trained.operations) == ["ai", "cryptomining", "cyber"]
    assert trained.screen(["blender -b film.blend -f 1\n"])[0].operations["cyber"] >= SEEN_FROM


def test_too_few_examples_are_refused(tmp_path: Path) -> None:
    (tmp_path / "yes").mkdir()
    (tmp_path / "yes" / "one.sh").write_text("blender\n")
    with pytest.raises(InputError, match="1 example of rendering; at least 5"):
        read_examples("rendering", tmp_path)
    with pytest.raises(InputError, match="not a valid name for an operation"):
        read_examples("../x", tmp_path)


def test_a_site_panel_is_replaced_by_the_shipped_weights_corrected(tmp_path: Path, shipped: Screener) -> None:
    data = written(tmp_path / "data", names(OWN), names(OTHER))
    alone = Screener(trained_on(shipped, "rendering", data).screener.panels[1:])
    result = train_operation(alone, "ai", read_examples("ai", data))
    assert sorted(result.screener.operations) == ["ai", "rendering"]
    assert ai_of(result.screener, TRAIN)[0] >= SEEN_FROM
