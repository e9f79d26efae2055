"""sbatch itself is the judge of which values are refused; it reads its options before it looks for a controller."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tocsin.scripts.script import parse

CONFIG = """ClusterName=lab
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=6
AuthType=auth/none
MessageTimeout=1
CredType=cred/none
GresTypes=gpu
SelectType=select/cons_tres
NodeName=n[1-3] CPUs=4
PartitionName=main Nodes=ALL Default=YES
"""

VALUES = {
    "--mem": "4G 4gb 1T 16000M 0 +1 1.5G .5G 4X 1P 4MiB 16GBs -1 UNLIMITED MaxMemPerNode 4B",
    "--mem-per-cpu": "4G 1.5G x",
    "--tmp": "4G 1.5G",
    "--time": "0 -1 90 1:90 1- 1-00 1-2:3:4 99:99:99 UNLIMITED infinite abc 1.5 1:2:3:4 1-2-3 5m :30 ::3600 1::1",
    "--time-min": "5 foo",
    "--ntasks": "4 +4 0 -1 4k zwei",
    "--cpus-per-task": "1 0 x",
    "--ntasks-per-node": "2 0 x",
    "--threads-per-core": "1 0 x",
    "--nodes": "2 2-4 1k abc 2:ppn=4 2x",
    "--gres": "gpu gpu:2 gpu:a100 gpu:a100:2 gpu:2k gpu:2x gpu:0 none gpu:x:y gpu: gpu:a:b:c :2 2 gpu::2",
    "--gpus": "2 a100 a100:2 x:2,y:3 2k x:y:z a100:x :2",
    "--begin": "now now+1hour now+60 NOW now-1hour tomorrow today noon midnight fika teatime 16:00 16:00:00 010227 "
    "01/02/27 01.02.27 01/02 2027-01-02 2027-01-02T16:00 uts1800000000 garbage now+1x now+1h now+1min 4pm 2027-13-02 "
    "20270102 25:00 16 1600 16:0",
    "--deadline": "foo now+1hour",
    "--mail-type": "END end,fail BEGIN,SOMETHING foo",
    "--open-mode": "append truncate foo",
    "--nope": "1",
    "--hold": "x",
}


TAKEN_FOR_NONE = ("--gpus=", "--mail-type=", "--gres=")
LEFT_TO_SLURMCTLD = ("--gres=:2", "--gres=2", "--gres=gpu::2", "--gpus=:2")
"""Refused by the sbatch of 22.05; by that of 26.05, sent to slurmctld."""


def answer(folder: Path, script: str, *words: str) -> str:
    """What sbatch says of this submission, with a slurmctld that does not answer."""
    (folder / "slurm.conf").write_text(CONFIG)
    path = folder / "job.sh"
    path.write_bytes(script.encode())
    return subprocess.run(
        ["sbatch", "--test-only", *words, path],
        env={**os.environ, "SLURM_CONF": str(folder / "slurm.conf")},
        stdin=subprocess.DEVNULL,
        timeout=60,
        capture_output=True,
        text=True,
        check=False,
    ).stderr


@pytest.mark.usefixtures("sbatch")
def test_what_sbatch_refuses_is_refused_and_nothing_else(tmp_path: Path) -> None:
    words = [f"{option}={value}" for option, values in VALUES.items() for value in ["", *values.split()]]
    words = [word for word in words if word not in TAKEN_FOR_NONE]
    folders = [tmp_path / str(number) for number in range(len(words))]
    for folder in folders:
        folder.mkdir()
    differ = []
    with ThreadPoolExecutor(8) as pool:  # where a value is fine, sbatch waits for a controller
        answers = pool.map(answer, folders, ["#!/bin/sh\n"] * len(words), words)
        for word, errors in zip(words, answers, strict=True):
            problems = parse("#!/bin/sh\n").with_options([word], only_options=True).problems
            sent = "Unable to contact" in errors and word not in LEFT_TO_SLURMCTLD
            if sent is any(problem.kind == "refused" for problem in problems):
                differ.append((word, errors, problems))
    assert differ == []


@pytest.mark.usefixtures("sbatch")
@pytest.mark.parametrize(
    "text",
    ["", " \n\n", "run\n", "\n#!/bin/sh\n", "#!/bin/sh\r\nrun\r\n", "#!/bin/sh\n", "#! /bin/sh\nrun\n"],
)
def test_a_script_that_sbatch_refuses_is_reported_as_refused(tmp_path: Path, text: str) -> None:
    refused = any(problem.kind == "script" for problem in parse(text).problems)
    assert ("Unable to contact" not in answer(tmp_path, text)) is refused
