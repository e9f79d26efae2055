import base64
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kits import recordings
from tests.kits.recordings import VERSIONS
from tocsin.core.errors import ClusterError, NotFound, SettingsError
from tocsin.core.intake import Rejects
from tocsin.sources.rest import SlurmRest
from tocsin.sources.rest_accounting import RestAccounting
from tocsin.sources.rest_token import ScontrolToken, TokenFile, expiry
from tocsin.sources.rest_versions import NEWEST

TOKEN = "s3cret.t0ken.x"
Answer = tuple[int, bytes]
Handler = Callable[[httpx2.Request], httpx2.Response]


def spec(*versions: str, slash: str = "") -> bytes:
    paths = {f"/{family}/{v}/jobs{slash}": {} for v in versions for family in ("slurm", "slurmdb")}
    return json.dumps({"paths": paths | {"/slurm/v0.0.42/ping": {}}}).encode()


class Server:
    """A slurmrestd that gives recorded or prepared answers and remembers what it was asked."""

    def __init__(self, *versions: str, answers: dict[str, list[Any]] | None = None) -> None:
        self.versions = versions
        self.answers = answers or {}
        self.asked: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        path = request.url.path
        prepared = self.answers.get(path.rstrip("/"))
        if prepared:
            answer = prepared.pop(0) if len(prepared) > 1 else prepared[0]
            if isinstance(answer, Exception):
                raise answer
            return httpx2.Response(answer[0], content=answer[1])
        if path == "/openapi/v3":
            return httpx2.Response(200, content=spec(*self.versions))
        _, family, version, what = path.rstrip("/").split("/", 3)
        return httpx2.Response(200, content=recordings.body(family, version, what))

    def paths(self) -> list[str]:
        return [request.url.path for request in self.asked]


def rest_to(server: Handler, **options: Any) -> SlurmRest:
    given = {
        "user": "root",
        "token": lambda: TOKEN,
        "sleep": lambda _: None,
        "transport": httpx2.MockTransport(server),
    }
    return SlurmRest("http://lab:6820", **{**given, **options})


# --- versions --------------------------------------------------------------------------------------


def test_the_newest_version_that_both_sides_know_is_used() -> None:
    assert rest_to(Server("v0.0.36", "v0.0.37", "v0.0.38")).served("slurm").version == "v0.0.38"
    assert rest_to(Server("v0.0.42", "v0.0.44", "v0.0.50")).served("slurmdb").version == "v0.0.44"


def test_an_upgrade_of_slurm_that_retires_the_version_in_use_is_followed() -> None:
    server = Server("v0.0.40")
    rest = rest_to(server)
    assert rest.queue().height
    server.versions = ("v0.0.42", "v0.0.44")
    retired = (404, b"Requested URL not found")
    server.answers = {"/slurm/v0.0.40/jobs": [retired]}
    with pytest.raises(ClusterError, match=r"does not serve /slurm/v0\.0\.40/jobs"):
        rest.queue()
    assert rest.queue().height
    assert server.paths()[-1] == "/slurm/v0.0.44/jobs/"


def test_only_newer_versions_are_read_by_the_newest_adapter_with_a_warning() -> None:
    rest = rest_to(Server("v0.0.52", "v0.0.50", "v0.0.51"))
    served = rest.served("slurm")
    assert (served.version, served.adapter.version) == ("v0.0.50", NEWEST)
    assert "v0.0.50" in rest.notes[0]


def test_slashes_of_the_specification_may_be_escaped() -> None:
    answers: dict[str, list[Any]] = {"/openapi/v3": [(200, spec("v0.0.45").replace(b"/", rb"\/"))]}
    assert rest_to(Server(answers=answers)).served("slurm").version == "v0.0.45"


def test_26_05_tells_whole_nodes_in_v44_and_the_default_partition_in_v45() -> None:
    rest = rest_to(Server("v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"))
    assert rest.queue().filter(name="excl")["exclusive"].to_list() == [True]
    assert [partition.name for partition in rest.partitions() if partition.default] == ["main"]
    alone = rest_to(Server("v0.0.45"))
    assert alone.queue()["exclusive"].null_count() == alone.queue().height


def test_without_a_specification_versions_are_tried() -> None:
    def server(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200 if "/v0.0.38/" in request.url.path else 404, content=b"{}")

    assert rest_to(server).served("slurmdb").version == "v0.0.38"
    with pytest.raises(ClusterError, match="is not slurmrestd"):
        rest_to(lambda _: httpx2.Response(404)).served("slurm")


# --- jobs and machine ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_queue_and_accounting_of_each_version_are_read(version: str) -> None:
    server = Server(version)
    rest, rejects = rest_to(server), Rejects()
    queue = rest.queue()
    accounting_job = rest.accounting(1794700000, 1794800000, rejects=rejects)
    assert queue.height == len(recordings.reply("slurm", version, "jobs")["jobs"])
    assert accounting_job.height == len(recordings.reply("slurmdb", version, "jobs")["jobs"])
    assert set(queue["request_final"]) == {False}
    assert set(accounting_job["request_final"]) == {True}
    assert rejects.total == 0
    assert rest.notes == []
    query = dict(server.asked[-1].url.params)
    plain = version > "v0.0.41"
    assert query["start_time"] == ("1794700000" if plain else "uts1794700000")
    assert server.asked[-1].headers["X-SLURM-USER-NAME"] == "root"
    assert server.asked[-1].headers["X-SLURM-USER-TOKEN"] == TOKEN


@pytest.mark.parametrize("version", VERSIONS)
def test_nodes_of_each_version_are_read(version: str) -> None:
    nodes = rest_to(Server(version)).nodes()
    assert nodes[0].name == "n1"
    assert (nodes[0].cpus, nodes[0].memory) == (2, 4000 * 2**20)
    assert nodes[1].state == "IDLE"


RECORDED_ERRORS = [
    (version, name, status, body)
    for version, replies in recordings.errors("26.05").items()
    for name, (status, body) in replies.items()
]


@pytest.mark.parametrize(("version", "name", "status", "body"), RECORDED_ERRORS)
def test_refusals_of_26_05_name_the_remedy(version: str, name: str, status: int, body: Any) -> None:
    where = "slurmdb" if "accounting" in name else "slurm"
    path = f"/{where}/{version}/" + ("job/1" if name == "unknown job" else "jobs")
    rest = rest_to(Server(version, answers={path: [(status, json.dumps(body).encode())]}))
    if name == "unknown job":
        with pytest.raises(NotFound, match="no job 1"):
            rest.job_documents(1)
    else:
        with pytest.raises(ClusterError, match="scontrol token"):
            rest.queue() if where == "slurm" else rest.accounting(0, 10, rejects=Rejects())


def test_warnings_become_notes_and_errors_sentences() -> None:
    reply = {"jobs": [], "warnings": [{"description": "old"}], "errors": []}
    failed = {
        **reply,
        "errors": [{"description": "no", "error_number": 2017, "error": "Invalid job id specified"}],
    }
    bodies = [(200, json.dumps(reply).encode()), (200, json.dumps(failed).encode())]
    rest = rest_to(Server("v0.0.42", answers={"/slurm/v0.0.42/jobs": bodies}))
    assert rest.queue().height == 0
    assert rest.notes == ["Slurm warns: old"]
    with pytest.raises(NotFound, match=r"Invalid job id specified \(error 2017\)"):
        rest.queue()


def test_an_answer_of_22_05_that_found_nothing_is_empty_and_no_error() -> None:
    nothing = {"errors": [{"description": "Nothing found", "error_number": 9003}], "jobs": []}
    rest = rest_to(
        Server("v0.0.38", answers={"/slurmdb/v0.0.38/jobs": [(200, json.dumps(nothing).encode())]})
    )
    assert rest.accounting(0, 10, rejects=Rejects()).height == 0


def test_an_answer_that_breaks_off_is_an_error() -> None:
    half = recordings.body("slurm", "v0.0.42", "jobs")[:20_000]
    rest = rest_to(Server("v0.0.42", answers={"/slurm/v0.0.42/jobs": [(200, half)]}))
    with pytest.raises(ClusterError, match="is incomplete"):
        rest.queue()


def test_one_dump_at_a_time() -> None:
    busy = threading.Semaphore(1)
    server = Server("v0.0.42")

    def alone(request: httpx2.Request) -> httpx2.Response:
        if not request.url.path.rstrip("/").endswith("/jobs"):
            return server(request)
        assert busy.acquire(blocking=False), "two dumps at once"
        try:
            return server(request)
        finally:
            busy.release()

    rest = rest_to(alone)
    rest.served("slurm")
    heights: list[int] = []
    threads = [threading.Thread(target=lambda: heights.append(rest.queue().height)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heights == [5] * 8


# --- retry_seconds --------------------------------------------------------------------------------------


def test_what_may_pass_is_tried_again_with_growing_waits() -> None:
    waits: list[float] = []
    good = (200, recordings.body("slurm", "v0.0.42", "jobs"))
    down = json.dumps({"errors": [{"error": "Unspecified error", "error_number": -1}]}).encode()
    answers = [(503, b""), httpx2.ConnectError("refused"), (500, down), good]
    rest = rest_to(
        Server("v0.0.42", answers={"/slurm/v0.0.42/jobs": answers}), sleep=waits.append, jitter=lambda: 1.0
    )
    assert rest.queue().height == 5
    assert waits == [0.5, 1.0, 2.0]


def test_patience_ends() -> None:
    waits: list[float] = []
    rest = rest_to(
        Server(answers={"/openapi/v3": [httpx2.ConnectError("refused")]}), sleep=waits.append, tries=3
    )
    with pytest.raises(ClusterError, match=r"does not answer \(refused\); is it running"):
        rest.queue()
    assert len(waits) == 2
    clock = iter(range(0, 1000, 40))
    late = rest_to(Server(answers={"/openapi/v3": [(503, b"")]}), now=lambda: next(clock), retry_seconds=60)
    with pytest.raises(ClusterError, match="HTTP 503"):
        late.served("slurm")
    assert next(clock) <= 400


def test_an_answer_that_took_all_the_time_for_retries_is_the_last() -> None:
    """slurmrestd reports a slurmctld that hangs after 10 s; a watch must not wait for five such answers."""
    clock = 0.0
    down = b'{"errors": [{"error": "Unspecified error", "error_number": -1}]}'
    server = Server("v0.0.42", answers={"/slurm/v0.0.42/jobs": [(500, down)]})

    def hanging(request: httpx2.Request) -> httpx2.Response:
        nonlocal clock
        clock += 10.0 * request.url.path.endswith("jobs/")
        return server(request)

    rest = rest_to(hanging, now=lambda: clock, retry_seconds=10)
    with pytest.raises(ClusterError, match="is slurmctld up"):
        rest.queue()
    assert clock == 10.0


def test_a_slurmdbd_that_is_down_is_told_with_http_200_and_tried_again() -> None:
    down = json.dumps(
        {"errors": [{"error": "Unable to connect to database", "error_number": 7000}], "jobs": []}
    )
    answers = [(200, down.encode()), (200, recordings.body("slurmdb", "v0.0.38", "jobs"))]
    rest = rest_to(Server("v0.0.38", answers={"/slurmdb/v0.0.38/jobs": answers}))
    assert rest.accounting(0, 10, rejects=Rejects()).height > 10


@pytest.mark.parametrize(
    ("answer", "words", "tries"),
    [
        ((401, b"Authentication failure"), "refuses the token of root .HTTP 401.*renew it", 1),
        ((500, b'{"errors":[{"error":"Unspecified error","errno":-1}]}'), "is slurmctld up .scontrol ping., and the token", 5),
        ((500, b'{"errors":[{"error":"Bad query","error_number":9000}]}'), r"Bad query \(error 9000\)$", 1),
        ((404, b""), "does not serve", 1),
    ],
)  # fmt: skip
def test_refusals_are_sentences_with_a_next_step_and_without_the_token(
    answer: Answer, words: str, tries: int
) -> None:
    server = Server("v0.0.38", answers={"/slurm/v0.0.38/jobs": [answer]})
    with pytest.raises(ClusterError, match=words) as refusal:
        rest_to(server).queue()
    assert TOKEN not in str(refusal.value)
    assert server.paths().count("/slurm/v0.0.38/jobs") == tries


@pytest.mark.parametrize("url", ["lab:6820", "ftp://lab", "unix:relative/path", "http://"])
def test_addresses_that_are_none_are_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="write"):
        SlurmRest(url, user="root", token=lambda: TOKEN)


# --- hold and release ------------------------------------------------------------------------------


def test_a_change_is_written_as_the_version_takes_it() -> None:
    at = 1794789999
    for version, change, body in (
        ("v0.0.38", {"hold": True}, {"hold": True}),
        ("v0.0.38", {"begin": at}, {"begin_time": f"uts{at}"}),
        ("v0.0.42", {"begin": at}, {"begin_time": {"set": True, "infinite": False, "number": at}}),
        ("v0.0.42", {"comment": "too little memory"}, {"admin_comment": "too little memory"}),
    ):
        path = f"/slurm/{version}/job/17_4"
        server = Server(version, answers={path: [(200, b'{"errors": []}')]})
        rest_to(server).change("17_4", **change)  # type: ignore[arg-type]
        assert json.loads(server.asked[-1].content) == body
    with pytest.raises(ClusterError, match="cannot set an administrator's comment"):
        rest_to(Server("v0.0.38")).change("17", comment="x")


def test_a_job_is_cancelled_or_the_refusal_is_told() -> None:
    path = "/slurm/v0.0.42/job/17"
    refused = {"errors": [{"error": "Access/permission denied", "error_number": 2002}]}
    server = Server(
        "v0.0.42", answers={path: [(200, b'{"errors": []}'), (200, json.dumps(refused).encode())]}
    )
    rest = rest_to(server)
    rest.cancel("17")
    assert server.asked[-1].method == "DELETE"
    with pytest.raises(ClusterError, match=r"could not be cancelled: .*denied"):
        rest.cancel("17")


def test_an_update_of_22_05_answers_200_with_errors() -> None:
    refused = {"errors": [{"error": "Job has already finished", "error_number": 2084}]}
    array = {"errors": [{"description": "job array update from [x]:1 failed", "source": "_parse_job_list"}]}
    answers = [(200, json.dumps(refused).encode()), (200, json.dumps(array).encode())]
    rest = rest_to(Server("v0.0.38", answers={"/slurm/v0.0.38/job/17": answers}))
    with pytest.raises(ClusterError, match=r"job 17 could not be held: .*already finished \(error 2084\)"):
        rest.change("17", hold=True)
    rest.change("17", hold=True)  # the tale of a failed array update


def test_v36_renames_jobs_on_update_and_is_refused() -> None:
    with pytest.raises(ClusterError, match="renames"):
        rest_to(Server("v0.0.36")).change("17", hold=True)


# --- windows ---------------------------------------------------------------------------------------

START = 1794700800


def windows(*bodies: dict[str, Any]) -> tuple[RestAccounting, Server]:
    answers: list[Any] = [(200, json.dumps(body).encode()) for body in bodies]
    server = Server("v0.0.42", answers={"/slurmdb/v0.0.42/jobs": answers})
    return RestAccounting(rest_to(server), START, START + 2 * 86_400 + 10, cluster="lab"), server


def record(job_id: int, *, end: int, state: str = "COMPLETED") -> dict[str, Any]:
    base = recordings.reply("slurmdb", "v0.0.42", "jobs")["jobs"][0]
    times = {**base["time"], "submission": START, "start": START, "end": end}
    return {**base, "job_id": job_id, "time": times, "state": {"current": [state]}}


def test_accounting_is_asked_day_by_day_and_each_ended_job_told_once() -> None:
    long, runs = record(2, end=START + 100_000), record(3, end=0, state="RUNNING")
    source, server = windows(
        {"jobs": [record(1, end=START + 5), long, runs]},
        {"jobs": [long, runs, record(4, end=START + 90_000)]},
        {"jobs": [runs]},
    )
    batches = list(source.batches())
    assert [batch.jobs["job_id"].to_list() for batch in batches] == [[1, 2, 3], [3, 4], [3]]
    assert [batch.position - START for batch in batches] == [86_400, 172_800, 172_810]
    assert batches[-1].done == source.total
    queries = [dict(request.url.params) for request in server.asked if request.url.path.endswith("jobs/")]
    assert queries[0] == {
        "start_time": str(START),
        "end_time": str(START + 86_400),
        "cluster": "lab",
        "show_duplicates": "true",
        "disable_truncate_usage_time": "true",
    }


def test_an_interrupted_accounting_goes_on_from_its_last_window() -> None:
    source = windows({"jobs": []}, {"jobs": []})[0]
    assert [batch.position - START for batch in source.batches(resume=START + 86_400)] == [172_800, 172_810]
    assert source.identity == windows({})[0].identity


# --- tokens ----------------------------------------------------------------------------------------


def jwt(end: int) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": end, "sun": "root"}).encode()).decode().rstrip("=")
    return f"e30.{claims}.c2ln"


def test_a_tokens_expiry_is_read_without_its_key() -> None:
    assert expiry(jwt(1794775393)) == 1794775393
    for odd in ("", "a.b", "a.b.c", "a.W10.c", "a.eyJleHAiOiJ4In0.c"):
        assert expiry(odd) is None


def test_a_token_file_is_read_again_when_it_changes_and_its_expiry_said(tmp_path: Path) -> None:
    file, now = tmp_path / "token", [100.0]

    def put(text: str) -> None:
        new = tmp_path / "new"
        new.write_text(text)
        new.chmod(0o600)
        new.replace(file)

    token = TokenFile(file, now=lambda: now[0])
    with pytest.raises(SettingsError, match="does not exist"):
        token()
    put(f"SLURM_JWT={jwt(200)}\n")
    assert token() == jwt(200)
    put(jwt(400))
    assert token() == jwt(400)
    now[0] = 500
    with pytest.raises(ClusterError, match="expired at 1970-01-01T00:06:40Z") as refusal:
        token()
    assert jwt(400) not in str(refusal.value)
    put("two words")
    with pytest.raises(SettingsError, match="is not a token") as refusal_:
        token()
    assert "two words" not in str(refusal_.value)


def test_an_own_token_is_renewed_before_it_expires_and_kept_while_that_fails() -> None:
    now = [1000.0]
    made: list[list[str]] = []
    broken = [False]

    def scontrol(argv: list[str], **_: Any) -> bytes:
        if broken[0]:
            raise ClusterError("scontrol failed")
        made.append(argv)
        return f"SLURM_JWT={jwt(int(now[0]) + 900)}\n".encode()

    token = ScontrolToken(lifespan=900, now=lambda: now[0], run=scontrol)
    assert token() == token() == jwt(1900)
    assert made == [["scontrol", "token", "lifespan=900"]]
    now[0] = 1700
    assert token() == jwt(2600)
    broken[0], now[0] = True, 2400.0
    assert token() == jwt(2600)
    now[0] = 2595
    with pytest.raises(ClusterError):
        token()


def test_a_real_unix_socket_is_spoken_to(tmp_path: Path) -> None:
    import socketserver
    from http.server import BaseHTTPRequestHandler

    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            self.send_response(200)
            self.end_headers()
            if self.path == "/openapi/v3":
                self.wfile.write(spec("v0.0.42"))
            else:
                self.wfile.write(recordings.body("slurm", "v0.0.42", "jobs"))

        def address_string(self) -> str:
            return "socket"

        def log_message(self, *_: Any) -> None:
            pass

    with socketserver.UnixStreamServer(str(tmp_path / "rest.sock"), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        with SlurmRest(f"unix:{tmp_path}/rest.sock", user="root", token=lambda: TOKEN) as rest:
            assert rest.queue().height == 5
        server.shutdown()
        thread.join()
    assert heard == ["/openapi/v3", "/slurm/v0.0.42/jobs/"]
