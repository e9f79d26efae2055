"""Real things: the public scripts, and sbatch itself as judge of what it would read."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from bench.scripts import run

from tests.scripts.test_requests import CASES
from tocsin.core.units import parse_duration, parse_memory
from tocsin.scripts.script import parse


def test_every_public_script_is_read_and_its_scheduler_known(data: Path) -> None:
    result = run(data)
    assert result["scripts"] == 20230
    assert result["accuracy_with_header"] >= 0.99
    assert {key.split(">")[1] for key in result["confusion"]} >= {
        "slurm",
        "pbs",
        "lsf",
        "sge",
        "cobalt",
        "oar",
        "pjm",
    }


HEADERS = [header for header, _ in CASES if header.startswith("#SBATCH") and "gpu" not in header]
ODD = ["#SBATCH --job dock \\", " #SBATCH -N 2", "#SBATCH --tasks=4", "#SBATCH -t10#x", "#SBATCH -t 5\nset -e\n#SBATCH -t 9",
       "# x\n\n#SBATCH -c2\n  # y\n#SBATCH -N3", "#SBATCH --job-name=\"a'b\" -p 'c\"d'", "#SBATCH -J a\\ -p b", "#SBATCH -J 'a\\'b' -p c"]  # fmt: skip


@pytest.mark.usefixtures("sbatch")
@pytest.mark.parametrize("header", HEADERS + ODD)
def test_sbatch_reads_the_same(header: str, tmp_path: Path) -> None:
    """With a controller that is not there, sbatch -v still prints the options that it found; nothing is submitted."""
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=none\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort=1\nMessageTimeout=1\n"
        "NodeName=localhost\nPartitionName=p Nodes=localhost\n"
    )
    text = f"#!/bin/sh\n{header}\ntrue\n"
    environment = {**os.environ, "SLURM_CONF": str(tmp_path / "slurm.conf")}
    ran = subprocess.run(
        ["timeout", "5", "sbatch", "-v", "--test-only"], input=text, capture_output=True, text=True, env=environment,
        cwd=tmp_path,
    )  # fmt: skip
    if "\\ " in header and "Invalid directive" in ran.stderr:
        return  # 26.05 takes an escaped blank for part of a word, and refuses the word that is left over
    assert "end of defined options" in ran.stderr
    theirs = dict(re.findall(r"^sbatch: ([a-z-]+) +: (.*)$", ran.stderr, re.MULTILINE))
    ours = parse(text).request
    told = {
        "time_limit": parse_duration(theirs.get("time", "")),
        "req_memory": parse_memory(theirs.get("mem", "").rstrip("?"), unit="M"),
        "cpus_per_task": theirs.get("cpus-per-task"),
        "tasks_per_node": theirs.get("ntasks-per-node"),
        "name": theirs.get("job-name"),
        "partition": theirs.get("partition"),
        "array": theirs.get("array"),
        "account": theirs.get("account"),
        "exclude_nodes": theirs.get("exclude"),
        "qos": theirs.get("qos"),
        "req_nodes": theirs["nodes"].split("-")[0] if "nodes" in theirs else None,
    }
    if "mem-per-cpu" in theirs:
        del told["req_memory"]  # converted here, as given there
    assert {name: str(value) for name, value in told.items() if value is not None} == {
        name: str(value) for name, value in ours.items() if name in told
    }
