from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kits import recordings
from tests.sources.test_rest import Server, rest_to
from tocsin.core.errors import ClusterError
from tocsin.core.machine import DEFAULT_PARTITION, JobLimits, Machine, Node, Partition, Qos, Reservation
from tocsin.core.units import UNLIMITED
from tocsin.sources.json_machine import MachineReader
from tocsin.sources.rest_versions import ADAPTERS
from tocsin.sources.slurm_access import with_access
from tocsin.sources.slurm_cluster import SlurmCluster
from tocsin.sources.slurm_machine import (
    machine_from_rest,
    machine_from_scontrol,
    read_config,
    read_nodes,
    read_partitions,
)


@pytest.fixture(scope="module")
def machine() -> Machine:
    """What scontrol of 22.05 told of a cluster with a drained node and a partition of many limits."""

    def run(argv: list[str]) -> bytes:
        return recordings.text(f"scontrol_{argv[-1]}.txt").encode()

    return machine_from_scontrol("lab", run)


def test_scontrol_tells_nodes_with_their_states_reasons_and_gpus(machine: Machine) -> None:
    nodes = {node.name: node for node in machine.nodes}
    assert nodes["n1"] == Node(
        name="n1",
        cpus=2,
        memory=4000 * 2**20,
        tmp_disk=0,
        sockets=2,
        cores_per_socket=1,
        threads_per_core=1,
        gpus=2,
        gres="gpu:2",
        partitions=("main", "short", "inf"),
        state=nodes["n1"].state,
    )
    assert nodes["n3"].features == ("a", "b")
    # What a person writes as a reason cannot pass for a state.
    assert (nodes["n4"].state, nodes["n4"].reason) == ("IDLE+DRAIN", "bad disk State=UP x")


def test_scontrol_tells_partitions_with_their_limits(machine: Machine) -> None:
    partitions = {partition.name: partition for partition in machine.partitions}
    assert partitions["main"].default
    assert (partitions["main"].max_time, partitions["main"].default_time) == (86_400, 600)
    assert partitions["main"].max_nodes is partitions["main"].allow_accounts is None
    assert partitions["inf"] == Partition(
        name="inf",
        node_list="n[1,3]",
        nodes=2,
        cpus=4,
        state="UP",
        max_time=UNLIMITED,
        min_nodes=1,
        max_nodes=2,
        default_memory_per_cpu=77 * 2**20,
        max_memory_per_node=3000 * 2**20,
        allow_accounts=("research", "foo"),
        deny_qos=("x",),
        whole_nodes=False,
    )


def test_the_configuration_is_a_table_of_settings(machine: Machine) -> None:
    config = read_config(recordings.text("scontrol_config.txt"))
    assert config["AccountingStoreFlags"] == "job_comment,job_script"
    assert config["SchedulerParameters"].startswith("sched_interval=1,")
    assert config["SLURM_VERSION"] == "22.05.8"
    assert machine.max_array_size == int(config["MaxArraySize"])


def told(version: str, what: str) -> tuple[Any, ...]:
    adapter = ADAPTERS[version]
    records = recordings.reply("slurm", version, what)[what]
    return tuple((adapter.node if what == "nodes" else adapter.partition)(record) for record in records)


def without_whole_nodes(partitions: tuple[Partition, ...]) -> tuple[Partition, ...]:
    """slurmrestd is not read for it."""
    return tuple(replace(partition, whole_nodes=None) for partition in partitions)


def test_rest_tells_the_same_machine_as_scontrol(machine: Machine) -> None:
    assert told("v0.0.38", "nodes") == machine.nodes
    assert told("v0.0.38", "partitions") == without_whole_nodes(machine.partitions)


def test_older_versions_tell_less_and_nothing_wrong(machine: Machine) -> None:
    assert told("v0.0.37", "nodes") == machine.nodes
    for version, unknown in (("v0.0.37", ("default_time",)), ("v0.0.36", ("default_time", "state"))):
        unknown = (*unknown, "whole_nodes")
        for ours, theirs in zip(machine.partitions, told(version, "partitions"), strict=True):
            for name in Partition.__dataclass_fields__:
                assert getattr(theirs, name) == (None if name in unknown else getattr(ours, name)), (
                    version,
                    name,
                )
    for ours, theirs in zip(machine.nodes, told("v0.0.36", "nodes"), strict=True):
        assert (theirs.name, theirs.cpus, theirs.memory, theirs.gpus) == (
            ours.name,
            ours.cpus,
            ours.memory,
            ours.gpus,
        )
        assert theirs.partitions == ()


@pytest.mark.parametrize("version", ["v0.0.43", "v0.0.44", "v0.0.45"])
def test_rest_of_26_05_tells_the_same_machine_as_scontrol(version: str) -> None:
    assert told(version, "nodes") == read_nodes(recordings.text("scontrol_node.txt", "26.05"))
    by_command = without_whole_nodes(read_partitions(recordings.text("scontrol_partition.txt", "26.05")))
    if "default partition" in ADAPTERS[version].missing:
        by_command = tuple(replace(partition, default=False) for partition in by_command)
    assert told(version, "partitions") == by_command


def number(value: int | None, *, infinite: bool = False) -> dict[str, Any]:
    return {"set": value is not None or infinite, "infinite": infinite, "number": value or 0}


def test_a_partition_of_24_11_is_nested_by_subject() -> None:
    # By the specification that slurmrestd 24.11 serves; no partition of it was recorded.
    record = {
        "name": "gpu",
        "nodes": {"configured": "n[1-4]", "total": 4, "allowed_allocation": ""},
        "accounts": {"allowed": "", "deny": "guests"},
        "groups": {"allowed": "staff"},
        "qos": {"allowed": "high,low", "deny": "express", "assigned": ""},
        "flags": ["ROOT_ONLY"],
        "cpus": {"total": 8, "task_binding": 0},
        "defaults": {
            "partition_memory_per_cpu": number(100),
            "partition_memory_per_node": number(None),
            "time": number(10),
        },
        "maximums": {
            "time": number(None, infinite=True),
            "nodes": number(2),
            "cpus_per_node": number(None, infinite=True),
            "partition_memory_per_cpu": number(None),
            "partition_memory_per_node": number(3000),
        },
        "minimums": {"nodes": 1},
        "partition": {"state": ["UP"]},
    }
    assert ADAPTERS["v0.0.42"].partition(record) == Partition(
        name="gpu",
        node_list="n[1-4]",
        nodes=4,
        cpus=8,
        state="UP",
        max_time=UNLIMITED,
        default_time=600,
        min_nodes=1,
        max_nodes=2,
        default_memory_per_cpu=100 * 2**20,
        max_memory_per_node=3000 * 2**20,
        deny_accounts=("guests",),
        allow_groups=("staff",),
        allow_qos=("high", "low"),
        deny_qos=("express",),
        root_only=True,
    )


@given(
    st.text(max_size=200),
    st.dictionaries(st.sampled_from(["CPUTot", "Gres", "State", "Reason", "MaxTime"]), st.text()),
)
@settings(deadline=None)
def test_no_text_of_scontrol_raises(text: str, pairs: dict[str, str]) -> None:
    line = " ".join(f"{name}={value}" for name, value in pairs.items())
    read_nodes(f"{text}\nNodeName=n1 {line}")
    read_partitions(f"{text}\nPartitionName=p {line}")
    read_config(text)


def test_cpus_and_memory_that_slurm_keeps_for_the_system_are_not_for_jobs() -> None:
    (node,) = read_nodes(
        "NodeName=n4 CPUEfctv=6 CPUTot=8 RealMemory=8000 MemSpecLimit=1000 TmpDisk=500 Sockets=2\n"
    )
    assert (node.cpus, node.memory, node.tmp_disk) == (6, 7000 * 2**20, 500 * 2**20)
    record = {"name": "n4", "cpus": 8, "effective_cpus": 6, "real_memory": 8000, "specialized_memory": 1000}
    assert (MachineReader().node(record).cpus, MachineReader().node(record).memory) == (6, 7000 * 2**20)
    older = {"name": "n4", "cpus": 8, "tres": "cpu=6,mem=8000M,billing=6", "real_memory": 8000}
    assert MachineReader().node(older).cpus == 6


def test_a_partition_may_have_a_qos_and_require_a_reservation() -> None:
    (by_command,) = read_partitions("PartitionName=p QoS=strict ReqResv=YES OverSubscribe=EXCLUSIVE\n")
    assert (by_command.qos, by_command.requires_reservation, by_command.whole_nodes) == ("strict", True, True)
    (newer,) = read_partitions("PartitionName=p QoS=N/A ReqResv=NO Exclusive=NODE OverSubscribe=NO\n")
    assert (newer.qos, newer.requires_reservation, newer.whole_nodes) == (None, False, True)
    by_rest = MachineReader().partition({"name": "p", "qos": "strict", "flags": ["reservation_required"]})
    assert (by_rest.qos, by_rest.requires_reservation, by_rest.whole_nodes) == ("strict", True, None)
    nested = ADAPTERS["v0.0.43"].partition(
        {"name": "p", "qos": {"assigned": "strict"}, "flags": ["REQ_RESV"]}
    )
    assert (nested.qos, nested.requires_reservation) == ("strict", True)


@pytest.mark.parametrize(
    ("select", "more", "by"),
    [
        ("cons_tres", "SelectTypeParameters = CR_CORE_MEMORY", "core"),
        ("cons_res", "SelectTypeParameters = CR_LLN,CR_CPU", "cpu"),
        ("cons_tres", "SelectTypeParameters = CR_SOCKET", None),
        ("cons_tres", "SelectTypeParameters = CR_CORE\nMaxMemPerCPU = 2000", None),
        ("linear", "SelectTypeParameters = CR_CPU", None),
    ],
)
def test_the_configuration_says_what_jobs_get_cpus_by(select: str, more: str, by: str | None) -> None:
    text = f"SelectType = select/{select}\n{more}\n"
    found = machine_from_scontrol("lab", lambda argv: text.encode() if "config" in argv else b"")
    assert found.cpus_by == by


ACCESS = {
    "license": "LicenseName=solver Total=2 Used=0 Free=2 Reserved=0 Remote=no\n",
    "reservation": "ReservationName=ours Nodes=n5 NodeCnt=1 Users=alice Groups=(null) Accounts=(null) Licenses=(null)\n",
    "user": "tiny||normal||00:05:00|cpu=1|None|research||\nresearch||high,normal|high|||None|research|cpu=2|cpu=100|cpu=9,node=3|||5|\n",
    "association": "root|||4|\nsite|root|cpu=4|0|\nresearch|site|cpu=8,mem=1G||20\n",
    "qos": "normal||||||\nhigh|00:10:00|cpu=2,mem=1G,node=1|cpu=1|cpu=60|cpu=2|OverPartQOS,RequiresReservation|2.000000|"
    "cpu=6|node=2|mem=1G|1|2|3|0||6\n"
    "any||||||DenyOnLimit,PartitionTimeLimit,PartitionMinNodes,PartitionMaxNodes\n",
}


@pytest.mark.parametrize("enforce", ["associations,limits,qos", "associations", "none"])
def test_what_a_user_may_request_is_read_as_far_as_it_is_enforced(enforce: str) -> None:
    def run(argv: list[str]) -> bytes:
        return next(text for name, text in ACCESS.items() if name in argv).encode()

    found = with_access(Machine(cluster="lab"), run, "alice", {"AccountingStorageEnforce": enforce})
    assert found.licenses == {"solver": 2}
    assert found.reservations == (Reservation(name="ours", node_list="n5", users=("alice",)),)
    if enforce == "none":
        assert found.associations is found.qos is None
        return
    assert found.associations is not None
    assert found.qos is not None
    tiny, research = found.associations
    limited = enforce != "associations"
    assert found.qos_enforced == limited
    assert tiny.limits == (JobLimits(max_time=300, max_tres={"cpu": 1}) if limited else JobLimits())
    assert (research.qos, research.default_qos) == (("high", "normal") if limited else (), "high")
    assert found.operator is False
    assert found.default_account == "research"
    more = JobLimits(
        max_tres_per_node={"cpu": 2},
        max_tres_minutes={"cpu": 100},
        group_tres={"cpu": 4, "node": 3, "mem": 2**30},  # the least of its own and of the accounts above
        job_counts={"GrpJobs": 0, "MaxJobsPU": 5, "GrpSubmit": 20},
    )
    assert research.limits == (more if limited else JobLimits())
    high = Qos(
        max_time=600,
        max_tres={"cpu": 2, "mem": 2**30, "node": 1},
        max_tres_per_node={"cpu": 1},
        max_tres_minutes={"cpu": 60},
        min_tres={"cpu": 2},
        group_tres={"cpu": 6},
        max_tres_per_user={"node": 2},
        max_tres_per_account={"mem": 2**30},
        job_counts={"GrpJobs": 1, "GrpSubmit": 2, "MaxJobsPU": 3, "MaxSubmitPU": 0, "MaxSubmitPA": 6},
        limit_factor=2.0,
        over_partition=True,
        requires_reservation=True,
    )
    assert found.qos["high"] == (high if limited else Qos(limit_factor=2.0, over_partition=True))
    assert found.qos["any"].lifts == {"max_time", "min_nodes", "max_nodes"}


def test_a_default_account_of_another_cluster_is_none_here() -> None:
    def run(argv: list[str]) -> bytes:
        return b"tiny||||||None|elsewhere||\n" if "user" in argv else b""

    found = with_access(Machine(cluster="lab"), run, "alice", {"AccountingStorageEnforce": "associations"})
    assert found.associations
    assert found.default_account is None


def test_a_command_that_fails_is_named_in_missing() -> None:
    def run(argv: list[str]) -> bytes:
        raise ClusterError("no slurmdbd")

    found = with_access(Machine(cluster="lab"), run, "alice", {"AccountingStorageEnforce": "associations"})
    assert set(found.missing) == {"licenses", "reservations", "associations", "qos"}


def test_a_slurmdbd_that_hangs_is_waited_for_once_and_not_long() -> None:
    asked: list[tuple[str, float]] = []

    def run(argv: list[str], timeout: float, **_: object) -> bytes:
        asked.append((argv[0], timeout))
        if argv[0] == "sacctmgr":
            raise ClusterError(f"sacctmgr did not answer within {timeout:g} s")
        return b"AccountingStorageEnforce = associations\n" if "config" in argv else b""

    cluster = SlurmCluster("lab", run=run)
    found = cluster.machine(user="alice")
    assert set(found.missing) == {"associations", "qos"}
    assert [name for name, _ in asked].count("sacctmgr") == 1
    assert max(timeout for _, timeout in asked) <= 10
    asked.clear()
    cluster.machine()
    assert {timeout for _, timeout in asked} == {60}, "nobody waits for it"


@pytest.mark.parametrize(
    ("answer", "size", "reason"),
    [
        (recordings.text("scontrol_config.txt"), 1001, None),
        ("ClusterName = other\nMaxArraySize = 5\n", None, "another cluster"),
        (ClusterError("slurmctld is down"), None, "slurmctld is down"),
        (None, None, "scontrol show config does"),
    ],
)
def test_what_slurmrestd_does_not_report_comes_from_scontrol(
    answer: str | Exception | None, size: int | None, reason: str | None
) -> None:
    def run(argv: list[str]) -> bytes:
        if isinstance(answer, Exception):
            raise answer
        return str(answer).encode()

    machine = machine_from_rest("lab", rest_to(Server("v0.0.38")), run=run if answer else None)
    assert machine.max_array_size == size
    assert (reason is None) == ("max_array_size" not in machine.missing)
    assert (reason or "") in machine.missing.get("max_array_size", "")


def test_the_default_partition_comes_from_scontrol_where_slurmrestd_does_not_mark_it() -> None:
    """From 23.11 to 25.11; without it, no script without --partition could be checked."""

    def run(argv: list[str]) -> bytes:
        asked = "scontrol_partition.txt" if argv[-1] == "partition" else "scontrol_config.txt"
        name = "26.05" if argv[-1] == "partition" else "22.05"
        return recordings.text(asked, name).encode()

    alone = machine_from_rest("lab", rest_to(Server("v0.0.44")))
    assert DEFAULT_PARTITION in alone.missing
    assert not any(partition.default for partition in alone.partitions)
    both = machine_from_rest("lab", rest_to(Server("v0.0.44")), run=run)
    assert DEFAULT_PARTITION not in both.missing
    marked = [partition.name for partition in both.partitions if partition.default]
    by_command = read_partitions(recordings.text("scontrol_partition.txt", "26.05"))
    assert marked == [partition.name for partition in by_command if partition.default] != []
