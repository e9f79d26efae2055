"""A real Slurm decides: what it refuses or never starts is critical, and what it takes is not."""

from bench.refusals import agreement, answers, lab, machine_of, requests

from tests.conftest import unavailable
from tests.services import missing

MORE = (
    *("-n 8 --mem-per-cpu=1900M", "-n 8 --mem-per-cpu=8100M", "-n 4 --ntasks-per-node=4", "-N 1 -n 9"),
    *("-n 4 --ntasks-per-node=1 -c 2", "-N 2 -n 5 --ntasks-per-node=2", "-N 2 -n 3 --ntasks-per-node=1"),
    *(
        "-N 2 -n 1",
        "-n 8 --mem=9000",
        "-N 2 --gres=gpu:1",
        "-N 2 --gpus=2",
        "-n 2 --gpus-per-task=2",
        "-n 4 --gpus=2",
    ),
    *("-p short -t 6", "-p short,main -t 10", "-p short -N 2", "-p short,main -N 2", "-p two -N 1"),
    *(
        "-p two -N 2 --mem=1001",
        "-p two -N 2 --mem=1000",
        "-p narrow -n 3",
        "-p narrow -c 2",
        "-p narrow -N 1 -n 2",
    ),
    *(
        "-p thin --mem=900",
        "-p thin --mem=5000",
        "-w n1,n2 -N 1",
        "-n 4 -w n1",
        "-x n[1-3] -N 2",
        "-x n[1-3]",
    ),
    *("--gres=gpu:3,gpu:1", "--gres=gpu:1,gpu:3", "--gres=gpu=1", "--gpus-per-task=1 -N 1-2", "-N 2,4 -N 2"),
    *(
        "--exclusive --mem-per-cpu=2G",
        "--exclusive --mem-per-cpu=2000",
        "--exclusive --mem-per-cpu=2001 -w n1",
    ),
    *("-p booked", "-p booked --reservation=ours", "--qos=booked", "--qos=any -p limited -t 6 -N 2 -n 2"),
    *(
        "-p strict -n 5",
        "-p strict -n 4",
        "-p strict -t 31",
        "-p strict -n 5 --qos=over",
        "-p strict --qos=over -n 9",
    ),
    *(
        "--qos=least",
        "--qos=least -n 4",
        "--qos=each -c 3",
    ),
    *(
        "--qos=each -N 2 -n 4",
        "--qos=each -N 2 -n 5",
        "--qos=each -N 2 -n 6",
        "--qos=minutes -t 31 -n 2",
        "--qos=minutes -t 30 -n 2",
    ),
    *(
        "--qos=small -n 2 --ntasks-per-node=4",
        "--qos=each -n 2 --ntasks-per-node=3",
        "--qos=minutes -n 2 --ntasks-per-node=8 -t 10",
        "--qos=least -n 2 --ntasks-per-node=4",
        "--qos=small -n 2 --ntasks-per-node=4 -O",
        "--qos=small -n 2 --mincpus=8",
    ),
    *(
        "-p two --qos=small",
        "-p two --qos=minutes -t 31",
        "-p two --qos=minutes -t 30",
        "-n 2 --ntasks-per-node=8 --mem-per-cpu=2000",
        "-n 2 --ntasks-per-node=4 --mem-per-cpu=2000",
        "-n 1 --ntasks-per-node=2 --cpus-per-gpu=2 --gpus=1",
        "-p short -t 3 -N 1-2",
        "-p short -t 3 -N 1-2 -n 1",
        "-p short -t 3 -N 1-2 --gpus=1",
        "-N 2 -n 1 --gres=gpu:2",
    ),
    *("-C !fast", "-C ((fast))", "-C (fast)", "--partition="),
)


def test_critical_is_what_slurm_refuses_or_never_starts() -> None:
    if sentence := missing("slurm"):
        unavailable(sentence)
    with lab() as slurm:
        found = agreement(machine_of(slurm), answers(slurm, [*requests(220), *MORE]))
    assert found["false_refusals"] == []
    assert found["missed"] == []
