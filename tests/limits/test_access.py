"""What a user may request: accounts, QOS, licences, reservations, generic resources."""

from dataclasses import replace
from typing import Any

import pytest

from tests.limits.examples import GIB, HOUR, MACHINE, Known, assess, job, submitted
from tocsin.app.script_job import with_defaults
from tocsin.core.machine import Association, JobLimits, Machine, Partition, Qos, Reservation
from tocsin.core.verdict import Level

CLUSTER = replace(
    MACHINE,
    gres_types=("gpu",),
    licenses={"solver": 2},
    reservations=(
        Reservation(name="ours", users=("eve",), node_list="n[1-2]"),
        Reservation(name="theirs", users=("bob",)),
        Reservation(name="departments", accounts=("others",)),
        Reservation(name="most", users=("-bob",)),
    ),
    associations=(
        Association(account="physics", qos=("normal", "short")),
        Association(account="tiny", qos=("normal",), limits=JobLimits(max_time=300, max_tres={"cpu": 1})),
        Association(account="gpu", partition="gpu", qos=("normal",)),
    ),
    qos={
        "normal": Qos(),
        "short": Qos(max_time=600, max_tres={"node": 1, "mem": GIB}),
        "other": Qos(),
    },
)


def critical(*lines: str, machine: Machine = CLUSTER) -> list[str]:
    found = submitted(*lines, machine=machine).findings
    return [finding.kind for finding in found if finding.level is Level.CRITICAL]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("-A nosuch", "account_not_associated"),
        ("-A gpu", "account_not_associated"),
        ("-A physics --qos=nosuch", "qos_not_associated"),
        ("-A physics --qos=other", "qos_not_associated"),
        ("-A physics --qos=short -t 11", "time_above_account"),
        ("-A physics --qos=short -t 5 -N 2", "resources_above_account"),
        ("-A physics --qos=short -t 5 -N 1 --mem=2G", "resources_above_account"),
        ("-A tiny -t 6", "time_above_account"),
        ("-A tiny -t 5 -n 2", "resources_above_account"),
        ("-A physics -L solver:3", "licenses_above_total"),
        ("-A physics -L nosuch", "unknown_license"),
        ("-A physics --reservation=nosuch", "unknown_reservation"),
        ("-A physics --reservation=theirs", "reservation_not_allowed"),
        ("-A physics --reservation=ours,theirs", "reservation_not_allowed"),
        ("-A physics --reservation=ours -N 3", "too_few_such_nodes"),
        ("-A physics --gres=fpga:1", "unknown_gres"),
        ("-A physics --gres=gpu:1,none -p gpu", "unknown_gres"),
        ("-A physics -L solver:2;solver", "licenses_above_total"),
        ("-A physics --qos=normal,short", "qos_not_associated"),
        ("-A physics --qos=", "empty_name"),
    ],
)
def test_a_request_beyond_what_the_user_may_is_critical(line: str, kind: str) -> None:
    assert critical(line) == [kind]


@pytest.mark.parametrize(
    "line",
    [
        "-A physics",
        "-A gpu -p gpu",
        "-A PHYSICS --qos=short -t 10 -N 1 --mem=1G",
        "-A tiny -t 5 -n 1",
        "-A physics -L solver:2",
        "-A physics -L solver:3|mesh:1",
        "-A physics --reservation=ours -N 2",
        "-A physics --reservation=most",
        "-A physics --reservation=departments",
        "-p gpu -A gpu --gres=gpu:a100:1",
    ],
)
def test_a_request_within_it_is_not(line: str) -> None:
    assert critical(line) == []


def test_named_nodes_do_not_choose_from_a_list_of_node_counts() -> None:
    """Tried on 26.05."""
    line, newer = "-A physics --qos=short -t 5 -w n[1-2]", replace(CLUSTER, release=(26, 5))
    assert [f.kind for f in submitted(line, machine=newer).findings] == ["resources_above_account"]
    assert not submitted(f"{line} -N 1,3", machine=newer).findings


def test_a_qos_of_no_account_is_refused_whatever_the_account() -> None:
    (finding,) = submitted("--qos=other", machine=CLUSTER).findings
    assert (finding.level, finding.kind) == ("critical", "qos_not_associated")
    assert finding.text.startswith("uses QOS other, which no account of this user may use")
    assert not submitted("--qos=normal", machine=CLUSTER).findings


def test_an_unknown_qos_is_fine_where_slurm_does_not_enforce_any() -> None:
    """Tried on 24.11 with AccountingStorageEnforce=associations: the job completes with no QOS."""
    assert not submitted("--qos=nosuch", machine=replace(CLUSTER, qos_enforced=False)).findings


@pytest.mark.parametrize("release", [(24, 11), (26, 5)])
def test_a_newer_release_takes_a_list_of_qos(release: tuple[int, int]) -> None:
    machine = replace(CLUSTER, release=release)
    assert not submitted("-A physics --qos=normal,short", machine=machine).findings
    assert "qos_not_associated" in [
        finding.kind for finding in submitted("-A physics --qos=normal,other", machine=machine).findings
    ]


def test_the_longest_time_of_a_partition_is_no_request() -> None:
    """`check` fills it in; Slurm gives such a job what its account allows."""
    wanted = job(job_id=0, script="x", account="tiny", partition="main", time_limit=24 * HOUR)
    assert not assess(wanted, past=Known(CLUSTER, scripts={"x": "#!/bin/bash\ntrue\n"}))[0].findings


def test_the_least_cpus_of_a_node_count_for_a_limit() -> None:
    assert critical("-A tiny -t 5 --mincpus=2") == ["resources_above_account"]


def test_only_usable_reservations_are_advised() -> None:
    (finding,) = submitted("--reservation=nosuch", machine=CLUSTER).findings
    assert finding.text == "uses reservation nosuch, which does not exist; use one of ours, departments, most"


OF_PARTITIONS = replace(
    MACHINE,
    cpus_by="core",
    nodes=tuple(replace(node, threads_per_core=2) for node in MACHINE.nodes),
    partitions=(
        *(replace(partition, whole_nodes=False) for partition in MACHINE.partitions),
        *(
            Partition(
                name=name, node_list="n[1-4]", nodes=4, state="UP", whole_nodes=name == "whole", qos=qos
            )
            for name, qos in (("strict", "strict"), ("unread", "unread"), ("whole", None), ("free", "free"))
        ),
        Partition(name="booked", node_list="n[1-4]", nodes=4, state="UP", requires_reservation=True),
        Partition(
            name="narrow",
            node_list="n[1-4]",
            nodes=4,
            state="UP",
            max_time=300,
            min_nodes=2,
            max_nodes=2,
            whole_nodes=False,
        ),
    ),
    associations=(
        Association(account="physics", default_qos="normal"),
        Association(account="tiny", limits=JobLimits(max_tres={"cpu": 1}, max_tres_per_node={"cpu": 1})),
        Association(account="shared", limits=JobLimits(group_tres={"cpu": 8})),
        Association(account="shut", limits=JobLimits(job_counts={"MaxJobsPU": 0})),
    ),
    qos={
        "normal": Qos(),
        "strict": Qos(max_time=1800, max_tres={"cpu": 4}),
        "free": Qos(max_tres={"cpu": 8}),
        "small": Qos(max_tres={"cpu": 6}),
        "over": Qos(max_tres={"cpu": 8}, over_partition=True),
        "booked": Qos(requires_reservation=True),
        "least": Qos(min_tres={"cpu": 4}),
        "nodes": Qos(min_tres={"node": 2}),
        "gpus": Qos(min_tres={"gres/gpu": 1}),
        "group": Qos(group_tres={"cpu": 6}, job_counts={"GrpJobs": 1}),
        "user": Qos(max_tres_per_user={"node": 2}, job_counts={"MaxJobsPU": 1, "MaxSubmitPU": 10}),
        "per_account": Qos(max_tres_per_account={"mem": GIB}),
        "none": Qos(job_counts={"MaxSubmitPU": 0}),
        "minutes": Qos(max_tres_minutes={"cpu": 60}),
        "each": Qos(max_tres_per_node={"cpu": 2, "mem": GIB}),
        "any": Qos(lifts=frozenset({"max_time", "min_nodes", "max_nodes"})),
    },
    reservations=(Reservation(name="ours", users=("eve",), node_list="n[1-4]"),),
)


@pytest.mark.parametrize(
    ("line", "kinds"),
    [
        ("-A tiny --qos=normal -n 2", ["resources_above_account"]),
        ("-A tiny --qos=double -n 2", []),
        ("-A tiny --qos=double -n 3", ["resources_above_account"]),
        ("-A tiny --qos=double -N 1 -c 2", []),
    ],
)
def test_a_qos_may_multiply_what_an_account_allows(line: str, kinds: list[str]) -> None:
    """LimitFactor, tried on 22.05."""
    machine = replace(OF_PARTITIONS, qos={**(OF_PARTITIONS.qos or {}), "double": Qos(limit_factor=2.0)})
    assert critical(line, machine=machine) == kinds


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("-p strict -n 5", "resources_above_account"),
        ("-p strict -t 31", "time_above_account"),
        ("-p strict -n 5 --qos=small", "resources_above_account"),
        ("-p strict -n 9 --qos=over", "resources_above_account"),
        ("-p booked", "reservation_required"),
        ("--qos=booked", "reservation_required"),
        ("--qos=least", "resources_below_account"),
        ("--qos=nodes -N 1", "resources_below_account"),
        ("--qos=gpus", "resources_below_account"),
        ("--qos=minutes -n 2 -t 31", "minutes_above_account"),
        ("--qos=minutes -p narrow -N 2 -n 13", "minutes_above_account"),
        ("--qos=each -c 3", "resources_above_node_limit"),
        ("--qos=each -N 2 -n 6", "resources_above_node_limit"),
        ("--qos=each -N 1 --mem=2G", "resources_above_node_limit"),
        ("-A tiny --qos=normal -N 1 -n 2", "resources_above_account"),
        ("--qos=group -n 7", "resources_above_account"),
        ("--qos=user -N 3", "resources_above_account"),
        ("--qos=per_account --mem=2G -N 1", "resources_above_account"),
        ("-p strict --qos=none", "no_jobs_allowed"),
        ("-A shared --qos=normal -n 9", "resources_above_account"),
        ("-A shut --qos=normal", "no_jobs_allowed"),
        ("--qos=user -a 0-10%2", "array_above_account"),
    ],
)
def test_limits_of_qos_of_jobs_and_partitions_are_critical_where_slurm_never_starts_the_job(
    line: str, kind: str
) -> None:
    """As Slurm 22.05 answered."""
    assert kind in critical(line if "-A" in line else f"-A physics {line}", machine=OF_PARTITIONS)


@pytest.mark.parametrize(
    "line",
    [
        "-p strict -n 4 -t 30",
        "-p strict -n 5 --qos=over",
        "-p free -n 8 --qos=small",
        "-p unread -n 60 --qos=small",
        "-p booked --reservation=ours",
        "--qos=booked --reservation=ours",
        "--qos=least -n 2",
        "--qos=least --exclusive",
        "--qos=least -p whole",
        "--qos=least -N 1-3",
        "--qos=least -n 4",
        "--qos=nodes -n 2",
        "--qos=nodes -p narrow -n 2",
        "--qos=nodes -n 4 -O",
        "--qos=nodes --gpus=4 -p gpu",
        "--qos=minutes -n 2 -t 30",
        "--qos=minutes -t 61 --time-min=1",
        "--qos=group -n 6",
        "--qos=user -N 2 -a 1-20:2",
        "--qos=user -a 1,1,1,2-9",
        "--qos=user -p strict -n 4",
        "--qos=each -n 9",
        "--qos=each -N 1-3 -n 6",
        "--qos=each -N 2 -n 5",
        "--qos=each -p gpu --cpus-per-gpu=8",
        "--qos=any -p narrow -t 6 -N 3",
        "--qos=ANY -p narrow -N 1",
    ],
)
def test_what_slurm_may_still_start_is_not(line: str) -> None:
    assert critical(f"-A physics {line}", machine=OF_PARTITIONS) == []


@pytest.mark.parametrize("unknown", [{"cpus_by": None}, {"partitions": MACHINE.partitions}])
def test_too_few_cpus_are_not_found_where_jobs_may_get_more(unknown: dict[str, Any]) -> None:
    assert critical("-A physics --qos=least", machine=replace(OF_PARTITIONS, **unknown)) == []


def test_a_job_without_account_has_the_default_account_of_its_user() -> None:
    """Whatever account earlier jobs named."""
    machine = replace(OF_PARTITIONS, default_account="tiny")
    assert with_defaults(job(), machine, {"account": "physics"}).account == "tiny"
    assert with_defaults(job(account="other"), machine, {}).account == "other"
    assert with_defaults(job(), OF_PARTITIONS, {"account": "physics"}).account == "physics"


@pytest.mark.parametrize(
    ("release", "by", "found"),
    [((22, 5), "core", True), ((22, 5), "cpu", False), ((22, 5), None, False), ((26, 5), "core", False)],
)
def test_memory_per_cpu_counts_for_all_threads_of_a_core(
    release: tuple[int, int], by: str | None, found: bool
) -> None:
    machine = replace(OF_PARTITIONS, release=release, cpus_by=by)
    line = "-A physics -n 1 --mem-per-cpu=100G"
    assert bool(critical(line, machine=machine)) == found
    assert not critical(f"{line} --hint=nomultithread", machine=machine)
    assert not critical("-A physics -n 1 --mem-per-cpu=62G", machine=machine)


TYPED = replace(
    MACHINE,
    release=(22, 5),
    nodes=tuple(
        replace(node, gres="gpu:t4:2(S:0),gpu:A100:2") if node.gpus else node for node in MACHINE.nodes
    ),
)


@pytest.mark.parametrize(
    "line",
    [
        *("--gres=gpu:T4", "--gres=gpu:T4:1", "--gres=gres:gpu:T4:1", "--gres=gpu:t4:1,gpu:a100:1"),
        *("--gpus=T4", "--gpus=T4:1", "--gpus-per-node=T4:1", "-n 1 --gpus-per-task=T4:1", "--gpus=a100:2"),
    ],
)
def test_slurm_22_05_compares_types_of_gpus_by_case(line: str) -> None:
    """It answered `Requested node configuration is not available`."""
    assert "gpu_type_in_other_case" in critical(f"-p gpu {line}", machine=TYPED)
    for release in ((24, 11), None):
        machine = replace(TYPED, release=release)
        assert "gpu_type_in_other_case" not in critical(f"-p gpu {line}", machine=machine)


@pytest.mark.parametrize(
    "line",
    [
        "--gres=gpu:t4",
        "--gres=gpu:A100:1",
        "--gres=gpu:T4:0",
        "--gpus=t4:1",
        "--gpus=t4:1,A100:1",
        "--gpus=2",
    ],
)
def test_types_as_written_are_found(line: str) -> None:
    assert critical(f"-p gpu {line}", machine=TYPED) == []
