"""Who may use a partition, and jobs that name several of them."""

from dataclasses import replace

import pytest

from tests.limits.examples import GIB, HOUR, submitted
from tocsin.core.machine import Association, Machine, Node, Partition
from tocsin.core.verdict import Level

MACHINE = Machine(
    cluster="lab",
    release=(22, 5),
    nodes=tuple(Node(name=f"n{i}", cpus=8, memory=8 * GIB) for i in range(1, 5)),
    partitions=(
        Partition(name="main", node_list="n[1-4]", nodes=4, state="UP", default=True, max_time=24 * HOUR),
        Partition(name="debug", node_list="n[1-4]", nodes=4, state="UP", max_time=HOUR, max_nodes=1),
        Partition(name="wide", node_list="n[1-4]", nodes=4, state="UP", min_nodes=2),
        Partition(name="calm", node_list="n[1-4]", nodes=4, state="UP", deny_qos=("express",)),
        Partition(name="guests", node_list="n[1-4]", nodes=4, state="UP", deny_accounts=("physics",)),
        Partition(name="admins", node_list="n[1-4]", nodes=4, state="UP", root_only=True),
        Partition(name="dead", node_list="n[1-4]", nodes=4, state="INACTIVE"),
    ),
)


def critical(line: str, machine: Machine = MACHINE, user: str = "eve") -> list[str]:
    found = submitted(line, machine=machine, user=user).findings
    return [finding.kind for finding in found if finding.level is Level.CRITICAL]


def test_a_partition_may_deny_a_qos_or_everyone_but_root() -> None:
    assert critical("-p calm --qos=Express") == ["qos_not_allowed"]
    assert critical("-p calm --qos=high") == []
    assert critical("-p admins") == ["only_for_root"]
    assert critical("-p admins", user="root") == []


def test_a_blank_is_part_of_the_name_of_a_partition() -> None:
    """As in `-p "main, debug"`."""
    (finding,) = submitted("-p 'main, debug'", machine=MACHINE).findings
    assert finding.level is Level.CRITICAL
    assert finding.text.startswith(
        'requests partition " debug", which cluster lab does not have (Slurm reads the blank'
    )
    assert critical("-p main,,debug,") == []


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("-p debug,main -t 61", "time_above_partition"),
        ("-p main,debug -N 2", "nodes_above_partition"),
        ("-p wide,main -N 1", "nodes_below_partition"),
        ("-p calm,main --qos=express", "qos_not_allowed"),
        ("-p main,guests -A physics", "account_not_allowed"),
        ("-p main,admins", "only_for_root"),
    ],
)
def test_a_job_keeps_the_limits_of_all_its_partitions_where_that_is_enforced(line: str, kind: str) -> None:
    assert critical(line) == []
    assert critical(line, machine=replace(MACHINE, all_partitions=True)) == [kind]


@pytest.mark.parametrize("line", ["-p dead,main", "-p debug,main -c 8", "-p debug,main -t 60 -N 1"])
def test_other_reasons_to_refuse_a_job_are_not_enforced_in_all_of_them(line: str) -> None:
    assert critical(line, machine=replace(MACHINE, all_partitions=True)) == []


def test_several_partitions_need_one_association() -> None:
    """As Slurm 22.05 and 26.05 answered."""
    own = (Association(account="gpu", partition="main"), Association(account="all"))
    machine = replace(MACHINE, associations=own)
    assert critical("-A gpu -p main", machine) == []
    assert critical("-A gpu -p main,main", machine) == []
    assert critical("-A all -p main,debug", machine) == []
    assert critical("-A gpu -p main,debug", machine) == ["associations_differ"]
