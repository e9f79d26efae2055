"""The output files of a job are found as sbatch names them."""

from typing import Any

import pytest

from tests.kits.ended_jobs import row
from tocsin.causes.output_files import expanded, output_files


def job(**fields: Any) -> dict[str, Any]:
    return row(17, **{"work_dir": "/home/ann/run", "user": "ann", "name": "cfd", **fields})


def test_without_options_it_is_the_default_in_the_working_folder() -> None:
    assert output_files(job(), None) == ["/home/ann/run/slurm-17.out"]
    assert output_files(job(task=3, raw_id=21), None) == ["/home/ann/run/slurm-17_3.out"]
    assert output_files(job(work_dir=None, command="/home/ann/cfd.sh"), None) == ["/home/ann/slurm-17.out"]
    assert output_files(job(work_dir=None), None) == []
    assert output_files(job(interactive=True), None) == []


def test_directives_name_it_and_the_command_line_overrides_them() -> None:
    script = "#!/bin/bash\n#SBATCH -o logs/%x-%j.out\n#SBATCH --error=/scratch/%u/%j.err\nsrun a\n"
    assert output_files(job(), script) == ["/home/ann/run/logs/cfd-17.out", "/scratch/ann/17.err"]
    line = "sbatch --output=/tmp/o.%j cfd.sh"
    assert output_files(job(submit_line=line), script)[0] == "/tmp/o.17"
    assert output_files(job(submit_line="sbatch -e same -o same x"), "") == ["/home/ann/run/same"]
    assert output_files(job(submit_line="sbatch 'unclosed"), script)[0].endswith("cfd-17.out")


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("%j", "21"), ("%A_%a", "17_3"), ("%5j.%b", "00021.3"), ("%N-%n-%t", "n2-0-0"), ("%%x", "%x"),
        (r"raw\%j", "raw%j"), ("%u@%x", "ann@cfd"), ("%q", "%q"), ("%", "%"), ("%99999j", "%99999j"),
    ],
)  # fmt: skip
def test_signs_are_expanded_as_in_the_manual_of_sbatch(pattern: str, name: str) -> None:
    assert expanded(pattern, job(task=3, raw_id=21, node_list="n[2-4]")) == name
