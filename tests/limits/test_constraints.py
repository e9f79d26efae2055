"""Which nodes a constraint allows, as Slurm decides it."""

from dataclasses import replace

import pytest

from tests.limits.examples import submitted
from tocsin.core.machine import Machine, Node, Partition
from tocsin.core.verdict import Level
from tocsin.limits.constraints import constraint

MACHINE = Machine(
    cluster="lab",
    nodes=(
        Node(name="n1", cpus=2, gpus=2, gres="gpu:2", features=("fast", "gpu")),
        Node(name="n2", cpus=8, features=("fast",)),
        Node(name="n3", cpus=8, gpus=1, gres="gpu:a100:1(S:0)", features=("fast", "large")),
        Node(name="n4", cpus=6, features=("slow",)),
    ),
    partitions=(Partition(name="main", node_list="n[1-4]", nodes=4, state="UP", default=True),),
)


def critical(line: str) -> list[str]:
    found = submitted(line, machine=MACHINE).findings
    return [finding.kind for finding in found if finding.level is Level.CRITICAL]


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("fast", ["n1", "n2", "n3"]),
        ("fast&large", ["n3"]),
        ("fast|slow", ["n1", "n2", "n3", "n4"]),
        ("(fast|slow)&large", ["n3"]),
        ("((gpu)|(slow))", ["n1", "n4"]),
        ("slow&fast|large", ["n3"]),
        ("large|fast&slow", ["n3"]),
        ("fast&", ["n1", "n2", "n3"]),
        ("a,b", ["n1", "n2", "n3", "n4"]),  # a form that is not known
    ],
)
def test_a_constraint_allows_the_nodes_whose_features_satisfy_it(text: str, nodes: list[str]) -> None:
    (suits,) = constraint(text).alternatives
    assert [node.name for node in MACHINE.nodes if suits(node.features)] == nodes
    assert suits(None), "features may be unknown"


@pytest.mark.parametrize(
    "line",
    [
        *("-C [large|slow] -N 2", "-C large|slow -N 3", "-C [fast|slow] -N 4", "-C (gpu|slow) -c 8"),
        *(
            "-C fast*4",
            "-C fast*2 -N 1",
            "-C fast*3 -c 8",
            "-C [fast*2&slow*2]",
            "-C (fast|slow)&large -w n1,n2",
        ),
        *("--prefer=slow -c 8", "--prefer=slow -w n1", "--prefer=slow -N 2", "-w n1 -n 3 -N 1"),
        *("--gres=gpu:h100:1", "--gpus=h100:1", "--gpus-per-node=gpu:1", "--gres=gpu:-1", "--gres=gpu:1:1"),
        *("-G a100:1,h100:1", "--gpus=x", "-n 9 --ntasks-per-gpu=1", "-w n1 --gres=gpu:a100:1"),
    ],
)
def test_what_no_choice_of_nodes_satisfies_is_critical(line: str) -> None:
    assert critical(line)


@pytest.mark.parametrize(
    "line",
    [
        *("-C [large|slow] -N 1", "-C large|slow -N 2", "-C [fast|slow] -N 3", "-C fast|slow -N 4"),
        *("-C fast*2", "-C fast*2 -c 6", "-C [fast*2&slow*1] -N 3", "-C (fast|slow)&large -w n3"),
        *("-C (fast|slow)*2", "-C [(fast&large)*1&slow*1] -N 2", "-C [fast*1]*1"),
        *("--prefer=slow", "--prefer=slow -C fast -c 8", "--prefer=fast*2", "--prefer=[fast|slow]"),
        *(
            "--gres=gpu:a100:1",
            "--gpus=A100:1",
            "--gpus=1,2",
            "-w n1 --gres=gpu:2",
            "-n 2 --ntasks-per-gpu=1",
        ),
    ],
)
def test_what_some_nodes_satisfy_is_not(line: str) -> None:
    assert critical(line) == []


@pytest.mark.parametrize(
    ("line", "fits"),
    [
        ("--gres=gpu:t4:2", True),
        ("--gres=gpu:t4:3", False),
        ("--gres=gpu:A100:2,gpu:t4:2", True),
        ("--gpus-per-node=t4:3", False),
        ("--gpus-per-task=t4:3 -n 1", False),
        ("--gpus-per-task=t4:2 -n 1", True),
        ("--gres=gpu:4", True),
        ("-G t4:3", True),
    ],
)
def test_a_node_with_gpus_of_two_types_has_few_of_each(line: str, fits: bool) -> None:
    nodes = tuple(Node(name=n, cpus=8, gpus=4, gres="gpu:a100:2(S:0),gpu:t4:2(S:1)") for n in ("n1", "n2"))
    machine = Machine(
        cluster="lab", nodes=nodes, partitions=(Partition(name="p", node_list="n[1-2]", default=True),)
    )
    assert bool(submitted(line, machine=machine).findings) is not fits


@pytest.mark.parametrize(
    ("line", "fits"),
    [
        ("--gres=nvme:2", True),
        ("--gres=nvme:3", False),
        ("--gres=nvme:ssd:1,nvme:1", True),
        ("--gres=nvme:0 -N 2", True),
        ("--gres=nvme -N 2", False),
        ("--gres=nvme:1,gpu:1", False),
        ("--gres=scratch:900M", True),
        ("--gres=scratch:2G", False),
        ("--gres=mystery:9", True),  # perhaps no node reports it
        ("--gres=none", True),
    ],
)
def test_other_generic_resources_are_counted_too(line: str, fits: bool) -> None:
    nodes = (
        Node(name="n1", cpus=8, gres="nvme:2,scratch:no_consume:1G"),
        Node(name="n2", cpus=8, gpus=1, gres="gpu:1"),
    )
    machine = Machine(
        cluster="lab", nodes=nodes, partitions=(Partition(name="p", node_list="n[1-2]", default=True),)
    )
    assert bool(submitted(line, machine=machine).findings) is not fits
    assert not submitted(line.replace("scratch", "other"), machine=replace(machine, nodes=())).findings


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("-C [fast&large]", "count_misplaced"),
        ("-C [fast*2&slow]", "count_misplaced"),
        ("-C [fast*2|slow*1]", "count_misplaced"),
        ("-C [(fast&large)|slow*1]", "count_misplaced"),
        ("-C (fast*2)&large", "count_misplaced"),
        ("-C [fast|slow]&[gpu|large]", "count_misplaced"),
        ("-C [fast*2&slow*1] -N 2", "too_few_such_nodes"),
        ("-C [fast*2&slow*1] -N 1-2", "too_few_such_nodes"),
        ("-C [fast*3&large*1]", "too_few_such_nodes"),
        ("-C [fast*2&slow*1] -c 7", "too_few_such_nodes"),
    ],
)
def test_numbers_of_nodes_stand_for_different_nodes_of_each_feature(line: str, kind: str) -> None:
    """As Slurm 22.05 and 26.05 answered."""
    found = submitted(line, machine=MACHINE).findings
    assert kind in [finding.kind for finding in found if finding.level is Level.CRITICAL]


@pytest.mark.parametrize(
    "line",
    [
        *("-C [fast*2&slow*1] -N 3", "-C [fast*2&slow*1] -N 2-3", "-C [fast*2&large*1]", "-C [fast*2]"),
        *(
            "-C [(fast&large)|slow]",
            "-C [(fast|gpu)*2&slow*1] -N 3",
            "-C slow&[fast|slow]",
            "-C fast*2&large",
        ),
    ],
)
def test_numbers_that_slurm_takes_are_not_critical(line: str) -> None:
    assert not [f for f in submitted(line, machine=MACHINE).findings if f.level is Level.CRITICAL]


def test_the_name_of_a_feature_may_begin_with_a_digit() -> None:
    assert critical("-C fast|2080ti") == ["unknown_feature"]
    renamed = [replace(node, features=("2080ti",)) for node in MACHINE.nodes]
    machine = replace(MACHINE, nodes=tuple(renamed))
    assert not submitted("-C 2080ti -N 4", machine=machine).findings
    assert submitted("-C 2080ti*5", machine=machine).findings


def test_gpus_of_unknown_type_satisfy_every_type() -> None:
    nodes = (Node(name="n1", cpus=8, gpus=2),)
    machine = Machine(
        cluster="lab", nodes=nodes, partitions=(Partition(name="p", node_list="n1", default=True),)
    )
    assert not submitted("--gres=gpu:a100:1", machine=machine).findings


@pytest.mark.parametrize("text", ["(" * 5000 + "fast" + ")" * 5000, "fast&" * 1999, "[" * 9000, "*" * 9000])
def test_a_hostile_constraint_ends_neither_in_an_error_nor_in_a_long_time(text: str) -> None:
    submitted(f"--constraint={text}", machine=MACHINE)
