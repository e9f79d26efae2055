"""`tocsin explain` names why a job failed, and `check` warns by what ended the last runs."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.kits.command_line import Tocsin
from tests.kits.ended_jobs import job, jobs
from tocsin.app import ask
from tocsin.core.errors import NotFound
from tocsin.core.schema import verdict_schema
from tocsin.store.database import open_store
from tocsin.store.home import Home
from tocsin.store.jobs import upsert
from tocsin.store.scriptfiles import save_script

OWNER = 65534 if os.geteuid() == 0 else os.geteuid()
CUDA = "epoch 3\nTraceback (most recent call last):\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder that everybody may enter, with the outputs of some jobs of one user."""
    folder = tmp_path / "run"
    folder.mkdir()
    for part in (folder, *folder.parents):
        if part.stat().st_uid == os.geteuid() and part != Path("/"):
            part.chmod(part.stat().st_mode | 0o755)
    return folder


@pytest.fixture
def failed(run: Path, tmp_path: Path, tocsin: Tocsin) -> Tocsin:
    """Four runs of `train`: three ran out of memory on the GPU, one completed."""
    assert tocsin("jobs").code == 0
    rows = [
        job(number, user="ann", name="train", uid=OWNER, work_dir=str(run), outcome=outcome, cluster="lab")
        for number, outcome in ((1, "failed"), (2, "failed"), (3, "completed"), (4, "failed"))
    ]
    with open_store(Home(tmp_path / "home").prepare().url) as store:
        upsert(store, jobs(rows))
    for number in (1, 2, 4):
        path = run / f"slurm-{number}.out"
        path.write_text(CUDA)
        if os.geteuid() == 0:
            os.chown(path, OWNER, OWNER)
    return tocsin


def test_the_cause_is_named_with_its_line_beside_slurms_state(failed: Tocsin, run: Path) -> None:
    said = failed("explain", "1").out
    assert "Its outcome: failed." in said
    assert "cause of the failure: CUDA out of memory" in said
    assert f"{run}/slurm-1.out, line 3: RuntimeError: CUDA out of memory." in said
    assert "batch size" in said


def test_the_document_carries_it_whatever_the_stage(failed: Tocsin) -> None:
    for stage in ("submit", "end"):
        document = json.loads(failed("explain", "1", "--stage", stage, "--json").out)
        assert (document["cause"]["kind"], document["cause"]["line"]) == ("cuda_memory", 3)
        jsonschema.validate(document, verdict_schema())


def test_a_completed_job_has_none_and_an_unreadable_output_says_why(failed: Tocsin, run: Path) -> None:
    assert json.loads(failed("explain", "3", "--json").out)["cause"] is None
    (run / "slurm-4.out").unlink()
    document = json.loads(failed("explain", "4", "--json").out)
    assert document["cause"] is None
    assert "slurm-4.out cannot be read" in document["missing"]["cause"]


def test_output_that_the_service_may_not_read_is_read_by_the_user(
    failed: Tocsin, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On most clusters, home folders are closed to the user who runs the service."""
    output = run / "slurm-4.out"
    closed = output.rename(run / "closed")
    verdict = json.loads(failed("explain", "4", "--json").out)
    [known] = json.loads(failed("job", "4", "--json").out)["jobs"]
    assert "cannot be read" in verdict["missing"]["cause"]
    closed.rename(output)

    class Service:
        """What it answers."""

        def get(self, path: str, **_: Any) -> Any:
            if path.endswith("/explanation"):
                return {"verdict": verdict, "outcome": "failed"}
            if path.endswith("/script"):
                raise NotFound("no script of the job is known")
            return {"jobs": [known], "actions": []}

    monkeypatch.setattr(ask, "reachable", lambda _: Service())
    said = failed("explain", "4").out
    assert f"{output}, line 3: RuntimeError: CUDA out of memory." in said
    assert "not checked: cause" not in said


def test_an_output_that_names_nothing_is_unknown(failed: Tocsin, run: Path) -> None:
    (run / "slurm-4.out").write_text("step 1\n")
    assert "cause of the failure: unknown" in failed("explain", "4").out


def test_the_output_of_a_task_is_named_by_the_script_of_its_array(
    tocsin: Tocsin, run: Path, tmp_path: Path
) -> None:
    home = Home(tmp_path / "home").prepare()
    script = save_script(home.scripts, "#!/bin/bash\n#SBATCH -o part-%3a.log\npython train.py\n")
    whose = {"user": "ann", "name": "sweep", "uid": OWNER, "work_dir": str(run)}
    rows = [
        job(9, **whose, script=script, array="1-3", outcome=None, elapsed=None),
        job(9, **whose, task=2, raw_id=11, outcome="failed"),
    ]
    with open_store(home.url) as store:
        upsert(store, jobs(rows))
    (run / "part-002.log").write_text("ModuleNotFoundError: No module named 'torch'\n")
    document = json.loads(tocsin("explain", "9_2", "--json").out)
    assert document["cause"]["kind"] == "missing_package"
    assert document["cause"]["file"].endswith("part-002.log")


def test_what_ended_the_last_runs_is_advice_for_the_next(failed: Tocsin, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --job-name=train\npython train.py\n")
    before = json.loads(failed("check", script, "-u", "ann", "-M", "lab", "--json").out)
    assert not any("runs of" in advice["why"] for advice in before["advice"])
    headline = failed("check", script, "-u", "ann", "-M", "lab").out.splitlines()[0]
    assert "earlier runs" not in headline
    for number in ("1", "2", "4"):
        failed("explain", number)
    headline = failed("check", script, "-u", "ann", "-M", "lab").out.splitlines()[0]
    assert "no problem found, but " in headline
    assert headline.endswith("earlier runs suggest a change (see below).")
    after = json.loads(failed("check", script, "-u", "ann", "-M", "lab", "--json").out)
    [advice] = [advice for advice in after["advice"] if "runs of" in advice["why"]]
    assert advice["why"] == '3 of ann\'s last 4 runs of "train" ended by: CUDA out of memory'
    assert "batch size" in advice["change"]


def test_a_sites_own_kind_is_used_and_a_mistake_in_it_is_an_error(
    failed: Tocsin, run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "causes.d"
    folder.mkdir()
    kind = folder / "site.toml"
    kind.write_text(
        'name = "site"\ntitle = "Site trouble"\nrank = 1\nadvice = "Call us."\ncertain = ["Tried to allocate 2"]\n'
        'examples = ["Tried to allocate 2"]\n'
    )
    settings = tmp_path / "own.toml"
    settings.write_text(f'[causes]\nfolder = "{folder}"\n')
    assert "cause of the failure: Site trouble" in failed("--config", settings, "explain", "1").out
    kind.write_text("name = 3\n")
    said = failed("--config", settings, "explain", "1")
    assert said.code == 1
    assert "site.toml: name must be text" in said.err
