"""How many tasks fit on nodes with several threads per core, and with limits per core, socket and GPU; tried with sbatch."""

from dataclasses import replace

import pytest

from tests.limits.examples import GIB, HOUR, submitted
from tocsin.core.machine import Machine, Node, Partition
from tocsin.core.verdict import Level

_SHAPE = {"sockets": 2, "cores_per_socket": 4, "threads_per_core": 2, "cpus": 16, "memory": 32 * GIB}
_NAMES = {"main": "c[1-3]", "one": "c[1-3]", "whole": "c[1-3]", "lean": "c[1-3]", "gpu": "g[1-2]"}
MACHINE = Machine(
    cluster="lab",
    release=(22, 5),
    nodes=(
        *(Node(name=f"c{i}", features=("ib",), state="IDLE", **_SHAPE) for i in (1, 2)),
        Node(
            name="c3", cpus=8, memory=8 * GIB, sockets=1, cores_per_socket=4, threads_per_core=2, state="IDLE"
        ),
        *(Node(name=f"g{i}", gpus=2, gres="gpu:2", state="IDLE", **_SHAPE) for i in (1, 2)),
    ),
    partitions=tuple(
        Partition(
            name=name,
            node_list=nodes,
            state="UP",
            default=name == "main",
            max_time=24 * HOUR,
            max_nodes=1 if name == "one" else None,
            whole_nodes=name == "whole",
            max_memory_per_node=4 * GIB if name == "lean" else None,
        )
        for name, nodes in _NAMES.items()
    ),
)
NEWEST = replace(MACHINE, release=(26, 5))


def is_impossible(line: str, machine: Machine = MACHINE) -> bool:
    return any(finding.level is Level.CRITICAL for finding in submitted(line, machine=machine).findings)


@pytest.mark.parametrize(
    ("impossible", "possible"),
    [
        ("-n 33 -N 1-2", "-n 32 -N 1-2"),
        ("-n 3 -c 9 -N 1-2", "-n 2 -c 9 -N 1-2"),
        ("-c 9 --hint=nomultithread", "-c 8 --hint=nomultithread"),
        ("-n 9 -N 1 --threads-per-core=1", "-n 8 -N 1 --threads-per-core=1"),
        ("-n 9 -N 1 -B 2:4:1", "-n 9 -N 1 -B 2:4:2"),
        ("-n 9 -N 1 --hint=compute_bound", "-n 9 -N 1 --hint=compute_bound --threads-per-core=2"),
        ("-n 16 -N 1 --ntasks-per-core=1", "-n 16 -N 1 --ntasks-per-core=2"),
        ("-n 9 -N 1 --ntasks-per-socket=3", "-n 8 -N 1 --ntasks-per-socket=3"),
        ("-N 1 --ntasks-per-node=3 --ntasks-per-socket=1", "-N 1 --ntasks-per-node=2 --ntasks-per-socket=1"),
        (
            "-p gpu -n 9 --gpus-per-node=2 --ntasks-per-gpu=2",
            "-p gpu -n 8 --gpus-per-node=2 --ntasks-per-gpu=2",
        ),
        ("-p gpu -c 9 --gres=gpu:1 --ntasks-per-gpu=2", "-p gpu -c 8 --gres=gpu:1 --ntasks-per-gpu=2"),
        ("-p gpu --gpus=4 --gres=gpu:1", "-p gpu --gpus=2 --gres=gpu:1"),
        ("-p whole --mem-per-cpu=2049", "-p whole --mem-per-cpu=2048"),
        (
            "-p whole --mem-per-cpu=4097 --hint=nomultithread",
            "-p whole --mem-per-cpu=4096 --hint=nomultithread",
        ),
        ("-p lean --mem=0", "-p main --mem=0"),
        ("-p one -C ib*2", "-C ib*2"),
    ],
)
@pytest.mark.parametrize("machine", [MACHINE, NEWEST])
def test_a_node_takes_as_many_tasks_as_slurm_puts_there(
    impossible: str, possible: str, machine: Machine
) -> None:
    assert is_impossible(impossible, machine)
    if (
        possible != "-n 8 -N 1 --ntasks-per-socket=3" or machine is MACHINE
    ):  # 26.05 counts tasks, not CPUs of cores
        assert not is_impossible(possible, machine)


@pytest.mark.parametrize("line", ["-n 1 -c 9 -w c[1,3]", "-N 1 -c 9 -w c[1,3]", "-N 1-2 -c 9 -w c[1,3]"])
def test_newer_releases_use_some_of_the_listed_nodes(line: str) -> None:
    assert not is_impossible(line, NEWEST)
    assert "-N 1 " in line or not is_impossible(line, replace(MACHINE, release=None))
    assert is_impossible(line.replace("-c 9", "-c 17"), NEWEST)
    assert is_impossible("-c 9 -w c[1,3]", NEWEST)
    assert not is_impossible("-n 1 -w c1,g1", NEWEST)
    assert not is_impossible("-n 1 -w c[1-2] -x c1", NEWEST)
    assert is_impossible("-w c[1-2] -x c1", NEWEST)
    assert is_impossible("-n 1 -w c1,c9", NEWEST)
    assert is_impossible("-n 2 -w c1,g1", NEWEST)


def test_newer_releases_count_tasks_for_features_with_a_number() -> None:
    for line in ("-n 1 -C ib*2", "--ntasks-per-node=2 -C ib*2"):
        assert is_impossible(line, NEWEST)
        assert not is_impossible(line)
