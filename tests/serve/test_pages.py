"""The start page in a real browser: everything is on the screen, however narrow it is."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import unavailable
from tests.kits.service import Served
from tests.services import missing
from tocsin.app import causes
from tocsin.app.predict import PredictRequest, predict
from tocsin.core.decision import Decision
from tocsin.core.errors import NotFound
from tocsin.core.ids import parse_key
from tocsin.core.stages import Stage
from tocsin.core.verdict import Cause
from tocsin.serve.routes.pages import FOLDER
from tocsin.store import verdicts
from tocsin.store.causes import keep
from tocsin.store.decisions import record

MEASURE = """<script>
const rows = [...document.querySelectorAll("tbody tr")].map(row => row.getBoundingClientRect().height);
const right = [...document.querySelectorAll("td")].map(cell => cell.getBoundingClientRect().right);
document.title = `rows ${Math.max(...rows)} right ${Math.max(...right)} wide ${innerWidth}`;
</script>"""
FLAGS = (
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
LONG = (
    "the job is likely to fail (risk 90%); requests 4G of memory per node, but is expected to use 8131M; 8 of the last 9 "
    "jobs of this user with the same name and request ran out of memory"
)


@pytest.mark.parametrize("width", [500, 700, 1280])
def test_findings_are_on_the_screen_and_rows_are_low(served: Served, tmp_path: Path, width: int) -> None:
    if sentence := missing("chromium"):
        unavailable(sentence)
    page = served.client().get("/").text
    page = re.sub(r'(<td class="text">)[^<]*', rf"\g<1>{LONG}", page).replace(
        "/static/tocsin.css", "tocsin.css"
    )
    (tmp_path / "page.html").write_text(page.replace("</body>", f"{MEASURE}</body>"))
    shutil.copy(FOLDER / "static" / "tocsin.css", tmp_path)
    profile = tmp_path / "profile"
    shown = subprocess.run(
        ["chromium", *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},900", "--dump-dom",
         f"file://{tmp_path}/page.html"],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    found = re.search(r"<title>rows ([\d.]+) right ([\d.]+) wide (\d+)</title>", shown)
    assert found, shown[:500]
    assert int(found[3]) == width
    assert float(found[2]) <= width
    assert float(found[1]) < 200


def test_the_page_of_a_failed_job_names_the_cause(served: Served) -> None:
    client = served.client()
    [job] = client.get("/api/v1/jobs", params={"state": "TO", "limit": 1}).json()["jobs"]
    page = client.get(f"/jobs/{job['job']}").text
    assert "cause of the failure: Time limit reached" in page
    assert "Request more time (--time)" in page
    [job] = client.get("/api/v1/jobs", params={"state": "CD", "limit": 1}).json()["jobs"]
    assert "cause of the failure" not in client.get(f"/jobs/{job['job']}").text


def test_the_cause_in_a_verdict_is_on_the_page_once(served: Served) -> None:
    app, client = served.service.app, served.client()
    [job] = client.get("/api/v1/jobs", params={"state": "F", "limit": 1}).json()["jobs"]
    cause = Cause(kind="walltime", title="Time limit reached", text="")
    last = verdicts.of_job(app.store, parse_key(job["job"]))[-1]
    record(app.store, Decision(verdicts=[replace(last, stage=Stage.END, seq=9, cause=cause)]))
    with app.store.writing() as connection:
        keep(connection, job["job"], cause, last.at)
    page = client.get(f"/jobs/{job['job']}").text
    assert "Verdict at its end" in page
    assert page.count("cause of the failure: Time limit reached") == 1


def test_a_wrong_file_of_the_sites_causes_does_not_take_the_page_away(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(causes, "FOLDER", tmp_path)
    (tmp_path / "ours.toml").write_text("not TOML")
    client = served.client()
    [job] = client.get("/api/v1/jobs", params={"state": "TO", "limit": 1}).json()["jobs"]
    answer = client.get(f"/jobs/{job['job']}")
    assert answer.status_code == 200
    assert "cause of the failure: not looked for yet" in answer.text


def test_a_mistyped_cluster_is_an_error_with_a_suggestion(served: Served) -> None:
    answer = served.client().get("/api/v1/jobs", params={"cluster": "dmeo"})
    assert answer.status_code == 404
    assert 'did you mean "demo"?' in answer.json()["detail"]


def test_a_job_that_the_demo_does_not_have_is_not_found(served: Served) -> None:
    with pytest.raises(NotFound, match="no job 17 in cluster"):
        predict(served.service.app, PredictRequest(jobs=("17",), cluster="demo"))
