"""The registry: versions, champions, roll-back and damaged files."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kits.model_cards import FILES, card, write
from tocsin.core.errors import ModelError, NotFound
from tocsin.core.stages import Stage
from tocsin.models.aliases import BUILTIN
from tocsin.models.cards import Figure
from tocsin.models.registry import Registry


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "models")


def add(registry: Registry, times: int = 1, stage: Stage = Stage.SUBMIT) -> str:
    return [registry.add("failure", write, card(stage=stage)) for _ in range(times)][-1]


def test_versions_count_up(registry: Registry) -> None:
    assert registry.detectors() == []
    assert [add(registry) for _ in range(11)][-1] == "11"
    assert registry.versions("failure") == [str(number) for number in range(1, 12)]
    assert registry.detectors() == ["failure"]


def test_a_model_is_opened_with_its_files_and_its_card(registry: Registry) -> None:
    add(registry)
    folder, found = registry.open_verified("failure", "1")
    assert (folder / "encoders" / "users.json").read_bytes() == FILES["encoders/users.json"]
    assert found.version == "1"
    assert set(found.files) == set(FILES)


def test_a_writer_that_fails_leaves_nothing(registry: Registry) -> None:
    def fails(folder: Path) -> None:
        write(folder)
        raise KeyError("in the detector")

    with pytest.raises(KeyError):
        registry.add("failure", fails, card())
    assert registry.versions("failure") == []
    assert [path.name for path in (registry.folder / "failure").iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("name", "says"), [(None, "wrote no file"), ("card.json", "its own card.json")], ids=["nothing", "card"]
)
def test_a_detector_must_write_a_model_and_no_card(registry: Registry, name: str | None, says: str) -> None:
    def odd(folder: Path) -> None:
        if name:
            (folder / name).write_text("{}")

    with pytest.raises(ModelError, match=says):
        registry.add("failure", odd, card())


def test_a_link_is_no_model_file(registry: Registry) -> None:
    with pytest.raises(ModelError, match=r"model\.txt cannot be opened"):
        registry.add("failure", lambda folder: (folder / "model.txt").symlink_to("/etc/passwd"), card())
    assert registry.versions("failure") == []


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc", "Failure", "a\n", ".hidden", "x" * 65])
def test_names_that_lead_out_of_the_folder_are_refused(registry: Registry, name: str) -> None:
    with pytest.raises(ModelError, match="name of a detector"):
        registry.add(name, write, card(name))


@pytest.mark.parametrize("version", ["", "..", "../1", "0", "01", "1\n", "-1", "latest", "²", "1" * 10])
def test_versions_that_are_none_are_refused(registry: Registry, version: str) -> None:
    add(registry)
    with pytest.raises(ModelError, match="not a model version"):
        registry.open_verified("failure", version)


def test_a_version_that_is_not_there_is_named_with_those_that_are(registry: Registry) -> None:
    add(registry, 2)
    with pytest.raises(NotFound, match=r'no version 7 of "failure".*versions are 1, 2'):
        registry.verify("failure", "7")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from([*FILES, "card.json"]),
    place=st.floats(0, 1, exclude_max=True),
    flip=st.integers(1, 255),
)
def test_one_byte_changed_in_any_file_is_refused_by_its_name(
    registry: Registry, name: str, place: float, flip: int
) -> None:
    if not registry.versions("failure"):
        add(registry)
    path = registry.folder / "failure" / "1" / name
    good = path.read_bytes()
    bad = bytearray(good)
    bad[int(place * len(bad))] ^= flip
    path.write_bytes(bytes(bad))
    with pytest.raises(ModelError) as refusal:
        registry.open_verified("failure", "1")
    assert str(path) in str(refusal.value)
    path.write_bytes(good)
    registry.open_verified("failure", "1")


def test_a_missing_an_extra_and_an_odd_file_are_refused_by_name(registry: Registry) -> None:
    add(registry)
    folder = registry.folder / "failure" / "1"
    (folder / "more.txt").write_text("")
    with pytest.raises(ModelError, match=r"more\.txt is not on the card"):
        registry.verify("failure", "1")
    (folder / "more.txt").unlink()
    (folder / "model.txt").unlink()
    with pytest.raises(ModelError, match=r"model\.txt is missing"):
        registry.verify("failure", "1")
    os.mkfifo(folder / "model.txt")
    with pytest.raises(ModelError, match=r"model\.txt is refused: it is not a regular file"):
        registry.verify("failure", "1")
    (folder / "card.json").unlink()
    with pytest.raises(ModelError, match=r"card\.json is missing"):
        registry.verify("failure", "1")


def test_a_card_of_another_version_is_refused(registry: Registry) -> None:
    add(registry, 2)
    home = registry.folder / "failure"
    (home / "2" / "card.json").write_bytes((home / "1" / "card.json").read_bytes())
    with pytest.raises(ModelError, match="was the folder renamed"):
        registry.verify("failure", "2")


def test_promotion_and_the_way_back(registry: Registry) -> None:
    add(registry, 3)
    assert registry.champion("failure") is None
    for version in ("1", "3", "2"):
        registry.promote("failure", version, why="contest", at=1_794_775_393)
    assert registry.champion("failure") == "2"
    last = registry.card("failure", "2").promotions[-1]
    assert (last.at, last.replaced, last.why) == (1_794_775_393, "3", "contest")
    assert [registry.rollback("failure"), registry.rollback("failure")] == ["3", "1"]
    assert not registry.held("failure", Stage.START)
    assert registry.held("failure", Stage.SUBMIT)  # until somebody promotes one
    assert registry.rollback("failure") is None
    assert registry.champion("failure") is None
    with pytest.raises(ModelError, match="nothing to roll back"):
        registry.rollback("failure")
    assert not registry.promote("failure", "2", unless_held=True)
    assert registry.champion("failure") is None
    registry.promote("failure", "1")
    assert not registry.held("failure", Stage.SUBMIT)
    assert registry.promote("failure", "2", unless_held=True)


def test_all_champions_are_rolled_back_to_none_at_once(registry: Registry) -> None:
    add(registry, 3)
    for version in ("1", "3", "2"):
        registry.promote("failure", version)
    assert registry.rollback("failure", to_none=True) is None
    assert registry.champion("failure") is None
    assert registry.held("failure", Stage.SUBMIT)


def test_promoting_the_champion_again_changes_nothing(registry: Registry) -> None:
    add(registry, 2)
    registry.promote("failure", "1")
    before = (registry.folder / "failure" / "aliases.json").read_bytes()
    registry.promote("failure", "1")
    assert (registry.folder / "failure" / "aliases.json").read_bytes() == before
    assert len(registry.card("failure", "1").promotions) == 1


def test_each_stage_has_its_champion(registry: Registry) -> None:
    add(registry)
    add(registry, stage=Stage.START)
    registry.promote("failure", "1")
    registry.promote("failure", "2")
    assert registry.champion("failure", Stage.SUBMIT) == "1"
    assert registry.champion("failure", Stage.START) == "2"
    with pytest.raises(ModelError, match="champions for submit, start"):
        registry.open_verified("failure")
    assert registry.open_verified("failure", stage=Stage.START)[1].version == "2"


def test_a_cluster_may_have_its_own_champion_and_else_has_the_one_for_all(registry: Registry) -> None:
    add(registry, 3)
    registry.promote("failure", "1")
    registry.promote("failure", "2", cluster="lab")
    assert registry.champion("failure", Stage.SUBMIT, "lab") == "2"
    assert registry.champion("failure", Stage.SUBMIT, "other") == registry.champion("failure") == "1"
    assert registry.open_verified("failure", cluster="lab")[1].version == "2"
    assert registry.card("failure", "2").promotions[-1].cluster == "lab"
    registry.promote("failure", "3")
    assert registry.champion("failure", Stage.SUBMIT, "lab") == "2"
    assert registry.rollback("failure", cluster="lab") == "3"
    assert registry.champion("failure", Stage.SUBMIT, "lab") == "3"
    with pytest.raises(ModelError, match="submit on lab"):
        registry.rollback("failure", cluster="lab")
    assert registry.rollback("failure") == "1"


def test_a_challenger_runs_beside_and_can_win(registry: Registry) -> None:
    add(registry, 2)
    registry.promote("failure", "1")
    registry.challenge("failure", "2", Stage.SUBMIT)
    assert registry.resolve("failure", "challenger") == "2"
    with pytest.raises(ModelError, match="a model for submit, not for start"):
        registry.challenge("failure", "2", Stage.START)
    registry.promote("failure", "2")
    assert (registry.champion("failure"), registry.challenger("failure")) == ("2", None)
    with pytest.raises(NotFound, match="no challenger; see"):
        registry.resolve("failure", "challenger")


def test_a_damaged_model_cannot_be_promoted_nor_rolled_back_to(registry: Registry) -> None:
    add(registry, 3)
    registry.promote("failure", "1")
    registry.promote("failure", "2")
    for version in ("1", "3"):
        (registry.folder / "failure" / version / "model.txt").write_text("changed")
    with pytest.raises(ModelError, match=r"3/model\.txt was changed"):
        registry.promote("failure", "3")
    with pytest.raises(ModelError, match=r"1/model\.txt was changed"):
        registry.rollback("failure")
    assert registry.champion("failure") == "2"


@pytest.mark.parametrize(
    "text", ["", "[]", '{"submit": 1}', '{"later": {}}', "[" * 9999, '{"submit": {"champion": "../1"}}']
)
def test_aliases_that_are_none_are_refused_with_the_next_step(registry: Registry, text: str) -> None:
    add(registry)
    (registry.folder / "failure" / "aliases.json").write_text(text)
    with pytest.raises(ModelError, match="tocsin models promote failure VERSION"):
        registry.champion("failure")


def test_the_shipped_model_serves_until_another_is_promoted_and_is_never_written(tmp_path: Path) -> None:
    shipped = tmp_path / "shipped" / "failure"
    maker = Registry(tmp_path / "maker")
    version = add(maker)
    shipped.parent.mkdir()
    (tmp_path / "maker" / "failure" / version).rename(shipped)
    sealed = card(version=BUILTIN, files=json.loads((shipped / "card.json").read_text())["files"])
    (shipped / "card.json").write_bytes(sealed.render())
    before = {path: path.read_bytes() for path in shipped.rglob("*") if path.is_file()}

    registry = Registry(tmp_path / "models", builtin=(shipped.parent,))
    assert registry.detectors() == ["failure"]
    assert registry.open_verified("failure")[0] == shipped
    assert registry.champion("failure", Stage.START) is None
    assert add(registry) == "1"
    registry.promote("failure", "1")
    assert registry.rollback("failure") == BUILTIN
    assert registry.versions("failure") == [BUILTIN, "1"]
    assert {path: path.read_bytes() for path in shipped.rglob("*") if path.is_file()} == before


def test_a_detector_may_ship_a_model_for_each_stage(tmp_path: Path) -> None:
    maker = Registry(tmp_path / "maker")
    for stage, name in ((Stage.SUBMIT, BUILTIN), (Stage.START, f"{BUILTIN}-start")):
        made = maker.folder / "failure" / add(maker)
        files = json.loads((made / "card.json").read_text())["files"]
        (made / "card.json").write_bytes(card(version=name, stage=stage, files=files).render())
        (tmp_path / "shipped" / "failure").mkdir(parents=True, exist_ok=True)
        made.rename(tmp_path / "shipped" / "failure" / stage)
    registry = Registry(tmp_path / "models", builtin=(tmp_path / "shipped",))
    assert registry.versions("failure") == [BUILTIN, "builtin-start"]
    assert registry.champion("failure", Stage.START) == "builtin-start"
    assert registry.champion("failure", Stage.EARLY) is None
    assert registry.open_verified("failure", stage=Stage.START)[1].stage is Stage.START
    assert add(registry) == "1"


def test_a_folder_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file")
    with pytest.raises(ModelError, match="cannot be used"):
        add(Registry(tmp_path / "models"))


WRITER = """
import sys
from pathlib import Path
from tests.kits.model_cards import card, write
from tocsin.models.registry import Registry

def slowly(folder):
    write(folder)
    print("writing", flush=True)
    sys.stdin.readline()

print(Registry(Path(sys.argv[1])).add("failure", slowly, card()), flush=True)
"""


@pytest.fixture
def writers(registry: Registry) -> Iterator[list["subprocess.Popen[str]"]]:
    """Two processes that are in the middle of adding a model."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(registry.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for writer in started:
        assert writer.stdout
        assert writer.stdout.readline() == "writing\n"
    yield started
    for writer in started:
        writer.kill()
        writer.communicate()


def test_two_writers_at_once_get_different_versions(
    registry: Registry, writers: list["subprocess.Popen[str]"]
) -> None:
    got = {writer.communicate("\n")[0].strip() for writer in writers}
    assert got == {"1", "2"}
    assert [registry.verify("failure", version).version for version in ("1", "2")] == ["1", "2"]


def test_a_killed_writer_leaves_no_version_and_its_remains_are_cleared(
    registry: Registry, writers: list["subprocess.Popen[str]"]
) -> None:
    killed, alive = writers
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert registry.versions("failure") == []
    assert add(registry) == "1"
    assert alive.communicate("\n")[0].strip() == "2"  # clearing has not touched the one that lives
    assert sorted(path.name for path in (registry.folder / "failure").iterdir()) == [".lock", "1", "2"]
    registry.verify("failure", "2")


def test_a_kill_at_any_system_call_leaves_the_registry_sound(tmp_path: Path) -> None:
    """Die before the n-th rename, fsync or write; whatever is there afterwards is whole."""
    code = """
import os, signal, sys
from pathlib import Path
from tests.kits.model_cards import card, write
from tocsin.models.registry import Registry
left = int(sys.argv[2])
def dying(call):
    def wrapped(*arguments, **more):
        global left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **more)
    return wrapped
for name in ("fsync", "rename", "replace", "open", "mkdir"):
    setattr(os, name, dying(getattr(os, name)))
registry = Registry(Path(sys.argv[1]))
registry.promote("failure", registry.add("failure", write, card()))
"""
    registry = Registry(tmp_path / "models")
    alive = 0
    for call in range(1, 60, 3):
        done = subprocess.run([sys.executable, "-c", code, str(registry.folder), str(call)], check=False)
        for version in registry.versions("failure"):
            registry.verify("failure", version)
        champion = registry.champion("failure")
        assert champion is None or champion in registry.versions("failure")
        alive = 0 if done.returncode else alive + 1
        if alive == 2:
            break
    assert alive == 2  # the calls ran out: it was killed all along the way
    assert add(registry) == registry.versions("failure")[-1]
    assert not list((registry.folder / "failure").glob(".new-*"))


def test_promotions_from_many_threads_are_all_remembered(registry: Registry) -> None:
    add(registry, 6)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda n: registry.promote("failure", str(n)), range(1, 7)))
    back: list[str | None] = [registry.champion("failure")]
    while registry.aliases("failure")[Stage.SUBMIT, None].previous:
        back.append(registry.rollback("failure"))
    assert sorted(map(str, back)) == list("123456")


def test_a_card_of_another_detector_is_refused(registry: Registry) -> None:
    with pytest.raises(ModelError, match='for the detector "workload"'):
        registry.add("failure", write, card("workload"))


def test_a_reader_beside_a_promotion_always_finds_it_sound(registry: Registry) -> None:
    add(registry, 2)

    def promote(times: int) -> None:
        for number in range(times):
            registry.promote("failure", str(1 + number % 2))

    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(promote, 30)
        while not busy.done():
            registry.verify("failure", "1")
    assert len(registry.card("failure", "1").promotions) == 15


def test_a_promotion_that_was_killed_is_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry(tmp_path)
    for _ in range(2):
        registry.add("failure", write, card())
    registry.promote("failure", "1")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tocsin.models.registry.write_aliases", killed)
        with pytest.raises(KeyboardInterrupt):
            registry.promote("failure", "2")
    assert registry.champion("failure") == "1"
    registry.promote("failure", "2")
    assert registry.champion("failure") == "2"
    assert len(registry.card("failure", "2").promotions) == 1
    registry.promote("failure", "1")
    registry.promote("failure", "2")
    assert len(registry.card("failure", "2").promotions) == 2


def test_what_is_stored_and_not_in_use_is_not_stored_twice(registry: Registry) -> None:
    def again(**fields: Any) -> str:
        return registry.add("failure", write, replace(card(), **fields), unless_stored=True)

    assert (again(), again(), again(created=99)) == ("1", "1", "1")
    assert again(parent="1") == "2", "it has another origin"
    assert again(stage=Stage.START) == "3"
    registry.promote("failure", "1")
    assert again() == "4", "1 is in use"
    registry.challenge("failure", "4", Stage.SUBMIT)
    assert again() == "5", "4 is in a contest"
    registry.rollback("failure", to_none=True)
    assert again() == "5"


def test_a_promotion_killed_before_the_first_aliases_were_written_is_noted_once(registry: Registry) -> None:
    add(registry)
    registry.promote("failure", "1", why="trained", at=5)
    (registry.folder / "failure" / "aliases.json").unlink()
    registry.promote("failure", "1", why="trained", at=9)
    assert [each.at for each in registry.card("failure", "1").promotions] == [5]
    assert registry.champion("failure") == "1"


def test_further_figures_are_written_on_the_card(registry: Registry) -> None:
    add(registry)
    one = Figure(name="f1", value=0.5, low=None, high=None, stage=Stage.SUBMIT, split="contest", data="d")
    registry.add_figures("failure", "1", [one])
    registry.add_figures("failure", "1", [replace(one, value=0.6), replace(one, data="e")])
    found = [(each.value, each.data) for each in registry.verify("failure", "1").figures if each.name == "f1"]
    assert found == [(0.6, "d"), (0.5, "e")]


def test_pruning_keeps_what_is_named_what_was_not_chosen_and_the_newest(registry: Registry) -> None:
    for _ in range(6):
        add(registry)
    registry.promote("failure", "1")
    registry.promote("failure", "2")
    registry.challenge("failure", "3", Stage.SUBMIT)
    assert registry.prune("failure", lambda card: card.version != "4", keep=1) == ["5"]
    assert registry.versions("failure") == ["1", "2", "3", "4", "6"]
    assert registry.prune("failure", lambda _: True, keep=9) == []
