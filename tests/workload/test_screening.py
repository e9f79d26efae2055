"""What a script is, said at once after the installation."""

import base64
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kits.scripts import CRACK, FOAM, MINE, TRAIN, labelled_scripts
from tocsin.core.errors import InputError, ModelError
from tocsin.core.stages import Stage
from tocsin.core.verdict import SEEN_FROM
from tocsin.models.registry import Registry
from tocsin.workload import screening
from tocsin.workload.detector import FittedScreening
from tocsin.workload.normal import commands
from tocsin.workload.own_examples import read_examples
from tocsin.workload.rules import read_rules
from tocsin.workload.screening import BUILTIN, Screener, builtin, load_screener
from tocsin.workload.site_training import TrainingResult, operation_card, train_operation


@pytest.fixture(scope="module")
def screener() -> Screener:
    return builtin()


def seen(screener: Screener, text: str) -> set[str]:
    return {name for name, p in screener.screen([text])[0].operations.items() if p >= SEEN_FROM}


@pytest.mark.parametrize(
    ("text", "operations"), [(TRAIN, {"ai"}), (FOAM, set()), (MINE, {"cryptomining"}), (CRACK, {"cyber"})]
)
def test_it_tells_what_a_script_is(screener: Screener, text: str, operations: set[str]) -> None:
    assert seen(screener, text) == operations


def test_the_lines_that_spoke_are_named(screener: Screener) -> None:
    lines = {(e.line, e.operation) for e in screener.screen([MINE])[0].evidence}
    assert (4, "cryptomining") in lines
    assert (6, "ai") in {(e.line, e.operation) for e in screener.screen([TRAIN])[0].evidence}
    assert screener.screen([FOAM])[0].evidence == []


def test_application_domain_and_language(screener: Screener) -> None:
    foam, train = screener.screen([FOAM, TRAIN])
    assert (foam.application, foam.domain, foam.language) == ("openfoam", "engineering", "mpi")
    assert (train.domain, train.language) == ("machine learning", "python")


@pytest.mark.parametrize("text", [TRAIN, FOAM, MINE, CRACK])
def test_a_header_tells_nothing_of_misuse(screener: Screener, text: str) -> None:
    bare = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    with_header, without = (screener.screen([script])[0].operations for script in (text, bare))
    for operation in ("cryptomining", "cyber"):
        assert with_header[operation] == without[operation]


def test_gpus_speak_for_ai_whoever_asks_for_them(screener: Screener) -> None:
    script = "conda activate work\npython run.py --config a.yaml\n"
    header = "#!/bin/sh\n#SBATCH --gres=gpu:1\n"
    plain, directive = screener.screen([script, header + script])
    (request,) = screener.screen([script], requests=[{"req_gpus": 1}])
    assert directive.operations["ai"] == request.operations["ai"] > plain.operations["ai"]


def test_lines_that_every_job_has_change_nothing(screener: Screener) -> None:
    idle = "mkdir -p out\necho start of the job\ndate\ndf -h .\nrsync -a out/ /archive/\n"
    assert screener.screen([idle + TRAIN + idle])[0].operations == screener.screen([TRAIN])[0].operations


def test_foreign_commands_do_not_hide_what_runs_between_them(screener: Screener) -> None:
    foreign = [f"samtools sort -o s{n}.bam s{n}.sam" for n in range(8)]
    foreign += ["gmx grompp -f md.mdp -o topol.tpr", "gmx mdrun -deffnm topol", "bwa index ref.fa"]
    text = "\n".join([*foreign, TRAIN, *foreign[::-1]])
    assert "ai" in seen(screener, text)
    assert "ai" not in seen(screener, "\n".join(foreign))


@pytest.mark.parametrize(
    "text",
    [
        "python sample.py --stratum 4 --strata 12\nRscript stratum_means.R stratum.csv\n",
        "python wallets.py --wallet share.csv --coin prices\n",
    ],
)
def test_words_alone_are_never_sure_of_misuse(screener: Screener, text: str) -> None:
    assert max(screener.screen([text])[0].operations[name] for name in ("cryptomining", "cyber")) <= 0.9


def test_padding_with_copies_changes_nothing(screener: Screener) -> None:
    assert screener.screen([TRAIN + TRAIN * 50])[0].operations == screener.screen([TRAIN])[0].operations


def test_a_payload_in_base64_is_found_at_the_line_that_hides_it(screener: Screener) -> None:
    packed = base64.b64encode(b"./worker -o pool.supportxmr.com:3333 -u $WALLET -a rx/0").decode()
    found = screener.screen([f"#!/bin/sh\nmodule load gcc\necho {packed} | base64 -d | sh\n"])[0]
    assert found.operations["cryptomining"] >= SEEN_FROM
    assert 3 in {e.line for e in found.evidence if e.operation == "cryptomining"}


@pytest.mark.parametrize("packed", ["base64", "hex", "python"])
def test_to_pack_a_script_does_not_make_it_ai(screener: Screener, packed: str) -> None:
    inside = FOAM.encode()
    word = inside.hex() if packed == "hex" else base64.b64encode(inside).decode()
    command = {
        "base64": f"echo {word} | base64 -d | bash",
        "hex": f"echo {word} | xxd -r -p | sh",
        "python": f"python3 -c \"import base64,os;os.system(base64.b64decode('{word}').decode())\"",
    }[packed]
    open_one, hidden = screener.screen([FOAM, f"#!/bin/bash\n{command}\n"])
    assert hidden.operations["ai"] < 0.1
    assert (hidden.application, hidden.domain) == (open_one.application, open_one.domain)


@pytest.mark.parametrize(
    "command",
    [
        "python reduce.py --rows 4000 --input x.csv",
        "jupyter lab --no-browser --port 8890",
        "python plot_profiles.py --workers 8 profiles/",
        "python tides.py --bootstrap 200 --tol 1e-8",
    ],
)
def test_python_alone_is_not_ai(screener: Screener, command: str) -> None:
    around = "#!/bin/bash\n#SBATCH -n 1\nmodule load python\nsource venv/bin/activate\n"
    assert "ai" not in seen(screener, around + command + "\n")
    assert "ai" in seen(screener, around + "python main.py --config cfg.yaml --epochs 90 --lr 1e-3\n")


def test_what_is_asked_together_is_answered_as_alone(screener: Screener) -> None:
    texts = [TRAIN, FOAM, MINE, CRACK, "", "#!/bin/sh\n"] * 60
    together = screener.screen(texts)
    assert together == [screener.screen([text])[0] for text in texts[:6]] * 60


def test_a_job_name_speaks_too(screener: Screener) -> None:
    plain, named = screener.screen(["./a.out\n"] * 2, requests=[{}, {"name": "xmrig_miner"}])
    assert named.operations["cryptomining"] > plain.operations["cryptomining"]


@pytest.mark.parametrize(
    "request_",
    [
        {"name": "x\ny"},
        {"name": "\n\n"},
        {"environment": {"A": "1\n2", "B": "\r\n"}},
        {"name": "a\x85b\u2028c\vd"},
    ],
)
def test_line_breaks_in_a_job_name_hide_nothing(screener: Screener, request_: dict[str, Any]) -> None:
    """Anybody may name a job like that; the screener failed on it, and so the job was never screened."""
    (found,) = screener.screen([MINE], requests=[request_])
    assert found.operations["cryptomining"] >= SEEN_FROM


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\0" * 1000,
        "x" * 50_000_000,
        "echo hello\n" * 4_500_000,
        "\n" * 10_000_000,
        "".join(map(chr, range(0xD800, 0xDC00))),
        TRAIN.encode("utf-16").decode("latin-1"),
        bytes(range(256)).decode("latin-1") * 1000,
    ],
    ids=["empty", "NUL", "50 MB on one line", "50 MB", "blank lines", "surrogates", "UTF-16", "binary"],
)
def test_anything_gets_an_answer_in_bounded_time(screener: Screener, text: str) -> None:
    began = time.process_time()
    (found,) = screener.screen([text])
    assert set(found.operations) == {"ai", "cryptomining", "cyber"}
    assert all(0 <= p <= 1 for p in found.operations.values())
    assert time.process_time() - began < 10


def test_what_stands_at_the_end_of_a_long_script_is_read(screener: Screener) -> None:
    long = "echo padding\n" * 100_000 + MINE
    assert "cryptomining" in seen(screener, long)
    assert {e.line for e in screener.screen([long])[0].evidence} >= {100_004}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from([TRAIN, MINE, CRACK, FOAM]), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 10**6), st.text(max_size=20)), max_size=20),
)
def test_mutated_scripts_are_answered(parts: list[str], changes: list[tuple[int, str]]) -> None:
    text = "".join(parts)
    for place, change in changes:
        at = place % (len(text) + 1)
        text = text[:at] + change + text[at + len(change) :]
    (found,) = builtin_once().screen([text])
    assert all(0 <= p <= 1 for p in found.operations.values())
    assert all(1 <= e.line <= text.count("\n") + 1 for e in found.evidence)


_KEPT: list[Screener] = []


def builtin_once() -> Screener:
    if not _KEPT:
        _KEPT.append(builtin())
    return _KEPT[0]


def test_the_shipped_weights_are_sound() -> None:
    registry = Registry(Path("/nowhere"), builtin=(BUILTIN.parent,))
    folder, card = registry.open_verified("workload")
    assert folder == BUILTIN
    assert {figure.name.partition(":")[0] for figure in card.figures} == {"ai", "cryptomining", "cyber"}


def trained_on(screener: Screener, name: str, folder: Path) -> TrainingResult:
    return train_operation(screener, name, read_examples(name, folder))


def test_a_site_trains_its_own_operation(tmp_path: Path, screener: Screener) -> None:
    result = trained_on(screener, "rendering", labelled_scripts(tmp_path / "data"))
    assert (result.now, result.before, result.no_worse) == ((20, 20), None, True)
    trained = result.screener
    film, other = trained.screen(
        ["module load gcc\nblender -b film.blend -f 1\n", "./solver --input x.dat\n"]
    )
    assert film.operations["rendering"] >= SEEN_FROM > other.operations["rendering"]
    assert {e.line for e in film.evidence if e.operation == "rendering"} >= {2}
    assert seen(trained, MINE) == {"cryptomining"}
    (tmp_path / "saved").mkdir()
    trained.save(tmp_path / "saved")
    assert load_screener(tmp_path / "saved").screen([TRAIN, MINE]) == trained.screen([TRAIN, MINE])


def test_a_rule_file_names_operations(tmp_path: Path, screener: Screener) -> None:
    path = tmp_path / "rules.toml"
    path.write_text('[rendering]\nwords = ["Blender"]\nphrases = ["maya -render"]\n')
    ruled = Screener(screener.panels, read_rules(path))
    assert "rendering" in seen(ruled, "cd x\n/opt/blender -b film.blend\n")
    assert "rendering" in seen(ruled, "/opt/maya -render x\n")
    assert seen(ruled, FOAM) == set()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[rendering]\nword = ['x']", "nothing else"),
        ("[A b]\nwords=['x']", "cannot be read"),
        ("[x]\nwords=[1]", "list texts"),
        ("[x]\nwords=[]", "nothing would ever be x"),
        ("[x]\nwords=['two words']", "put it under phrases"),
        ("[x]\nwords=['--frames']", "put it under phrases"),
        ("x=" + "[" * 100_000, "cannot be read"),
        ("#" * 2**21, "more than 1,048,576 bytes"),
    ],
)
def test_a_broken_rule_file_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_rules(path)


def test_a_damaged_model_is_refused(tmp_path: Path) -> None:
    for file in BUILTIN.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tensors = tmp_path / "panel-0.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:1000])
    with pytest.raises(ModelError, match="panel-0"):
        load_screener(tmp_path)
    (tmp_path / "screener.json").write_text(json.dumps({"version": 1, "panels": ["../x"], "rules": []}))
    with pytest.raises(ModelError, match="not a file name"):
        load_screener(tmp_path)


def test_commands_are_what_is_no_comment() -> None:
    script = commands("\ufeff#!/bin/sh\n#SBATCH -n 1\n\n  make\t\r\n# no\nmake\nrun")
    assert script.lines == ("make", "run")
    assert script.numbers == (4, 7)


def test_random_text_meets_no_known_n_gram(screener: Screener) -> None:
    letters = np.random.default_rng(1).integers(97, 123, 4000).astype(np.uint8).tobytes().decode()
    known = screener.panels[0].encoder.vocabulary.find([letters])  # type: ignore[attr-defined]  # the lexical one
    assert len(known.columns) < 0.15 * len(letters)


class Scripts:
    """A past that keeps scripts and nothing else."""

    machine = None

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = texts

    def script(self, digest: str) -> str | None:
        return self.texts.get(digest)


def test_the_detector_says_what_a_job_is_and_what_it_cannot_say(screener: Screener) -> None:
    jobs = pl.DataFrame({"script": ["mine", "foam", None, "pruned"]})
    past: Any = Scripts({"mine": MINE, "foam": FOAM})
    mine, foam, none, pruned = FittedScreening(screener).assess(jobs, past, stage=Stage.SUBMIT)
    assert [(finding.kind, finding.evidence) for finding in mine.findings] == [("cryptomining", ["line 4"])]
    assert foam.findings == []
    assert foam.workload is not None
    assert "no script" in none.missing["workload"]
    assert "was pruned" in pruned.missing["workload"]


def test_what_cannot_be_read_is_a_warning_for_a_large_job(screener: Screener) -> None:
    jobs = pl.DataFrame(
        {"script": ["run"] * 3, "req_gpus": [0, 1, 0], "time_limit": [3600, 3600, 86_400]},
    )
    past: Any = Scripts({"run": "openssl enc -d -aes-256-cbc -k x -in data.bin | bash\n"})
    parts = FittedScreening(screener).assess(jobs, past, stage=Stage.SUBMIT)
    assert [[(f.kind, str(f.level)) for f in part.findings] for part in parts] == [
        [("open", "ok")],
        [("open", "warning")],
        [("open", "warning")],
    ]


def test_the_detector_hears_a_jobs_name_and_its_gpus(screener: Screener) -> None:
    text = "conda activate work\npython run.py --config a.yaml\n"
    jobs = pl.DataFrame(
        {
            "script": ["run"] * 4,
            "name": ["run1", "run2", "xmrig_miner", None],
            "req_gpus": [None, None, 0, 2],
            "req_gres": [None, "gpu:a100:1", None, None],
        },
        schema_overrides={"req_gpus": pl.Int64},
    )
    past: Any = Scripts({"run": text})
    parts = FittedScreening(screener).assess(jobs, past, stage=Stage.SUBMIT)
    plain, gres, miner, gpus = (part.workload.operations for part in parts if part.workload is not None)
    assert gres["ai"] > plain["ai"] > miner["ai"]
    assert gpus["ai"] > plain["ai"]
    assert miner["cryptomining"] > plain["cryptomining"]


def test_what_a_site_taught_goes_into_the_registry(tmp_path: Path, screener: Screener) -> None:
    result = trained_on(screener, "rendering", labelled_scripts(tmp_path / "data"))
    card = operation_card(result.screener, "rendering", created=0, data="examples", training=result)
    assert card.rows == 40
    registry = Registry(tmp_path / "models", builtin=(BUILTIN.parent,))
    registry.promote("workload", registry.add("workload", result.screener.save, card))
    folder, _ = registry.open_verified("workload", stage=Stage.SUBMIT)
    assert "rendering" in load_screener(folder).operations


def test_a_script_that_was_screened_lately_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    screener = builtin()
    first = screener.screen_again([MINE, TRAIN], requests=[{"name": "a"}, {"name": "a"}])
    monkeypatch.setattr(Screener, "_screen", None)
    assert screener.screen_again([TRAIN, MINE], requests=[{"name": "a"}, {"name": "a"}]) == first[::-1]
    with pytest.raises(TypeError):
        screener.screen_again([MINE], requests=[{"name": "b"}])


def test_only_so_many_screenings_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screening, "_MOST_RECENT", 3)
    screener = builtin()
    texts = [f"#!/bin/bash\nsrun ./a.out {number}\n" for number in range(5)]
    assert len(screener.screen_again(texts, requests=[{}] * 5)) == 5
    for text in texts:
        screener.screen_again([text], requests=[{}])
        assert len(screener._recent) <= 3
