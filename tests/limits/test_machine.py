"""Requests held against nodes, partitions and limits."""

from dataclasses import replace
from itertools import product

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kits import recordings
from tests.limits.examples import GIB, HOUR, MACHINE, Known, assess, findings, job, kinds, past_of, submitted
from tocsin.core.frames import from_jobs
from tocsin.core.machine import Machine, Node, Partition
from tocsin.core.stages import Stage
from tocsin.core.units import UNLIMITED
from tocsin.core.verdict import Level
from tocsin.limits.detector import FittedLimits
from tocsin.sources.slurm_machine import machine_from_scontrol

CRITICAL, WARNING = "critical", "warning"


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"req_memory": 126 * GIB}, "memory_above_any_node"),
        ({"req_nodes": 4}, "nodes_above_partition"),
        ({"req_nodes": 1000, "partition": "big"}, "nodes_above_partition"),
        ({"cpus_per_task": 33}, "cpus_above_any_node"),
        ({"tasks_per_node": 17, "cpus_per_task": 2, "req_tasks": 17, "req_nodes": 1}, "cpus_above_any_node"),
        ({"req_cpus": 97}, "cpus_above_partition"),
        ({"req_gpus": 1}, "no_gpus"),
        ({"req_gpus": 9, "req_tasks": 9, "partition": "gpu"}, "gpus_above_partition"),
        ({"req_gpus": 5, "partition": "gpu"}, "gpus_above_partition"),
        ({"time_limit": 24 * HOUR + 60}, "time_above_partition"),
        ({"time_limit": UNLIMITED}, "time_above_partition"),
        ({"time_limit": 48 * HOUR, "time_min": 25 * HOUR}, "time_above_partition"),
        ({"array": "0-1001%5"}, "array_above_limit"),
        ({"array": "[5,2000]"}, "array_above_limit"),
        ({"partition": "nosuch"}, "unknown_partition"),
        ({"partition": "shut"}, "partition_closed"),
        ({"partition": "staff", "req_nodes": 2, "account": "physics"}, "account_not_allowed"),
        ({"partition": "staff", "req_nodes": 2, "qos": "low"}, "qos_not_allowed"),
        ({"partition": "staff", "req_nodes": 2, "req_memory": 11 * GIB}, "memory_above_any_node"),
        ({"partition": "staff", "req_nodes": 2, "req_tasks": 2, "cpus_per_task": 9}, "cpus_above_any_node"),
        ({"partition": "percpu", "req_memory": 33 * GIB}, "memory_above_any_node"),
        ({"constraints": "haswell"}, "unknown_feature"),
        ({"constraints": "icelake&big"}, "too_few_such_nodes"),
        ({"req_node_list": "m1"}, "node_not_in_partition"),
        ({"req_node_list": "n1", "exclude_nodes": "n[1-2]"}, "node_wanted_and_excluded"),
        ({"exclude_nodes": "n[1-4]"}, "too_many_nodes_excluded"),
        (
            {
                "req_nodes": 2,
                "req_memory": 200 * GIB,
                "partition": "gpu",
                "req_gpus": 2,
                "req_gres": "gpu:h100:1",
            },
            "too_few_such_nodes",
        ),
    ],
)
def test_a_request_that_can_never_be_met_is_critical(fields: dict[str, object], kind: str) -> None:
    assert kinds(**fields) == {kind: CRITICAL}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"req_memory": 125 * GIB, "time_limit": 24 * HOUR, "req_nodes": 3, "req_cpus": 96, "req_tasks": 96},
        {"req_memory": 0, "array": "0-1000:2%7"},
        {"time_limit": 48 * HOUR, "time_min": 24 * HOUR},
        {"partition": "big,main", "req_memory": 900 * GIB},
        {"partition": "main,big", "time_limit": 72 * HOUR},
        {"partition": "gpu", "req_gpus": 4, "req_gres": "gpu:a100:4"},
        {"partition": "staff", "req_nodes": 2, "account": "STAFF", "qos": "high", "group": "wheel"},
        {"partition": "big", "constraints": "icelake&big"},
        {"constraints": "[icelake|big]*2"},
        {"req_node_list": "n[2-3]", "exclude_nodes": "n1"},
        {"req_node_list": "n[2-"},
        # sbatch -n 64 --mem-per-cpu=4G: recorded as all on one node, laid on three
        {"req_nodes": 1, "req_tasks": 64, "req_cpus": 64, "req_memory": 256 * GIB},
        # the same as accounting has it, without the number of tasks
        {"req_nodes": 1, "req_cpus": 64, "req_memory": 256 * GIB},
        # srun -O: more tasks than CPUs
        {"req_nodes": 1, "req_tasks": 500, "req_cpus": 4},
    ],
)
def test_a_request_that_can_be_met_has_no_finding(fields: dict[str, object]) -> None:
    assert kinds(**fields) == {}


def test_the_sentence_names_the_value_the_limit_and_the_next_step() -> None:
    (finding,) = findings(req_memory=500 * GIB)
    assert finding.text == (
        "requests 500G on each node, but partition main gives a job at most 125G on one node; "
        "request at most 125G or use partition big"
    )
    assert finding.evidence == ["partition main: 4 nodes with 32 CPUs, 125G, icelake"]
    (finding,) = findings(time_limit=60 * HOUR)
    assert finding.text == (
        "requests a time limit of 2-12:00:00, but partition main allows at most 1-00:00:00; "
        "request at most 1-00:00:00 or use partition big or percpu"
    )


def test_a_job_that_only_has_to_wait_is_a_warning() -> None:
    assert kinds(partition="down") == {"partition_down": WARNING}
    (finding,) = findings(partition="gpu", req_nodes=2, req_gpus=8)
    assert (finding.kind, finding.level) == ("nodes_out_of_service", Level.WARNING)
    assert finding.evidence == ["g2 is IDLE+DRAIN: bad fan"]
    assert kinds(partition="staff", group="users", req_nodes=2) == {"group_not_allowed": WARNING}


def test_of_several_partitions_one_that_takes_the_job_is_enough() -> None:
    both = findings(partition="main,gpu", req_memory=500 * GIB)
    assert [(f.kind, f.level) for f in both] == [("memory_above_any_node", Level.CRITICAL)]
    assert any("partition gpu" in line for line in both[0].evidence)
    # where one of them merely keeps it waiting, it is not lost
    assert kinds(partition="main,down", time_limit=48 * HOUR) == {"partition_down": WARNING}


def test_a_user_who_completed_a_job_in_a_partition_may_use_it() -> None:
    lists = {"partition": "staff", "req_nodes": 2, "account": "physics.sub", "group": "users"}
    assert kinds(**lists) == {"account_not_allowed": CRITICAL, "group_not_allowed": WARNING}
    assert kinds(features={"place.completed": 1.0}, **lists) == {}


def test_fewer_nodes_than_the_partition_requires_are_critical_only_if_the_script_fixes_them() -> None:
    assert kinds(partition="staff") == {"nodes_below_partition": WARNING}
    assert {f.kind: str(f.level) for f in submitted("-p staff", "--nodes=1").findings} == {
        "nodes_below_partition": CRITICAL
    }
    assert not submitted("-p staff").findings


def test_the_script_tells_memory_per_cpu_from_memory_per_node() -> None:
    assert not submitted("--ntasks=8", "--mem-per-cpu=40G").findings
    (finding,) = submitted("--ntasks=8", "--mem=320G").findings
    assert finding.kind == "memory_above_any_node"


def test_without_a_machine_that_is_reported_and_the_rest_is_checked() -> None:
    (parts,) = assess(job(req_memory=2**60), past=Known(None))
    assert not parts.findings
    assert list(parts.missing) == ["limits"]
    (parts,) = assess(job(partition=None), past=Known(replace(MACHINE, partitions=MACHINE.partitions[1:])))
    assert list(parts.missing) == ["limits"]
    bare = Machine(cluster="lab", partitions=(Partition(name="p", default=True),), max_array_size=1001)
    (parts,) = assess(job(), past=Known(bare))
    assert list(parts.missing) == ["limits.nodes"]
    unread = replace(MACHINE, missing={"associations": "sacctmgr failed", "licenses": "scontrol failed"})
    (parts,) = assess(job(), past=Known(unread))
    assert list(parts.missing) == ["limits.associations"]
    no_array_size = Known(replace(MACHINE, max_array_size=None))
    (parts,) = assess(job(array="1-9999", job_id=0), past=no_array_size)
    assert not parts.findings
    assert list(parts.missing) == ["limits.array"]
    (parts,) = assess(job(array="1-1000%7", job_id=0), past=no_array_size)
    assert not parts.missing, "every cluster allows it, unless its MaxArraySize was lowered"
    (parts,) = assess(job(array="1-9999"), past=no_array_size)
    assert not parts.missing, "Slurm has accepted it"


@pytest.mark.parametrize(
    ("option", "kind"),
    [
        ("--exclude=n9", "unknown_node"),
        ("--exclude=n1,m1", None),
        ("--constraint=icelake*5", "too_few_such_nodes"),
        ("--constraint=icelake*2", None),
        ("--constraint=[icelake*5|big]", "count_misplaced"),
        ("--prefer=nosuch", "unknown_feature"),
        ("--prefer=big", "too_few_preferred_nodes"),
        ("--prefer=icelake", None),
        ("--ntasks-per-socket=17", "too_few_such_nodes"),
        ("--ntasks-per-socket=16", None),
        ("--overcommit --ntasks-per-node=33", "cpus_above_any_node"),
        ("--overcommit --ntasks-per-node=32", None),
    ],
)
def test_what_slurm_refuses_by_name_and_by_shape(option: str, kind: str | None) -> None:
    shaped = [replace(node, sockets=2, cores_per_socket=8, threads_per_core=2) for node in MACHINE.nodes]
    parts = submitted(option, machine=replace(MACHINE, nodes=tuple(shaped)))
    assert [finding.kind for finding in parts.findings] == ([kind] if kind else [])


def test_unknown_hardware_limits_nothing() -> None:
    bare = Machine(cluster="lab", partitions=(Partition(name="p", default=True),))
    greedy = {
        "req_memory": 2**50,
        "req_nodes": 10**6,
        "req_gpus": 10**6,
        "time_limit": UNLIMITED,
        "req_cpus": 10**9,
    }
    assert kinds(machine=bare, **greedy) == {}
    few = Machine(
        cluster="lab", partitions=(Partition(name="p", default=True, nodes=4, cpus=8, max_time=UNLIMITED),)
    )
    assert kinds(machine=few, **greedy) == {"nodes_above_partition": CRITICAL}
    assert kinds(machine=few, **{**greedy, "req_nodes": 4}) == {"cpus_above_partition": CRITICAL}
    dark = replace(bare, nodes=(Node(name="n1", partitions=("p",)),))
    assert kinds(machine=dark, req_memory=2**50, req_cpus=999) == {}


def test_a_started_job_is_only_compared_with_earlier_jobs() -> None:
    jobs = [job(req_memory=2**60, time_limit=60, start=1_800_000_100)]
    past = Known(MACHINE, past_of("name", 10))
    (parts,) = assess(*jobs, past=past, stage=Stage.START)
    assert [finding.kind for finding in parts.findings] == ["time_below_every_run"]


@pytest.fixture(scope="module")
def recorded() -> Machine:
    return machine_from_scontrol("lab", lambda argv: recordings.text(f"scontrol_{argv[-1]}.txt").encode())


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"req_memory": 4000 * 2**20}, {}),
        ({"req_memory": 4001 * 2**20}, {"memory_above_any_node": CRITICAL}),
        ({"req_nodes": 4, "req_tasks": 4}, {"nodes_out_of_service": WARNING}),
        ({"req_nodes": 2, "partition": "short"}, {"nodes_above_partition": CRITICAL}),
        ({"constraints": "a&b"}, {}),
        ({"constraints": "a", "req_nodes": 2}, {"too_few_such_nodes": CRITICAL}),
        ({"partition": "inf", "account": "research", "time_limit": UNLIMITED, "req_gpus": 2}, {}),
        ({"partition": "inf", "account": "root"}, {"account_not_allowed": CRITICAL}),
        ({"partition": "inf", "req_memory": 3001 * 2**20}, {"memory_above_any_node": CRITICAL}),
        ({"array": "0-1001"}, {"array_above_limit": CRITICAL}),
    ],
)
def test_on_a_recorded_slurm(recorded: Machine, fields: dict[str, object], found: dict[str, str]) -> None:
    assert kinds(machine=recorded, **fields) == found


sizes = st.integers(1, 64)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """One partition of equal nodes."""
    node = Node(
        name="", cpus=draw(sizes), memory=draw(sizes) * GIB, gpus=draw(st.integers(0, 8)), state="IDLE"
    )
    number = draw(st.integers(1, 9))
    names = [f"n{place}" for place in range(number)]
    partition = Partition(
        name="p",
        node_list=",".join(names),
        nodes=number,
        default=True,
        max_time=draw(st.none() | st.just(UNLIMITED) | st.integers(1, 10**6)),
        max_nodes=draw(st.none() | st.integers(1, 9)),
        max_memory_per_node=draw(st.none() | sizes.map(lambda size: size * GIB)),
        max_cpus_per_node=draw(st.none() | sizes),
    )
    return Machine(
        cluster="lab",
        nodes=tuple(replace(node, name=name) for name in names),
        partitions=(partition,),
        max_array_size=draw(st.integers(2, 5000)),
    )


def limits_of(machine: Machine) -> dict[str, int]:
    (partition,), node = machine.partitions, machine.nodes[0]
    assert node.cpus
    assert node.memory
    assert machine.max_array_size
    nodes = min(len(machine.nodes), partition.max_nodes or 99)
    cpus = min(node.cpus, partition.max_cpus_per_node or 99)
    return {
        "req_nodes": nodes,
        "tasks_per_node": cpus,
        "req_memory": min(node.memory, partition.max_memory_per_node or 2**60),
        "req_gpus": node.gpus * nodes,
        "time_limit": partition.max_time or UNLIMITED,
        "array": machine.max_array_size - 1,
    }


@given(machines(), st.data())
@settings(deadline=None)
def test_inside_all_limits_nothing_is_critical_and_beyond_one_something_is(
    machine: Machine, data: st.DataObject
) -> None:
    most = limits_of(machine)
    inside = {
        name: data.draw(st.integers(0 if name in ("req_gpus", "array") else 1, most[name])) for name in most
    }
    if inside["req_gpus"]:
        inside["req_nodes"] = most["req_nodes"]
    inside["req_tasks"] = inside["req_nodes"] * inside["tasks_per_node"]

    def critical(request: dict[str, int]) -> list[str]:
        fields = {**request, "array": f"0-{request['array']}", "req_cpus": request["req_tasks"]}
        return [f.text for f in findings(machine=machine, **fields) if f.level is Level.CRITICAL]

    assert critical(inside) == []
    broken = data.draw(st.sampled_from([name for name in most if most[name] < UNLIMITED]))
    beyond = {**inside, broken: most[broken] + data.draw(st.integers(1, 1000))}
    beyond["req_tasks"] = beyond["req_nodes"] * beyond["tasks_per_node"]
    assert critical(beyond), broken


def test_ten_thousand_jobs_get_the_findings_of_one() -> None:
    jobs = [
        job(job_id=n, req_memory=(1 + n % 300) * GIB, time_limit=n * 60, partition=("main", "big")[n % 2])
        for n in range(300)
    ]
    past = Known(MACHINE)
    frame = pl.concat([from_jobs(jobs)] * 34).head(10_000)
    fitted = FittedLimits()
    many = fitted.assess(frame, past, stage=Stage.SUBMIT)
    assert len(many) == 10_000
    alone = [fitted.assess(from_jobs([one]), past, stage=Stage.SUBMIT)[0] for one in jobs[::10]]
    assert many[0:300:10] == alone


def test_a_job_alone_and_among_many_has_the_same_findings() -> None:
    wishes = [
        job(
            job_id=1 + number,
            partition=partition,
            req_nodes=nodes,
            req_cpus=cpus,
            req_memory=memory * GIB,
            req_gpus=gpus,
        )
        for number, (partition, nodes, cpus, memory, gpus) in enumerate(
            product(
                ("main", "big", "gpu", "percpu"), (None, 1, 2), (1, 16, 17, 33), (1, 124, 125, 251), (0, 4, 5)
            )
        )
    ]
    together = assess(*wishes, past=Known(MACHINE))
    for wish, parts in list(zip(wishes, together, strict=True))[::7]:
        assert assess(wish, past=Known(MACHINE))[0].findings == parts.findings


def test_partitions_are_named_in_the_order_of_the_request_whatever_others_request() -> None:
    closed = replace(MACHINE, partitions=tuple(replace(p, state="DRAIN") for p in MACHINE.partitions))
    _, second = assess(job(partition="gpu,main"), job(partition="main,gpu"), past=Known(closed))
    [found] = second.findings
    assert found.text.startswith("requests partition main, which is DRAIN")
    assert [text.split(",")[0] for text in found.evidence] == ["requests partition gpu"]
