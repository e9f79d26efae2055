"""A Slurm cluster through its commands: the queue, holds and releases."""

import json
from typing import TYPE_CHECKING, Any

import httpx2
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kits import recordings
from tests.sources.test_rest import Server, rest_to
from tocsin.core.errors import ClusterError, NotFound
from tocsin.core.frames import SCHEMA
from tocsin.core.ids import JobKey
from tocsin.core.ports import QueueState
from tocsin.core.units import UNLIMITED
from tocsin.sources.commands import NoAnswer
from tocsin.sources.slurm_cluster import SlurmCluster
from tocsin.sources.squeue import FIELDS, QueueText, queue_command, read_queue, separators

if TYPE_CHECKING:
    from tocsin.core.ports import Cluster

PENDING = dict.fromkeys(FIELDS, "N/A") | {
    "JobID": "17",
    "ArrayJobID": "17",
    "State": "PENDING",
    "SubmitTime": "1794779550",
    "StartTime": "1794789550",
    "EndTime": "1794799550",
    "TimeLimit": "10:00",
    "MinTime": "0:00",
    "tres-alloc": "cpu=4,mem=600M,node=2,billing=4,gres/gpu=2",
    "NumTasks": "2",
    "exit_code": "0",
    "tres-per-node": "gres:gpu:1",
    "OverSubscribe": "OK",
    "BatchFlag": "1",
    "Requeue": "1",
    "PriorityLong": "1",
    "NodeList": "",
    "UserName": "alice",
    "Dependency": "afterok:1(unfulfilled)",
    "Cluster": "lab",
    "Name": "two words",
}


def printed(*records: dict[str, str], between: str = "|", after: str = "#") -> bytes:
    lines = (
        between.join({**PENDING, **record}[name] for name in FIELDS) + after + "\n" for record in records
    )
    return "".join(lines).encode()


def queue_of(*records: dict[str, str]) -> pl.DataFrame:
    return read_queue(printed(*records), "|", "#", cluster="lab")


def test_squeue_tells_a_pending_job_as_it_was_asked_for() -> None:
    jobs = queue_of({})
    job = jobs.row(0, named=True)
    assert jobs.schema == SCHEMA
    assert (job["job_id"], job["task"], job["submit"], job["name"]) == (17, None, 1794779550, "two words")
    assert (job["req_nodes"], job["req_cpus"], job["req_memory"], job["req_gpus"]) == (2, 4, 300 * 2**20, 2)
    assert (job["req_gres"], job["time_limit"], job["dependency"]) == ("gpu:1", 600, "afterok:1")
    assert job["start"] is job["end"] is job["outcome"] is job["alloc_cpus"] is None
    assert job["request_final"] is False


def test_squeue_tells_ended_and_running_jobs_arrays_and_het_jobs() -> None:
    jobs = queue_of(
        {"State": "FAILED", "exit_code": "768", "NodeList": "n[1-2]"},
        {"State": "OUT_OF_MEMORY", "exit_code": "253", "NodeList": "n1"},
        {"State": "RUNNING", "NodeList": "n1", "TimeLimit": "UNLIMITED"},
        {"State": "CANCELLED", "NumTasks": "4294967294"},
        {"JobID": "21", "ArrayTaskID": "3"},
        {"ArrayTaskID": "1-400:3%2"},
        {"JobID": "16", "ArrayJobID": "16", "HetJobID": "15", "HetJobOffset": "1"},
        {"State": "REQUEUED"},
        {"State": "FAILED", "exit_code": "3:0", "NodeList": "n1"},  # as 26.05 prints it
        {"State": "FAILED", "exit_code": str(137 << 8), "NodeList": "n1", "Name": "None"},
        {"State": "FAILED", "exit_code": "137:0", "NodeList": "n1", "Name": "x\ny"},
        {"State": "TIMEOUT", "exit_code": "15", "NodeList": "n1", "Name": "(null)"},
    )
    failed, oom, runs, cancelled, task, array, het, again, newer, *as_sacct = jobs.iter_rows(named=True)
    assert [(job["name"], job["exit_code"], job["exit_signal"]) for job in as_sacct] == [
        ("None", 9, 0),
        ("x y", 9, 0),
        (None, 0, 0),
    ]
    assert (newer["exit_code"], newer["exit_signal"]) == (3, 0)
    assert (failed["outcome"], failed["exit_code"], failed["end"]) == ("failed", 3, 1794799550)
    assert (oom["outcome"], oom["exit_signal"]) == ("out_of_memory", 125)
    assert (runs["start"], runs["end"], runs["time_limit"]) == (1794789550, None, UNLIMITED)
    assert (runs["alloc_cpus"], runs["req_cpus"]) == (4, None)
    assert cancelled["start"] is cancelled["req_tasks"] is None
    assert (task["job_id"], task["task"], task["raw_id"], task["array"]) == (17, 3, 21, None)
    assert (array["task"], array["array"], array["array_tasks"]) == (None, "1-400:3%2", 134)
    assert (het["job_id"], het["het_id"], het["het_offset"]) == (16, 15, 1)
    assert (again["state"], again["outcome"]) == ("PENDING", None)


def test_separators_differ_each_time_and_stand_in_the_command() -> None:
    between, after = separators()
    assert (between, after) != separators()
    command = queue_command(between, after)
    form = command[command.index("-O") + 1]
    assert form.count(between) == len(FIELDS) - 1
    assert form.endswith(after)


@given(st.text(), st.text())
@settings(deadline=None)
def test_no_name_can_break_a_record(name: str, folder: str) -> None:
    between, after = separators()
    text = {
        "Name": name.encode("utf-8", "replace").decode(),
        "WorkDir": folder.encode("utf-8", "replace").decode(),
    }
    jobs = read_queue(printed(text, {}, between=between, after=after), between, after, cluster="lab")
    assert jobs["job_id"].to_list() == [17, 17]
    assert jobs["name"][1] == "two words"


@pytest.mark.parametrize(("name", "again"), [("sweep", True), ("a\x1fb", False)])
def test_an_answer_that_says_nothing_new_is_read_once(name: str, again: bool) -> None:
    text = QueueText()

    def read(**changed: str) -> pl.DataFrame:
        between, after = separators()
        output = printed({"Name": name, **changed}, between=between, after=after)
        return text.read(output, between, after, cluster="lab")

    first = read()
    assert (read() is first) is again, "a name with a separator could be taken for two columns"
    assert read().equals(first)
    assert read(State="RUNNING", NodeList="n1")["state"].to_list() == ["RUNNING"]
    assert read().equals(first)


def test_an_empty_queue_is_empty_and_other_output_is_refused() -> None:
    assert read_queue(b"", "|", "#", cluster="lab").height == 0
    with pytest.raises(ClusterError, match="unexpected output of squeue"):
        read_queue(b"17|PENDING#\n", "|", "#", cluster="lab")


class Commands:
    """Slurm's commands of a cluster with one array: its holds, its earliest start and its comment."""

    def __init__(
        self,
        *,
        obeys: bool = True,
        operator: bool = False,
        scripts: dict[str, str] | None = None,
        comment: str = "",
    ) -> None:
        self.obeys = obeys
        self.operator = operator
        """One of 22.05, who may not write a comment."""
        self.scripts = scripts or {}
        self.held = False
        self.reason = "None"
        self.begin = 1794779550
        self.comment = comment
        self.called: list[list[str]] = []

    def __call__(self, argv: list[str], **_: Any) -> bytes:
        self.called.append(argv)
        match argv:
            case ["squeue", *_]:
                asked = argv[argv.index("-j") + 1].split(",") if "-j" in argv else []
                if asked and not {"17", "17_4"}.intersection(asked):
                    raise ClusterError(
                        "squeue failed (exit 1): slurm_load_jobs error: Invalid job id specified"
                    )
                if "--json" in argv:
                    return b"{}"
                form = argv[argv.index("-O") + 1]
                between = form.partition(":0")[2].partition(",")[0]
                after = form.rpartition(":0")[2]
                record = PENDING | {
                    "ArrayTaskID": "4" if "-r" in argv else "1-4",
                    "PriorityLong": "0" if self.held else "1",
                    "Reason": self.reason,
                    "EligibleTime": str(self.begin),
                    "admin_comment": self.comment or "(null)",
                }
                names = [field.partition(":")[0] for field in form.split(",")]
                return (between.join(record[name] for name in names) + after + "\n").encode()
            case ["scontrol", "hold" | "release" | "uhold" as verb, _]:
                self.held = self.obeys and verb != "release"
                self.reason = {"hold": "JobHeldAdmin", "uhold": "JobHeldUser"}.get(verb, "None")
            case ["scontrol", "update", _, change]:
                name, _, value = change.partition("=")
                if name == "StartTime" and self.obeys:
                    self.begin = int(value.removeprefix("uts"))
                elif self.operator:
                    raise ClusterError("scontrol failed (exit 1): Access/permission denied")
                elif name == "AdminComment":
                    self.comment = value
            case ["scontrol", "write", "batch_script", job, "-"]:
                if job not in self.scripts:
                    raise ClusterError("scontrol failed (exit 1): job script retrieval failed")
                return self.scripts[job].encode()
            case ["sacct", *_]:
                kept = self.scripts.get("kept")
                return b"" if kept is None else f"Batch Script for {argv[-1]}\n{'-' * 80}\n{kept}\n".encode()
        return b""


KEY = JobKey("lab", 17, None, 1794779550)


def test_it_is_a_cluster() -> None:
    cluster: Cluster = SlurmCluster("lab", run=Commands())
    assert cluster.queue().height == 1


def test_hold_and_release_by_command() -> None:
    commands = Commands(operator=True)
    cluster = SlurmCluster("lab", run=commands)
    cluster.hold(KEY, "too little\nmemory")
    assert ["scontrol", "hold", "17"] in commands.called
    # Who may not write the reason holds all the same.
    assert ["scontrol", "update", "JobId=17", "AdminComment=[tocsin: too little memory]"] in commands.called
    assert cluster.queue_state(KEY) == QueueState(pending=True, held="admin", begin=1794779550)
    cluster.release(KEY._replace(task=4))
    assert ["scontrol", "release", "17_4"] in commands.called


def test_a_hold_of_the_owner_is_given_back_to_the_owner() -> None:
    cluster = SlurmCluster("lab", run=Commands())
    cluster.hold(KEY, "misuse")
    cluster.release(KEY, to_owner=True)
    assert cluster.queue_state(KEY).held == "user"


def test_the_earliest_start_is_set_by_command_and_read_back() -> None:
    cluster = SlurmCluster("lab", run=Commands())
    cluster.delay(KEY, 1794789999)
    assert cluster.queue_state(KEY) == QueueState(pending=True, begin=1794789999)
    with pytest.raises(ClusterError, match="did not do it"):
        SlurmCluster("lab", run=Commands(obeys=False)).delay(KEY, 1794789999)


def test_several_jobs_are_looked_up_and_put_off_by_one_command_each() -> None:
    commands = Commands()
    cluster = SlurmCluster("lab", run=commands)
    task, gone = KEY._replace(task=4), KEY._replace(submit=5)
    cluster.look_up([KEY, task])
    assert cluster.queue_state(KEY) == cluster.queue_state(task) == QueueState(pending=True, begin=1794779550)
    assert len(commands.called) == 1
    assert cluster.delay_all([KEY, gone], 1794789999) == {gone}
    assert [argv[:2] for argv in commands.called[1:]] == [["scontrol", "update"], ["squeue", "-h"]]
    commands.obeys = False
    assert cluster.delay_all([KEY, task], 1794799999) == {KEY, task}


def test_what_was_looked_up_serves_for_one_change() -> None:
    commands = Commands(comment="ticket 7")
    cluster = SlurmCluster("lab", run=commands)
    cluster.look_up([KEY])
    cluster.comment(KEY, "a")
    commands.comment = "ticket 8"
    cluster.comment(KEY, "b")
    assert commands.comment == "ticket 8 [tocsin: b]"


def test_a_comment_leaves_the_text_of_others_alone() -> None:
    commands = Commands(comment="ticket 7")
    cluster = SlurmCluster("lab", run=commands)
    cluster.comment(KEY, "likely to fail [91%]\nsee mail")
    assert commands.comment == "ticket 7 [tocsin: likely to fail (91%) see mail]"
    commands.comment += " and ticket 8"
    cluster.comment(KEY, "")
    assert commands.comment == "ticket 7 and ticket 8"
    with pytest.raises(ClusterError, match="denied"):
        SlurmCluster("lab", run=Commands(operator=True)).comment(KEY, "x")


def test_only_the_job_that_was_meant_is_cancelled() -> None:
    commands = Commands()
    SlurmCluster("lab", run=commands).cancel(KEY._replace(task=4))
    assert commands.called[-1] == ["scancel", "17_4"]
    with pytest.raises(NotFound):
        SlurmCluster("lab", run=commands).cancel(KEY._replace(submit=5))
    assert [argv for argv in commands.called if argv[0] == "scancel"] == [["scancel", "17_4"]]


def test_a_job_that_was_requeued_or_is_gone_is_not_touched() -> None:
    commands = Commands()
    cluster = SlurmCluster("lab", run=commands)
    with pytest.raises(NotFound, match="requeued"):
        cluster.hold(KEY._replace(submit=5), "x")
    with pytest.raises(NotFound, match="no job 99"):
        cluster.hold(KEY._replace(job_id=99), "x")
    assert not any("hold" in argv for argv in commands.called)


def test_an_order_that_slurm_does_not_follow_is_an_error() -> None:
    with pytest.raises(ClusterError, match="did not do it"):
        SlurmCluster("lab", run=Commands(obeys=False)).hold(KEY, "x")


def test_scripts_come_from_slurmctld_then_from_slurmdbd_and_may_be_missing() -> None:
    script = "#!/bin/bash\n#SBATCH -n 1\n\nsrun x\n"
    assert SlurmCluster("lab", run=Commands(scripts={"17": script})).script(KEY) == script
    assert SlurmCluster("lab", run=Commands(scripts={"kept": script})).script(KEY) == script
    # 26.05 prints no empty line after it.
    assert SlurmCluster("lab", run=Commands(scripts={"kept": script[:-1]})).script(KEY) == script
    assert SlurmCluster("lab", run=Commands(scripts={"kept": "NONE"})).script(KEY) is None
    # A script cannot hide what follows by looking like the next one.
    sly = f"{script}Batch Script for 17\n{'-' * 80}\n./miner\n"
    assert SlurmCluster("lab", run=Commands(scripts={"kept": sly})).script(KEY) == sly
    assert SlurmCluster("lab", run=Commands()).script(KEY) is None


def test_a_slurmctld_that_does_not_answer_is_not_a_job_without_a_script() -> None:
    commands = Commands()

    def run(argv: list[str], **options: Any) -> bytes:
        if argv[0] == "scontrol":
            raise NoAnswer("scontrol failed (exit 1): Unable to contact slurm controller")
        return commands(argv, **options)

    cluster = SlurmCluster("lab", run=run)
    with pytest.raises(ClusterError, match="Unable to contact"):
        cluster.script(KEY)
    commands.scripts["kept"] = "#!/bin/sh\n"
    assert cluster.script(KEY) == "#!/bin/sh\n"


def test_with_slurmrestd_the_queue_and_accounting_come_from_there() -> None:
    server = Server("v0.0.42")
    cluster = SlurmCluster("lab", rest=rest_to(server), run=Commands())
    assert cluster.queue()["source"].unique().to_list() == ["rest"]
    frames = list(cluster.accounting(1794700800, 1794700800 + 3600))
    assert [frame.height for frame in frames] == [4]


def test_rest_holds_only_what_waits() -> None:
    def nothing(request: httpx2.Request) -> httpx2.Response:
        return (
            httpx2.Response(200, content=b'{"jobs": [], "errors": []}')
            if "job/" in request.url.path
            else server(request)
        )

    server = Server("v0.0.42")
    with pytest.raises(NotFound, match="no longer in the queue"):
        SlurmCluster("lab", rest=rest_to(nothing), run=Commands()).hold(KEY, "x")


def test_a_task_that_slurmrestd_does_not_change_is_changed_by_command() -> None:
    """slurmrestd of 26.05 changes whole arrays only."""
    commands = Commands()
    waiting = {"job_id": 17, "job_state": ["PENDING"], "submit_time": KEY.submit, "array_job_id": 17}
    waiting |= {"array_task_string": "1-4", "cluster": "lab"}

    def server(request: httpx2.Request) -> httpx2.Response:
        if request.method == "POST":
            refusal = {"errors": [{"error_number": 9000, "error": "Query empty or not RFC7320 compliant"}]}
            return httpx2.Response(422, content=json.dumps(refusal).encode())
        if "job/" in request.url.path:
            jobs = [
                {
                    **waiting,
                    "priority": {"set": True, "number": 0 if commands.held else 1},
                    "state_reason": commands.reason,
                }
            ]
            return httpx2.Response(200, content=json.dumps({"jobs": jobs, "errors": []}).encode())
        return Server("v0.0.44")(request)

    cluster = SlurmCluster("lab", rest=rest_to(server), run=commands)
    cluster.hold(KEY._replace(task=3), "x")
    assert ["scontrol", "hold", "17_3"] in commands.called
    with pytest.raises(ClusterError, match="422"):
        cluster.release(KEY)


def test_whole_nodes_are_read_in_v44_where_squeue_prefers_v45() -> None:
    asked: list[str] = []

    def run(argv: list[str], **_: Any) -> bytes:
        if argv[1].startswith("--json"):
            asked.append(argv[1])
            version = "v0.0.44" if "=" in argv[1] else "v0.0.45"
            return recordings.body("slurm", version, "jobs")
        form = argv[argv.index("-O") + 1]
        between, after = form.split("JobID:0")[1].split(",")[0], form.rsplit("WorkDir:0")[1]
        return b"".join(
            printed(
                {
                    "JobID": str(job["job_id"]),
                    "ArrayJobID": str(job["job_id"]),
                    "SubmitTime": str(job["submit_time"]["number"]),
                    "Name": job["name"],
                    "OverSubscribe": "NO",
                },
                between=between,
                after=after,
            )
            for job in recordings.reply("slurm", "v0.0.44", "jobs")["jobs"]
            if job["name"] in ("excl", "held")
        )

    jobs = SlurmCluster("lab", run=run).queue()
    assert dict(jobs.select("name", "exclusive").rows()) == {"excl": True, "held": False}
    assert asked == ["--json", "--json=v0.0.44"]


def test_the_request_of_a_running_job_is_read_once_from_json() -> None:
    running = {"State": "RUNNING", "NodeList": "n1"}
    record = {
        "job_id": 17,
        "job_state": "RUNNING",
        "submit_time": 1794779550,
        "cluster": "lab",
        "tres_req_str": "cpu=2,mem=300M,node=1",
        "excluded_nodes": "n4",
    }
    asked: list[list[str]] = []

    def run(argv: list[str], **_: Any) -> bytes:
        asked.append(argv)
        if "--json" in argv:
            return json.dumps({"jobs": [record]}).encode()
        form = argv[argv.index("-O") + 1]
        between, after = form.split("JobID:0")[1].split(",")[0], form.rsplit("WorkDir:0")[1]
        return printed(running, between=between, after=after)

    cluster = SlurmCluster("lab", run=run)
    for _ in range(2):
        job = cluster.queue().row(0, named=True)
        assert (job["req_cpus"], job["req_memory"], job["exclude_nodes"]) == (2, 300 * 2**20, "n4")
        assert (job["alloc_cpus"], job["state"]) == (4, "RUNNING")
    assert sum("--json" in argv for argv in asked) == 1


def test_a_squeue_without_json_gives_the_rest_of_the_record() -> None:
    def run(argv: list[str], **_: Any) -> bytes:
        if "--json" in argv:
            raise ClusterError("squeue failed (exit 1): unrecognized option")
        form = argv[argv.index("-O") + 1]
        between, after = form.split("JobID:0")[1].split(",")[0], form.rsplit("WorkDir:0")[1]
        return printed({}, between=between, after=after)

    assert SlurmCluster("lab", run=run).queue()["req_cpus"].to_list() == [4]


@pytest.mark.parametrize(
    ("user", "level", "refused"),
    [
        ("root", "None", False),
        ("slurm", "None", False),
        ("ada", "Operator", False),
        ("ada", "Administrator", False),
        ("ada", "None", True),
        ("ada", "", True),
    ],
)
def test_scripts_of_others_are_read_where_rights_allow(
    monkeypatch: pytest.MonkeyPatch, user: str, level: str, refused: bool
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")

    def run(argv: list[str], **_: object) -> bytes:
        return b"SlurmUser = slurm(64030)\n" if argv[0] == "scontrol" else f"{level}\n".encode()

    why = SlurmCluster("lab", run=run).scripts_refused(user)
    assert bool(why) is refused
    # sacctmgr modifies no user that it does not know.
    command = f"modify user {user} set" if level else f"add user {user} account=root"
    assert not refused or f"`sacctmgr -i {command} AdminLevel=Operator`" in str(why)
