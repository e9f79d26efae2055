from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kits import recordings
from tocsin.core.machine import Machine, Node, Partition
from tocsin.core.units import UNLIMITED
from tocsin.sources.rest_versions import ADAPTERS
from tocsin.sources.slurm_machine import machine_from_scontrol, read_config, read_nodes, read_partitions


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


def test_rest_tells_the_same_machine_as_scontrol(machine: Machine) -> None:
    assert told("v0.0.38", "nodes") == machine.nodes
    assert told("v0.0.38", "partitions") == machine.partitions


def test_older_versions_tell_less_and_nothing_wrong(machine: Machine) -> None:
    assert told("v0.0.37", "nodes") == machine.nodes
    for version, unknown in (("v0.0.37", ("default_time",)), ("v0.0.36", ("default_time", "state"))):
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


def number(value: int | None, *, infinite: bool = False) -> dict[str, Any]:
    return {"set": value is not None or infinite, "infinite": infinite, "number": value or 0}


def test_a_partition_of_24_11_is_nested_by_subject() -> None:
    # By the specification that slurmrestd 24.11 serves; no partition of it was recorded.
    record = {
        "name": "gpu",
        "nodes": {"configured": "n[1-4]", "total": 4, "allowed_allocation": ""},
        "accounts": {"allowed": "", "deny": "guests"},
        "groups": {"allowed": "staff"},
        "qos": {"allowed": "high,low", "deny": "", "assigned": ""},
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
