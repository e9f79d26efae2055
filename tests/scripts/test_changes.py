"""A change of a request as advice says it: in the script's own words."""

import pytest

from tocsin.scripts.changes import change_edit, change_text
from tocsin.scripts.script import parse
from tocsin.scripts.submission import Submission

GIB = 2**30


def submission(text: str, per: str | None = None) -> Submission:
    return Submission(script=parse(text), fixed=False, memory_per=per)


@pytest.mark.parametrize(
    ("text", "change", "edit"),
    [
        ("#!/bin/sh\n#SBATCH --mem=1G\n", "--mem=32G", "#SBATCH --mem=32G"),
        (
            "#!/bin/sh\n#SBATCH -n 1 -c 4\n#SBATCH --mem-per-cpu=1G\n",
            "--mem-per-cpu=8G",
            "#SBATCH --mem-per-cpu=8G",
        ),
        ("#!/bin/sh\n#$ -pe smp 4\n#$ -l h_vmem=1G\n", "-l h_vmem=8G", "#$ -l h_vmem=8G"),
    ],
)
def test_the_change_and_the_edit_agree(text: str, change: str, edit: str) -> None:
    script = submission(text)
    assert change_text(script, "req_memory", 32 * GIB) == change
    found = change_edit(script, "req_memory", 32 * GIB)
    assert found is not None
    assert found.new == edit


@pytest.mark.parametrize("marker", ["#COBALT -n 1", "#OAR -l nodes=1", "#flux: -N 1"])
def test_a_scheduler_without_the_option_gets_a_description(marker: str) -> None:
    change = change_text(submission(f"#!/bin/sh\n{marker}\n"), "req_memory", 32 * GIB)
    assert "req_memory" not in change
    assert "32G" in change
