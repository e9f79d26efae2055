"""CPUs on each node that are not those of its tasks, as Slurm 22.05, 24.11 and 26.05 answered."""

from dataclasses import replace

import pytest

from tests.limits.examples import GIB, submitted
from tocsin.core.machine import Association, Machine, Node, Partition, Qos
from tocsin.core.verdict import Level

OLDER = Machine(
    cluster="lab",
    release=(22, 5),
    cpus_by="core",
    nodes=(
        Node(name="n1", cpus=2, sockets=1, cores_per_socket=2, threads_per_core=1, memory=4 * GIB, gpus=2),
        *(
            Node(name=name, cpus=8, sockets=2, cores_per_socket=4, threads_per_core=1, memory=8 * GIB)
            for name in ("n2", "n3")
        ),
    ),
    partitions=(
        Partition(name="main", node_list="n[1-3]", nodes=3, state="UP", default=True, whole_nodes=False),
        Partition(name="whole", node_list="n[1-3]", nodes=3, state="UP", whole_nodes=True),
        Partition(name="two", node_list="n[1-3]", nodes=3, state="UP", min_nodes=2),
        Partition(name="narrow", node_list="n[1-3]", nodes=3, state="UP", max_cpus_per_node=1),
        Partition(name="thin", node_list="n[1-3]", nodes=3, state="UP", max_memory_per_cpu=GIB // 2),
    ),
    associations=(Association(account="physics"),),
    qos={
        "small": Qos(max_tres={"cpu": 2, "node": 1, "mem": GIB}),
        "each": Qos(max_tres_per_node={"cpu": 2}),
        "minutes": Qos(max_tres_minutes={"cpu": 60}),
        "least": Qos(min_tres={"cpu": 4}),
    },
)
BETWEEN = replace(OLDER, release=(24, 11))
NEWER = replace(OLDER, release=(26, 5))


def critical(line: str, machine: Machine) -> list[str]:
    found = submitted(f"-A physics {line}", machine=machine).findings
    return [finding.kind for finding in found if finding.level is Level.CRITICAL]


@pytest.mark.parametrize("machine", [OLDER, NEWER])
@pytest.mark.parametrize(
    "line",
    [
        "-n 2 --ntasks-per-node=4 --qos=small",
        "-n 2 --ntasks-per-node=3 --qos=each",
        "-n 2 --ntasks-per-node=8 --qos=minutes -t 10",
        "--mincpus=4 --qos=small",
        "--mincpus=2 --mem-per-cpu=600 --qos=small",
        "-p two -n 1 --qos=small",
        "-p two --qos=minutes -t 31",
    ],
)
def test_limits_count_the_cpus_of_all_tasks_that_a_node_may_have(line: str, machine: Machine) -> None:
    assert critical(line, machine)


@pytest.mark.parametrize(
    "line",
    [
        "-n 2 --ntasks-per-node=2 --qos=small",
        "-n 2 --ntasks-per-node=4 -O --qos=small",
        "-n 2 --ntasks-per-node=4 --qos=least",
        "-p thin --mincpus=4 --mem-per-cpu=600 --qos=small",
        "-p two --qos=minutes -t 30",
    ],
)
@pytest.mark.parametrize("machine", [OLDER, NEWER])
def test_limits_do_not_count_cpus_that_tasks_share_or_slurm_replaces(line: str, machine: Machine) -> None:
    assert critical(line, machine) == []


def test_with_a_number_of_tasks_mincpus_gives_no_cpus_on_newer_releases() -> None:
    assert critical("-n 2 --mincpus=8 --qos=small", OLDER)
    for machine in (BETWEEN, NEWER):
        assert critical("-n 2 --mincpus=8 --qos=small", machine) == []


@pytest.mark.parametrize(
    "line",
    [
        "--qos=small -n 2 --ntasks-per-node=4",
        "--qos=small -n 2 --ntasks-per-node=4 -N 1",
        "--qos=small -n 2 --ntasks-per-node=4 -N 1-2",
        "--qos=small -n 1 --mincpus=4",
        "--qos=each -n 2 --ntasks-per-node=3",
        "--qos=each -n 1 --mincpus=3",
        "--qos=minutes -n 2 --ntasks-per-node=8 -t 10",
        "--qos=small --mincpus=2 --mem-per-cpu=600",
        "--qos=least --mincpus=4",
    ],
)
def test_on_24_11_limits_count_the_tasks_and_not_what_a_node_may_have(line: str) -> None:
    """So it is taken, too, where the release is unknown or was not compared."""
    for release in ((24, 11), (23, 11), None):
        assert critical(line, replace(OLDER, release=release)) == []


@pytest.mark.parametrize(
    "line",
    [
        "--qos=small -n 3 --ntasks-per-node=4",
        "--qos=small --ntasks-per-node=4",
        "--qos=small -c 2 --ntasks-per-node=2",
        "--qos=small --mincpus=4",
        "--qos=small --cpus-per-gpu=4 --gpus=1 -n 1",
        "--qos=small -n 2 --mem-per-cpu=600",
        "--qos=each --ntasks-per-node=3",
        "--qos=each --mincpus=3",
        "--qos=minutes --ntasks-per-node=7 -t 10",
        "--qos=minutes --mincpus=8 -t 10",
        "-p two --qos=small",
        "-n 1 --ntasks-per-node=8 --mem-per-cpu=2000",
        "-n 2 --mincpus=8 --mem-per-cpu=1100",
    ],
)
def test_on_24_11_all_other_cpus_still_count(line: str) -> None:
    assert critical(line, BETWEEN)


@pytest.mark.parametrize("line", ["--qos=least -n 2 --ntasks-per-node=4", "--qos=least -n 1 --mincpus=4"])
def test_on_24_11_they_do_not_make_up_for_too_few_tasks(line: str) -> None:
    assert critical(line, BETWEEN) == ["resources_below_account"]
    assert critical(line, replace(OLDER, release=(23, 11))) == []


@pytest.mark.parametrize(
    "line",
    [
        "-n 4 -c 2 -O -N 2",
        "-n 3 -c 2 -O -N 2",
        "-c 2 -O --ntasks-per-node=2",
        "-N 2 -c 2 -O --ntasks-per-node=2",
        "-n 2 -c 2 -O",
        "-n 4 -c 3 -O -N 1",
    ],
)
def test_24_11_never_starts_tasks_that_share_too_few_cpus(line: str) -> None:
    assert critical(line, BETWEEN) == ["tasks_without_cpus"]


@pytest.mark.parametrize(
    "line",
    [
        "-n 1 --ntasks-per-node=2",
        "-n 1 -c 2 -O --ntasks-per-node=4",
        "-n 1 -c 2 -O",
        "-n 2 -c 2 -O -N 2 --ntasks-per-node=2",
        "-n 2 -c 2 -O -N 1-2",
        "-n 2 -c 2 -O --spread-job",
        "-n 3 -c 2 -O --mincpus=6",
        "-n 2 -c 2 -O -w n1,n2",
        "-n 2 -c 2 -O -p two",
        "-n 2 -c 2 -O -B 2:4",
        "-n 2 -c 2 -O --ntasks-per-node=1",
        "--ntasks-per-node=2 --mincpus=3 -p thin --mem-per-cpu=600",
        "-n 2 -c 2 -O -p thin --mem-per-cpu=600",
        "-N 2 -c 2 -O",
        "-n 4 -O",
    ],
)
def test_24_11_starts_tasks_that_share_enough(line: str) -> None:
    assert critical(line, BETWEEN) == []


@pytest.mark.parametrize("machine", [OLDER, NEWER])
@pytest.mark.parametrize(
    "line",
    [
        "--mincpus=8 --mem-per-cpu=1100",
        "-n 2 --ntasks-per-node=8 --mem-per-cpu=2000",
        "-n 6 -N 1 --mem-per-cpu=1500",
    ],
)
def test_memory_per_cpu_counts_for_every_cpu_of_the_job_on_a_node(line: str, machine: Machine) -> None:
    assert critical(line, machine)
    assert critical(line.replace("-cpu=", "-cpu=1 --comment="), machine) == []


@pytest.mark.parametrize("machine", [OLDER, NEWER])
def test_a_whole_node_has_too_many_cpus_for_a_partition_that_gives_fewer(machine: Machine) -> None:
    assert critical("-p narrow --exclusive", machine)
    assert critical("-p narrow", machine) == []


@pytest.mark.parametrize(
    "line",
    [
        "-n 1 --ntasks-per-node=2",
        "-n 1 -N 1 --ntasks-per-node=2 --qos=small",
        "-n 1 -c 2 -O --ntasks-per-node=2",
        "-n 4 -c 2 -O -N 2",
        "-c 2 -O --ntasks-per-node=2",
    ],
)
def test_the_newest_release_never_starts_tasks_without_cpus(line: str) -> None:
    """It waits for resources while all nodes are idle."""
    assert critical(line, NEWER) == ["tasks_without_cpus"]
    assert critical(line, OLDER) == []


@pytest.mark.parametrize(
    "line",
    [
        "-n 1 --ntasks-per-node=8 --exclusive",
        "-n 1 --ntasks-per-node=8 -p whole",
        "-n 1 --ntasks-per-node=8 -O",
        "-n 1 --ntasks-per-node=4 --mincpus=4",
        "-n 1 -c 2 --ntasks-per-node=2 --mincpus=4",
        "-n 1 --ntasks-per-node=1",
        "-n 2 --ntasks-per-node=8",
        "-N 1 --ntasks-per-node=2",
        "-n 1 -c 2 -O",
        "-n 2 -c 2 -O -N 2",
        "-n 2 -c 2 -O --spread-job",
    ],
)
def test_it_starts_one_task_of_several_that_gets_cpus_for_all_of_them(line: str) -> None:
    assert critical(line, NEWER) == []


@pytest.mark.parametrize(
    "line",
    [
        "--ntasks-per-node=2 --mincpus=3",
        "-n 1 --ntasks-per-node=1 --mincpus=2",
        "--mincpus=2 -p narrow",
        "-n 2 --ntasks-per-socket=1 --mincpus=8",
    ],
)
def test_newer_releases_give_no_cpus_that_the_tasks_of_a_node_cannot_use(line: str) -> None:
    for machine in (BETWEEN, NEWER):
        assert critical(line, machine) == ["too_few_such_nodes"]
    assert critical(line, OLDER) == []


@pytest.mark.parametrize(
    "line",
    [
        "--ntasks-per-node=2 --mincpus=2",
        "--ntasks-per-node=2 --mincpus=8 --exclusive",
        "-n 1 --mincpus=2 -p narrow",
        "--mincpus=2 -p narrow --spread-job",
        "--ntasks-per-core=1 --mincpus=8",
    ],
)
def test_they_give_those_that_they_can_use(line: str) -> None:
    assert critical(line, NEWER) == []
    if "--spread-job" not in line:  # 24.11 does not start it
        assert critical(line, BETWEEN) == []


@pytest.mark.parametrize("more", ["--exclusive", "-O", "-p whole"])
def test_the_newest_release_puts_all_tasks_on_one_node_that_is_the_jobs_alone(more: str) -> None:
    assert critical("-N 1 -n 2 --ntasks-per-node=1 --gpus=1 --cpus-per-gpu=2", NEWER) == []
    line = f"-N 1 -n 4 --ntasks-per-node=2 {more}"
    assert critical(line, NEWER) == []
    assert critical(line, OLDER)
    assert critical("-N 1 -n 4 --ntasks-per-node=2", NEWER) == ["too_few_such_nodes"]
    assert critical(f"-N 2 -n 5 --ntasks-per-node=2 {more}", NEWER)


def test_the_newest_release_starts_the_tasks_of_the_gpus_for_no_number_of_nodes() -> None:
    for nodes in ("0", "00", "+0"):
        assert critical(f"-N {nodes} -n 99 --gpus=1 --ntasks-per-gpu=1", NEWER) == []
    assert critical("-N 0 -n 99 --gpus=1 --ntasks-per-gpu=99", NEWER)
    assert critical("-N 0 -n 99 --gpus=1", NEWER)
    assert critical("-n 99 --gpus=1 --ntasks-per-gpu=1", NEWER)


def test_one_task_shares_the_cpus_of_its_gpus() -> None:
    assert critical("-n 1 --ntasks-per-node=2 --cpus-per-gpu=2 --gpus=1", OLDER) == []


@pytest.mark.parametrize("machine", [OLDER, NEWER])
def test_a_range_of_nodes_must_not_end_beyond_the_partitions_limit(machine: Machine) -> None:
    short = replace(machine.partitions[0], name="short", max_nodes=1)
    machine = replace(machine, partitions=(*machine.partitions, short))
    assert critical("-p short -N 1-2", machine) == ["nodes_above_partition"]
    assert critical("-p short -N 1-2 -n 2", machine) == ["nodes_above_partition"]
    for accepted in ("-p short -N 1-2 -n 1", "-p short -N 1-2 --gpus=1", "-p short,main -N 1-2", "-N 1-9"):
        assert critical(accepted, machine) == []


@pytest.mark.parametrize("machine", [OLDER, NEWER])
def test_gpus_per_node_count_on_as_many_nodes_as_there_are_tasks(machine: Machine) -> None:
    assert critical("-N 2 -n 1 --gres=gpu:2", machine) == []
    assert critical("-N 2 -n 1 --gpus-per-node=2", machine) == []
    assert critical("-N 2 -n 2 --gres=gpu:2", machine)
    assert critical("-N 2 -n 1 --gpus=3", machine)
