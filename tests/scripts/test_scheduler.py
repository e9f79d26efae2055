"""Each scheduler's directives are found by that scheduler's own rule."""

import pytest

from tocsin.scripts.scheduler import Scheduler
from tocsin.scripts.script import parse

HEADERS = {
    Scheduler.SLURM: "#SBATCH --time=60",
    Scheduler.PBS: "#PBS -l walltime=1:00:00",
    Scheduler.LSF: "#BSUB -W 1:00",
    Scheduler.GRID_ENGINE: "#$ -l h_rt=3600",
    Scheduler.PJM: '#PJM -L "elapse=1:00:00"',
    Scheduler.FLUX: "# flux: -t 1h",
    Scheduler.COBALT: "#COBALT -t 60",
    Scheduler.OAR: "#OAR -l /nodes=1,walltime=1:00:00",
}
STOP_AT_A_COMMAND = (Scheduler.SLURM, Scheduler.PBS, Scheduler.PJM, Scheduler.COBALT)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "shebang", ["#!/bin/bash", "#!/bin/csh -f", "#!/usr/bin/env python3", "#!/usr/bin/perl"]
)
@pytest.mark.parametrize("scheduler", Scheduler)
def test_an_hour_is_an_hour_everywhere(scheduler: Scheduler, shebang: str, ending: str) -> None:
    script = parse(ending.join([shebang, "", "# a comment", HEADERS[scheduler], "", "run"]))
    assert script.scheduler is scheduler
    assert script.request["time_limit"] == 3600
    assert script.commands == [(6, "run")]


@pytest.mark.parametrize("scheduler", Scheduler)
def test_a_directive_after_the_first_command(scheduler: Scheduler) -> None:
    first = {
        Scheduler.SLURM: "#SBATCH -N 1",
        Scheduler.PBS: "#PBS -N x",
        Scheduler.PJM: "#PJM -S",
        Scheduler.COBALT: "#COBALT -n 1",
        Scheduler.FLUX: "# flux: -N1",
    }.get(scheduler, HEADERS[scheduler])
    script = parse(f"#!/bin/sh\n{first}\nset -e\n{HEADERS[scheduler]}\nrun\n")
    if scheduler in (*STOP_AT_A_COMMAND, Scheduler.FLUX):
        assert "time_limit" not in script.request
        (problem,) = script.problems
        assert problem.line == 4
        assert "after the first command" in problem.text
    else:
        assert script.request["time_limit"] == 3600
        assert not script.problems


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("#SBATCH -t 60", True),
        (" #SBATCH -t 60", False),
        ("# SBATCH -t 60", False),
        ("##SBATCH -t 60", False),
        ("#sbatch -t 60", False),
        ("  #PBS -l walltime=3600", True),
        ("# PBS -l walltime=3600", False),
        ("  # BSUB -W 60", True),
        (" #$ -l h_rt=3600", False),
        ("#$-l h_rt=3600", True),
        ("#$HOME is set", False),
        ("#flux: -t 60", True),
        ("#FLUX: -t 60", True),
        (" #OAR -l walltime=1", False),
        ("#OARS", False),
    ],
)
def test_where_a_directive_may_be(line: str, read: bool) -> None:
    assert ("time_limit" in parse(f"#!/bin/sh\n{line}\nrun\n").request) is read


def test_here_documents_are_left_alone() -> None:
    script = parse(
        "#!/bin/bash\n#SBATCH -N 1\ncat > job.sh <<'EOF'\n#!/bin/bash\n#SBATCH -N 9\n# kept\nrun\nEOF\nsbatch job.sh\n"
    )
    assert script.request == {"req_nodes": 1}
    assert [line for line, _ in script.commands] == [3, 4, 5, 6, 7, 8, 9]
    assert [(p.line, p.text) for p in script.problems] == [
        (5, "#SBATCH is ignored: it is inside a here-document")
    ]


def test_a_shift_is_not_a_here_document() -> None:
    script = parse("#!/bin/bash\n#BSUB -n 1\nx=$((1<<n))\n# note\n#BSUB -W 5\ny=1\n")
    assert script.request["time_limit"] == 300
    assert script.commands == [(3, "x=$((1<<n))"), (6, "y=1")]


def test_a_script_that_writes_scripts_is_known_by_what_it_writes() -> None:
    script = parse("#!/bin/bash\nfor i in 1 2; do\nqsub <<END\n\t#PBS -l ncpus=1\n\trun\nEND\ndone\n")
    assert script.scheduler is Scheduler.PBS
    assert script.request == {}
    assert not script.directives


TWO_HEADERS = "#!/bin/sh\n#PBS -A a\n#PBS -l walltime=1:00:00\n#SBATCH --mem=4G\nrun\n"


def test_the_cluster_decides_which_directives_are_read() -> None:
    assert parse(TWO_HEADERS, scheduler=Scheduler.PBS).request == {"account": "a", "time_limit": 3600}
    script = parse("#!/bin/sh\n#$ -N a\n#$ -l h_rt=60\n#SBATCH -J b\nrun\n", scheduler=Scheduler.SLURM)
    assert script.request == {"name": "b"}
    assert [(problem.line, problem.kind) for problem in script.problems] == [(2, "ignored"), (3, "ignored")]


def test_without_a_cluster_the_scheduler_with_most_valid_lines_is_taken() -> None:
    assert parse(TWO_HEADERS).scheduler is Scheduler.PBS
    assert (
        parse("#!/bin/sh\n#PBS -Z\n#PBS -l walltime=soon\n#SBATCH -J b\nrun\n").scheduler is Scheduler.SLURM
    )


def test_sbatch_reads_the_lines_of_pbs_and_lsf_too() -> None:
    """Seen on 22.05: they override #SBATCH, and a bare walltime is in minutes."""
    script = parse(
        "#!/bin/sh\n#PBS -l nodes=2:ppn=2,walltime=100 -N a\n#SBATCH -J b\nrun\n", scheduler=Scheduler.SLURM
    )
    assert script.request["name"] == "a"
    assert script.request["time_limit"] == 6000
    assert script.request["req_tasks"] == 4
    assert [(problem.line, problem.kind) for problem in script.problems] == [(2, "foreign")]
    ignoring = script.with_options(["sbatch", "--ignore-pbs"])
    assert ignoring.request == {"name": "b"}
    [problem] = parse("#!/bin/sh\n#PBS -N a\nrun\n", scheduler=Scheduler.SLURM).problems
    assert (problem.kind, "overrides" in problem.text) == ("foreign", False)


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("#PBS -l nodes=1,pmem=900gb", {"-l nodes": "1"}),
        ("#PBS -l ncpus=17", {"--mincpus": "17"}),
        ("#PBS -l select=1:ncpus=4:mem=1gb", {"-l select": "1", "--mincpus": "4", "-l select mem": "1gb"}),
        ("#BSUB -M 1000000", {"-M": "1000000K"}),
        ("#BSUB -M 1GB", {"-M": "1GB"}),
    ],
)
def test_sbatch_reads_cpus_and_memory_of_pbs_and_lsf_in_its_own_way(
    line: str, options: dict[str, str]
) -> None:
    """As sbatch 22.05 read them."""
    script = parse(f"#!/bin/sh\n{line}\nrun\n", scheduler=Scheduler.SLURM)
    assert {d.option: d.value for d in script.directives} == options


def test_prose_is_not_a_directive() -> None:
    script = parse("#!/bin/sh\n#PBS and others: see below\n# SBATCH lines follow\n#SBATCH -N 1\nrun\n")
    assert script.scheduler is Scheduler.SLURM
    assert script.request == {"req_nodes": 1}
    assert not script.problems
    assert parse("#!/usr/bin/env python\nimport flux\n# flux: the framework\n").scheduler is None


def test_no_directive_no_scheduler() -> None:
    script = parse("#!/usr/bin/env -S python3.11 -u\nprint('hello')\n")
    assert script.scheduler is None
    assert script.interpreter == "python"
    assert script.request == {}
