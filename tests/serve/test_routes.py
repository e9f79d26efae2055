"""The API as a client meets it: lists, filters, pages, changes, and errors that name the next step."""

import asyncio
import json
import re
import threading
from typing import Any

import httpx2
import pytest
from anyio import create_task_group, fail_after, to_thread, wait_all_tasks_blocked
from starlette.testclient import TestClient

from tests.kits.job_frames import frame
from tests.kits.service import OPERATOR, Served, wait_until
from tocsin.core.actions import ActionKind, ActionStatus, PlannedAction
from tocsin.core.stages import Stage
from tocsin.serve.principal import Principal, Role
from tocsin.store.actions import plan
from tocsin.store.jobs import upsert

SCRIPT = "#!/bin/bash\n#SBATCH --partition=main --mem=5000G --time=18:00:00\nsrun lmp -in water.in\n"
MINER = "#!/bin/bash\n#SBATCH -n 8\n./xmrig -o stratum+tcp://pool.minexmr.com:4444 -u 84mYdq -p x --donate-level=1\n"
LINUS = Principal("linus", Role.USER, "test")
NOOR = Principal("noor", Role.USER, "test")


@pytest.fixture
def api(served: Served) -> TestClient:
    return served.client()


def get(client: TestClient, path: str, expected: int = 200, **query: Any) -> Any:
    reply = client.get(f"/api/v1{path}", params=query)
    assert reply.status_code == expected, reply.text
    return reply.json()


def test_pages_of_jobs_join_to_the_whole_list(api: TestClient) -> None:
    whole = get(api, "/jobs", cluster="demo", limit=1000)["jobs"]
    assert len(whole) > 300
    assert [job["submit"] for job in whole] == sorted((job["submit"] for job in whole), reverse=True)
    joined, cursor = [], None
    while True:
        part = get(api, "/jobs", cluster="demo", limit=70, **({"cursor": cursor} if cursor else {}))
        joined += part["jobs"]
        cursor = part["next"]
        if cursor is None:
            break
    assert joined == whole


def test_the_filters_of_sacct_select_jobs(api: TestClient) -> None:
    failed = get(api, "/jobs", state="F,OOM", limit=1000)["jobs"]
    assert failed
    assert {job["state"] for job in failed} <= {"FAILED", "OUT_OF_MEMORY"}
    assert {job["user"] for job in get(api, "/jobs", user="ada,emmy")["jobs"]} == {"ada", "emmy"}
    job = failed[0]
    assert get(api, "/jobs", id=str(job["job_id"]))["jobs"][0]["job_id"] == job["job_id"]
    assert get(api, "/jobs", start="2030-01-01", state="F")["jobs"] == []


def test_a_slip_of_a_filters_name_does_not_list_all_jobs(api: TestClient) -> None:
    answer = get(api, "/jobs", expected=400, stat="F")
    assert answer["detail"].startswith('"stat" is not a parameter of this request; it has account, cluster, ')
    assert get(api, "/me", expected=400, verbose=1)["detail"].endswith("it has none")


def test_the_service_is_alive_however_many_slow_questions_it_has(served: Served) -> None:
    """The hooks in Slurm would take it for dead, and three users may have more questions open than there are threads."""
    answered = threading.Event()

    async def ask() -> int:
        async with create_task_group() as slow:
            for _ in range(int(to_thread.current_default_thread_limiter().total_tokens)):
                slow.start_soon(to_thread.run_sync, answered.wait)
            await wait_all_tasks_blocked()
            transport = httpx2.ASGITransport(served.inner)
            async with httpx2.AsyncClient(transport=transport, base_url="http://x") as client:
                try:
                    with fail_after(10):
                        return (await client.get("/healthz")).status_code
                finally:
                    answered.set()

    assert asyncio.run(ask()) == 200


def test_users_see_their_own_jobs_only(served: Served) -> None:
    mine = served.client(LINUS)
    assert {job["user"] for job in get(mine, "/jobs", limit=1000)["jobs"]} == {"linus"}
    assert get(mine, "/jobs", user="ada")["jobs"] == []
    other = get(served.client(), "/jobs", user="ada", limit=1)["jobs"][0]["job"]
    for path in ("", "/timeline", "/verdicts", "/explanation", "/traces", "/embeddings"):
        problem = get(mine, f"/jobs/{other}{path}", 404)
        assert problem["type"] == "urn:tocsin:problem:not-found"
    assert {verdict["user"] for verdict in get(mine, "/verdicts", limit=1000)["verdicts"]} == {"linus"}


def test_a_user_need_not_know_that_an_id_was_also_somebody_elses(served: Served) -> None:
    """slurmctld counts from the beginning again when it has lost its state."""
    [job] = get(served.client(), "/jobs", user="linus", limit=1)["jobs"]
    earlier = frame({"cluster": "demo", "job_id": job["job_id"], "task": job["task"], "user": "ada"})
    upsert(served.service.app.store, earlier)
    mine = served.client(LINUS)
    name = job["job"].partition(":")[2].partition("@")[0]
    assert get(mine, f"/jobs/{name}/explanation")["verdict"]["job"] == job["job"]
    get(served.client(), f"/jobs/{name}/explanation", 404)


def test_a_job_has_its_verdicts_and_its_life_in_order(api: TestClient) -> None:
    verdict = get(api, "/verdicts", level="critical", limit=1)["verdicts"][0]
    [job] = get(api, f"/jobs/{verdict['job']}")["jobs"]
    assert verdict in job["verdicts"]
    [life] = get(api, f"/jobs/{verdict['job']}/timeline")["timelines"]
    assert life["events"][0]["change"] == "submitted"
    assert [event["at"] for event in life["events"]] == sorted(event["at"] for event in life["events"])
    assert verdict in get(api, f"/jobs/{verdict['job']}/verdicts")["verdicts"]


def test_verdicts_are_paged_from_the_newest_on(api: TestClient) -> None:
    first = get(api, "/verdicts", limit=20)
    second = get(api, "/verdicts", limit=20, cursor=first["next"])
    both = get(api, "/verdicts", limit=40)["verdicts"]
    assert first["verdicts"] + second["verdicts"] == both
    assert get(api, "/verdicts", 400, level="loud")["detail"].startswith('"loud" is not a level')


def test_a_script_is_checked_from_the_live_history(api: TestClient) -> None:
    reply = api.post("/api/v1/check", json={"script": SCRIPT, "user": "ada", "cluster": "demo"})
    assert reply.status_code == 200
    verdict = reply.json()
    assert verdict["level"] == "critical"
    assert "5000G" in verdict["findings"][0]["text"]
    assert verdict["user"] == "ada"


def test_users_check_as_themselves(served: Served) -> None:
    mine = served.client(LINUS)
    assert mine.post("/api/v1/check", json={"script": SCRIPT}).json()["user"] == "linus"
    refused = mine.post("/api/v1/check", json={"script": SCRIPT, "user": "ada"})
    assert refused.status_code == 403
    assert refused.json()["type"] == "urn:tocsin:problem:forbidden"


def test_users_never_see_which_words_betrayed_a_misuse(served: Served) -> None:
    job = get(served.client(), "/verdicts", level="critical", user="noor", limit=1)["verdicts"][0]
    assert job["workload"]["submission"]["evidence"]
    assert any(finding["evidence"] for finding in job["findings"])
    mine = served.client(NOOR)
    shown = [
        *get(mine, "/verdicts", limit=1000)["verdicts"],
        *get(mine, f"/jobs/{job['job']}/verdicts")["verdicts"],
        *(each for found in get(mine, f"/jobs/{job['job']}")["jobs"] for each in found["verdicts"]),
        *(
            event["verdict"]
            for life in get(mine, f"/jobs/{job['job']}/timeline")["timelines"]
            for event in life["events"]
            if event["kind"] == "verdict"
        ),
        get(mine, f"/jobs/{job['job']}/explanation")["verdict"],
        mine.post("/api/v1/check", json={"script": MINER}).json(),
    ]
    assert any(verdict["rogue"] and verdict["rogue"]["rogue"] for verdict in shown)
    for verdict in shown:
        submission = (verdict["workload"] or {}).get("submission") or {
            "evidence": [],
            "signs": [],
            "open": [],
        }
        assert not submission["evidence"]
        assert not submission["signs"]
        assert not submission["open"]
        assert all(finding["case"] is None for finding in verdict["findings"])
        assert not any(
            finding["evidence"] for finding in verdict["findings"] if finding["detector"] == "workload"
        )
        assert "stratum" not in json.dumps(verdict)


def test_a_case_is_answered_once_and_for_all(served: Served) -> None:
    api = served.client()
    [case] = get(api, "/cases", status="open")["cases"]
    details = get(api, f"/cases/{case['case']}")
    assert any("stratum" in line["text"] for line in details["lines"])
    answered = api.post(
        f"/api/v1/cases/{case['case']}/feedback", json={"answer": "dismissed", "note": "a course"}
    )
    assert answered.json()["status"] == "dismissed"
    assert answered.json()["answers"][0] | {"at": ""} == {
        "at": "", "who": "olga", "answer": "dismissed", "note": "a course",
    }  # fmt: skip
    assert get(api, "/cases", status="open")["cases"] == []
    assert get(api, "/cases/4711", 404)["detail"].startswith("no case 4711")
    for path in ("/cases", f"/cases/{case['case']}"):
        assert get(served.client(LINUS), path, 403)["status"] == 403


def test_an_allow_list_entry_is_added_and_ended(served: Served) -> None:
    api = served.client()
    wanted = {"operation": "ai", "kind": "account", "name": "ml-vision", "reason": "project 17"}
    made = api.post("/api/v1/allow", json=wanted)
    assert made.status_code == 201
    assert made.json()["granted_by"] == "olga"
    entries = get(api, "/allow")["entries"]
    assert any(entry.get("account") == "ml-vision" for entry in entries)
    assert api.delete(f"/api/v1/allow/{made.json()['entry']}").status_code == 200
    assert api.delete(f"/api/v1/allow/{made.json()['entry']}").status_code == 404
    assert get(api, "/allow")["entries"] == []
    unknown = api.post("/api/v1/allow", json=wanted | {"operation": "knitting"})
    assert unknown.status_code == 400
    assert "knitting" in unknown.json()["detail"]
    assert served.client(LINUS).post("/api/v1/allow", json=wanted).status_code == 403


def test_models_are_listed_with_their_cards(api: TestClient) -> None:
    models = get(api, "/models")["models"]
    assert {"workload"} <= {model["detector"] for model in models}
    card = get(api, "/models/workload/builtin")
    assert card["version"] == "builtin"
    assert get(api, "/models/workload/4711", 404)["status"] == 404
    assert get(api, "/thresholds")["version"] == "builtin"
    assert get(api, "/thresholds", 409, stage="end")["type"] == "urn:tocsin:problem:model"


def test_a_back_test_runs_in_a_process_of_its_own(api: TestClient) -> None:
    begun = api.post("/api/v1/backtests", json={"cluster": "demo", "trials": 1, "every_days": 1})
    assert begun.status_code == 202
    path = begun.headers["location"]
    wait_until(lambda: api.get(path).json()["state"] in ("done", "failed"), 300)
    ended = api.get(path).json()
    assert (ended["state"], ended["error"]) == ("done", None)
    assert ended["result"]["stage"] == "submit"
    assert get(api, "/backtests")["backtests"][0]["id"] == ended["id"]
    assert get(api, f"/profiles/{ended['id']}", 404)


def test_a_task_can_be_cancelled(api: TestClient) -> None:
    task = api.post("/api/v1/profiles", json={"cluster": "demo"}).json()
    assert api.delete(f"/api/v1/profiles/{task['id']}").json()["state"] == "cancelled"
    wait_until(lambda: api.get(f"/api/v1/profiles/{task['id']}").json()["state"] == "cancelled")


def test_clusters_nodes_and_statistics(served: Served) -> None:
    api = served.client()
    [cluster] = get(api, "/clusters")["clusters"]
    assert cluster["cluster"] == "demo"
    found = get(api, "/statistics", cluster="demo", days=3650)
    assert found["jobs"] > 300
    assert {row["user"] for row in get(served.client(LINUS), "/statistics", days=3650)["users"]} <= {"linus"}
    assert "only while it watches" in get(api, "/nodes", 404)["detail"]


def test_a_reply_is_not_sent_again_while_it_is_the_same(api: TestClient) -> None:
    first = api.get("/api/v1/jobs", params={"limit": 3})
    again = api.get("/api/v1/jobs", params={"limit": 3}, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = api.get("/api/v1/jobs", params={"limit": 4}, headers={"If-None-Match": first.headers["etag"]})
    assert other.status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/jobs/17'; DROP TABLE jobs;--", 400),
        ("/jobs/..%2f..%2fetc%2fpasswd", 404),
        ("/jobs?cursor=AAAA", 400),
        ("/jobs?cursor=W10", 400),
        ("/jobs?limit=0", 422),
        ("/jobs?state=' OR 1=1 --", 400),
        ("/jobs?start=yesterdayish", 400),
        ("/verdicts?cursor=%00", 400),
        ("/cases/0", 422),
        ("/models/..%2f..%2fetc/passwd", 404),
        ("/models/workload/..%2fbuiltin", 404),
        ("/nowhere", 404),
    ],
)
def test_a_bad_request_is_a_problem_document(api: TestClient, path: str, status: int) -> None:
    reply = api.get(f"/api/v1{path}")
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} <= set(reply.json())


@pytest.mark.parametrize("field", ["user", "account", "partition", "name", "cluster", "domain"])
def test_sql_in_a_filter_is_a_name_like_any_other(api: TestClient, field: str) -> None:
    before = get(api, "/jobs", limit=1000)["jobs"]
    reply = api.get("/api/v1/jobs", params={field: "'; DELETE FROM jobs; --"})
    assert reply.status_code in (200, 404)
    assert reply.status_code == 404 or reply.json()["jobs"] == []
    assert get(api, "/jobs", limit=1000)["jobs"] == before


def test_a_reader_of_events_must_name_an_event(api: TestClient) -> None:
    reply = api.get("/api/v1/events", headers={"Last-Event-ID": "'; DROP"})
    assert reply.status_code == 400


def test_health_is_good_from_the_first_day_and_metrics_name_nobody(served: Served) -> None:
    api = served.client()
    assert api.get("/healthz").text == "ok\n"
    ready = api.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["reasons"] == [], "a failure model is shipped"
    api.get("/api/v1/jobs/4711")
    text = api.get("/metrics").text
    assert 'tocsin_http_requests_total{method="GET",route="/api/v1/jobs/{job}",status="404"}' in text
    assert "tocsin_http_request_duration_seconds_bucket" in text
    labels = re.findall(r'"([^"]*)"', text)  # not the numbers: those may have any digits
    assert not any("4711" in label for label in labels)
    users = {job["user"] for job in get(api, "/jobs", limit=1000)["jobs"]}
    assert users.isdisjoint(labels)
    samples = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(line.startswith("tocsin_") for line in samples)


def test_the_first_page_shows_warnings_and_runs_no_script(served: Served) -> None:
    page = served.client().get("/")
    assert page.status_code == 200
    assert "cryptomining" in page.text
    assert "<script" not in page.text
    assert "style=" not in page.text
    assert served.client().get("/static/tocsin.css").status_code == 200
    mine = served.client(LINUS).get("/").text
    assert "Open cases" not in mine
    assert "cryptomining" not in mine


def test_the_first_page_shows_all_times_alike_says_their_zone_once_and_links_jobs_and_cases(
    served: Served,
) -> None:
    api = served.client()
    case = get(api, "/cases")["cases"][0]["case"]
    assert api.post(f"/api/v1/cases/{case}/feedback", json={"answer": "open"}).status_code == 200
    page = api.get("/").text
    times = re.findall(r'<td class="time">([^<]*)</td>', page)
    assert len(times) >= 2, "a warning and a case"
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", time) for time in times)
    assert page.count("time zone UTC") == 1
    links = re.findall(r'href="(/jobs/[^"]*|/api/v1/cases/[^"]*)"', page)
    assert {link.split("/")[-2] for link in links} == {"jobs", "cases"}
    assert page.index("Open cases") < page.index("Latest warnings"), "they wait for a person"
    for link in dict.fromkeys(links):
        assert api.get(link).status_code == 200


def test_the_page_of_a_job_shows_each_verdict_in_the_words_of_the_command_line(served: Served) -> None:
    operator, owner, other = served.client(), served.client(NOOR), served.client(LINUS)
    case = get(operator, "/cases")["cases"][0]["job"]
    page = operator.get(f"/jobs/{case}")
    assert page.status_code == 200
    assert "<dd>noor</dd>" in page.text
    assert re.search(r'<p class="critical">CRITICAL: .* it was not allowed to run\.</p>', page.text)
    assert "critical: classified as cryptomining" in page.text
    assert "because of line" in page.text
    assert "<script" not in page.text
    for link in re.findall(r'href="([^"]*)"', page.text):
        assert operator.get(link).status_code == 200, link
    mine = owner.get(f"/jobs/{case}").text
    assert "cryptomining is never allowed" in mine
    assert "because of line" not in mine, "users never see what gave a misuse away"
    hidden = other.get(f"/jobs/{case}")
    assert (hidden.status_code, "cryptomining" in hidden.text) == (404, False)
    assert "in the store; was it imported?" in hidden.text


def test_the_page_of_an_array_lists_its_tasks(served: Served) -> None:
    api = served.client()
    number = next(job["job_id"] for job in get(api, "/jobs", limit=1000)["jobs"] if job["task"] is not None)
    page = api.get(f"/jobs/{number}").text
    keys = [job["job"] for job in get(api, f"/jobs/{number}")["jobs"]]
    assert len(keys) > 1
    assert all(f">{key}</a>" in page for key in keys[:200])
    assert f"{len(keys)} submissions or tasks have this id" in page


def test_who_am_i(served: Served) -> None:
    assert get(served.client(), "/me") == {"user": OPERATOR.user, "role": "operator", "method": "test"}


def test_actions_are_listed_for_operators_and_undone_by_number(served: Served) -> None:
    planned = PlannedAction(
        job="demo:17@1794775393",
        kind=ActionKind.HOLD,
        status=ActionStatus.SHADOW,
        at=1794775400,
        reason="not allowed",
        detector="workload",
        finding="rogue",
        stage=Stage.SUBMIT,
        user=LINUS.user,
    )
    with served.service.app.store.writing() as connection:
        plan(connection, planned)
    api = served.client()
    [action] = get(api, "/actions", ended=True)["actions"]
    assert (action["job"], action["kind"], action["status"]) == (planned.job, "hold", "shadow")
    assert get(api, "/actions")["actions"] == [], "it was recorded only"
    assert get(served.client(LINUS), "/actions", 403)["status"] == 403
    assert api.post("/api/v1/actions/4711/undo", json={}).status_code == 404


def test_advice_is_text_for_a_terminal_and_empty_if_nothing_is_wrong(api: TestClient) -> None:
    def advice(*options: str) -> str:
        reply = api.post(
            "/api/v1/advice",
            params={"option": list(options)},
            content=b"#!/bin/bash\n#SBATCH --mem=5000G\nsrun ./a.out\n",
            headers={"Content-Type": "text/x-shellscript"},
        )
        assert (reply.status_code, reply.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        return reply.text

    assert advice().startswith("tocsin: critical: ")
    assert "5000G" in advice()
    assert "memory" not in advice("--mem=1G")


def own_job(api: TestClient, user: str) -> str:
    job: str = get(api, "/jobs", user=user, limit=1)["jobs"][0]["job"]
    return job


def test_owners_see_what_was_done_to_their_jobs_and_not_what_was_only_recorded(served: Served) -> None:
    job = own_job(served.client(), LINUS.user)
    common = {"job": job, "at": 1794775400, "detector": "workload", "finding": "rogue", "user": LINUS.user}
    with served.service.app.store.writing() as connection:
        for kind, status in ((ActionKind.HOLD, ActionStatus.SHADOW), (ActionKind.LEASE, ActionStatus.DONE)):
            plan(
                connection,
                PlannedAction(kind=kind, status=status, reason="not allowed", stage=Stage.SUBMIT, **common),
            )
    everything = get(served.client(), f"/jobs/{job}/actions")["actions"]
    assert {each["kind"] for each in everything} == {"hold", "lease"}
    assert [each["kind"] for each in get(served.client(LINUS), f"/jobs/{job}/actions")["actions"]] == [
        "lease"
    ]
    page = served.client(LINUS).get(f"/jobs/{job}").text
    assert "delayed by tocsin at 2026-11-15" in page
    assert "held by tocsin" not in page
    other = own_job(served.client(), "ada")
    assert get(served.client(LINUS), f"/jobs/{other}/actions", 404)["status"] == 404


def test_owners_link_a_job_to_its_later_submission_and_nobody_elses(served: Served) -> None:
    jobs = [job["job"] for job in get(served.client(), "/jobs", user=LINUS.user, limit=2)["jobs"]]
    new, old = jobs
    api = served.client(LINUS)
    path = f"/api/v1/jobs/{old}/actions"
    reply = api.post(path, json={"action": "resubmitted", "new": new})
    assert reply.status_code == 200, reply.text
    [linked] = reply.json()["resubmissions"]
    assert (linked["old"], linked["new"], linked["who"]) == (old, new, LINUS.user)
    assert get(api, f"/jobs/{old}/actions")["resubmissions"] == [linked]
    other = own_job(served.client(), "ada")
    assert api.post(path, json={"action": "resubmitted", "new": other}).status_code == 404
    assert (
        api.post(f"/api/v1/jobs/{new}/actions", json={"action": "resubmitted", "new": old}).status_code == 400
    )
    assert api.post(path, json={"action": "resubmitted"}).status_code == 400


def test_a_job_of_the_demo_cannot_be_cancelled_and_the_reply_says_why(served: Served) -> None:
    api = served.client(LINUS)
    path = f"/api/v1/jobs/{own_job(served.client(), LINUS.user)}/actions"
    refused = api.post(path, json={"action": "cancel"})
    assert refused.status_code == 400
    assert "simulated" in refused.json()["detail"]
    assert "name the action" in api.post(path, json={}).json()["detail"]
