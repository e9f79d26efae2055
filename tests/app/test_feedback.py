"""A site trains an operation of its own, people answer cases, and the next training uses the answers."""

import json
import time
from pathlib import Path

import polars as pl

from tests.kits.command_line import Tocsin
from tests.kits.job_frames import SUBMIT, frame
from tests.kits.mining_jobs import NOW, mining_jobs
from tests.kits.scripts import labelled_scripts
from tocsin.app.app import App
from tocsin.app.judge import open_judge
from tocsin.core.stages import Stage
from tocsin.core.verdict import SEEN_FROM
from tocsin.history.replay import Replay
from tocsin.store.database import open_store
from tocsin.store.home import Home
from tocsin.store.jobs import upsert
from tocsin.store.scriptfiles import save_script
from tocsin.workload.execution.training import train_execution

FILM = "#!/bin/bash\nmodule load gcc\nblender -b film.blend -f 1\n"
GAMES = "#!/bin/bash\nblender -b test.blend --benchmark-of-the-weekly-check node7\n"


def probability(tocsin: Tocsin, script: Path, text: str) -> float:
    script.write_text(text)
    row = json.loads(tocsin("classify", script, "--jsonl").out)
    return float(row["operations"]["rendering"])


def test_a_confirmed_and_a_dismissed_case_change_the_model(tocsin: Tocsin, tmp_path: Path) -> None:
    data, script = labelled_scripts(tmp_path / "data"), tmp_path / "job.sh"
    teach = ("train", "workload", "--operation", "rendering", "--data", data)
    assert tocsin(*teach).code == 0
    before = probability(tocsin, script, FILM), probability(tocsin, script, GAMES)
    assert min(before) >= SEEN_FROM
    home = Home(tmp_path / "home")
    now = {"submit": int(time.time())}  # a rule judges no job that was submitted before it
    with open_store(home.url) as store:
        kept = [save_script(home.scripts, text) for text in (FILM, GAMES)]
        upsert(
            store,
            frame(*({"job_id": n, "user": f"u{n}", "script": each, **now} for n, each in enumerate(kept, 1))),
        )
    assert tocsin("screen").err == "2 jobs screened, 2 rogue\n"  # an operation of a site is for listed ones
    tocsin("cases", "confirm", 1)
    assert "using 1 answered case of rendering" in tocsin(*teach, "--with-feedback").err
    assert probability(tocsin, script, FILM) > before[0]
    tocsin("cases", "dismiss", 2, "--note", "the weekly check of the nodes")
    said = tocsin(*teach, "--with-feedback", "--json")
    assert json.loads(said.out)["answered"] == 2
    assert "using 2 answered cases of rendering" in said.err
    after = probability(tocsin, script, FILM), probability(tocsin, script, GAMES)
    assert after[0] >= SEEN_FROM > after[1]
    (home.scripts / kept[1]).unlink()
    assert "1 answered case whose script was pruned" in tocsin(*teach, "--with-feedback").err
    assert probability(tocsin, script, GAMES) >= SEEN_FROM  # without the answer it is as before


def test_an_ended_jobs_script_is_classified_by_the_model_for_submission(
    tocsin: Tocsin, tmp_path: Path
) -> None:
    data = labelled_scripts(tmp_path / "data")
    assert tocsin("train", "workload", "--operation", "cyber", "--data", data).code == 0
    jobs, mining = mining_jobs(200)
    fitted = train_execution(jobs, {"cryptomining": mining}, now=NOW, rehearse=False)
    job = jobs.head(1).with_columns(script=pl.lit("film"), submit=pl.lit(SUBMIT))
    past = Replay(job, scripts={"film": FILM}.get)
    with App(folder=str(tmp_path / "home"), environ={"HOME": str(tmp_path)}) as app:
        version = app.registry.add("workload", fitted.save, fitted.card(created=NOW))
        app.registry.promote("workload", version)
        judge = open_judge(app, past)
        told = [judge.explain(job, stage, known=past, at=NOW) for stage in (Stage.SUBMIT, Stage.END)]
    first, last = (verdict.workload for verdict in told)
    assert first is not None
    assert last is not None
    assert first.submission is not None
    assert (
        first.submission.operations["cyber"] >= SEEN_FROM
    )  # what the site taught; the shipped weights see nothing
    assert last.submission == first.submission
    assert last.execution is not None
    assert [finding.kind for finding in told[1].findings if finding.kind == "cyber"] == ["cyber"]


def test_a_rule_file_names_an_operation_by_its_words(tocsin: Tocsin, tmp_path: Path) -> None:
    rules, script = tmp_path / "rules.toml", tmp_path / "job.sh"
    rules.write_text('[rendering]\nwords = ["blender"]\nphrases = ["--render-frames"]\n')
    script.write_text("#!/bin/bash\nsrun blender -b scene.blend -a\n")
    said = tocsin("train", "workload", "--rules", rules)
    assert said.code == 0
    assert said.out.startswith("classified by rule: rendering\n")
    assert "nobody is listed" in said.err
    tocsin("allow", "default", "rendering", "allowed")
    assert "note" not in tocsin("train", "workload", "--rules", rules).err
    [line] = tocsin("classify", script, "--jsonl").out.splitlines()
    told = json.loads(line)
    assert told["operations"]["rendering"] > 0.9
    assert {"line": 2, "operation": "rendering"}.items() <= told["evidence"][0].items()
    rules.write_text("[Rendering]\nwords = []\n")
    refused = tocsin("train", "workload", "--rules", rules)
    assert refused.code == 1
    assert "Rendering" in refused.err
    rules.write_text('[chess]\nwords = ["stockfish"]\n')
    kept = tocsin("train", "workload", "--rules", rules, "--no-promote")
    assert "stored but not in use" in kept.out
    assert "chess" not in tocsin("classify", script, "--jsonl").out
    rules.write_text("")
    assert "name no operation" in tocsin("train", "workload", "--rules", rules).err
    assert tocsin("train", "workload", "--rules", rules, "--operation", "x").code == 2


def test_a_shipped_operation_is_trained_on_top_of_the_shipped_weights(tocsin: Tocsin, tmp_path: Path) -> None:
    data, script = labelled_scripts(tmp_path / "data"), tmp_path / "job.sh"
    (data / "yes" / "blender").write_bytes(b"\x7fELF\0\0")
    said = tocsin("train", "workload", "--operation", "ai", "--data", data)
    assert said.code == 0
    assert "ai: trained on 40 scripts, 20 positive, on top of the shipped weights" in said.out
    assert "correct (cross-validated): 20 of 20 positive, 20 of 20 negative" in said.out
    assert "correct (shipped weights): 0 of 20 positive, 20 of 20 negative" in said.out
    assert "1 file in" in said.err
    script.write_text("#!/bin/bash\nmodule load cuda\npython train.py --epochs 90 --model resnet50\n")
    assert json.loads(tocsin("classify", script, "--jsonl").out)["operations"]["ai"] >= SEEN_FROM
    kept = json.loads(
        tocsin("train", "workload", "--operation", "ai", "--data", data, "--no-promote", "--json").out
    )
    assert kept["promoted"] is False
    assert kept["right_before"] == {"yes": 0, "no": 20}


def test_a_model_no_better_than_guessing_is_not_promoted(tocsin: Tocsin, tmp_path: Path) -> None:
    words = "amber birch cedar delta ember fjord grove heath inlet jetty knoll larch".split()  # noqa: SIM905  # short
    for number, word in enumerate(words):
        folder = tmp_path / "data" / ("yes", "no")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{word}.sh").write_text(f"#!/bin/sh\nmodule load acme\nacmesolve --case {word}\n")
    said = tocsin("train", "workload", "--operation", "rendering", "--data", tmp_path / "data")
    assert said.code == 0
    assert "no better than guessing" in said.err
    assert "stored but not in use" in said.out
    script = tmp_path / "job.sh"
    script.write_text("acmesolve --case amber\n")
    assert "rendering" not in json.loads(tocsin("classify", script, "--jsonl").out)["operations"]
    (tmp_path / "data" / "no" / "same.sh").write_text((tmp_path / "data" / "yes" / "amber.sh").read_text())
    refused = tocsin("train", "workload", "--operation", "rendering", "--data", tmp_path / "data")
    assert refused.code == 1
    assert "say the same" in refused.err
