"""What a header asks for, in a Job's fields and units."""

import time
from zoneinfo import ZoneInfo

import pytest

from tocsin.core.fields import FIELDS, Part
from tocsin.core.units import UNLIMITED
from tocsin.scripts.script import parse, to_json

MB, GB = 1024**2, 1024**3

CASES: list[tuple[str, dict[str, object]]] = [
    # Slurm
    ("#SBATCH -t 1-02:03:04", {"time_limit": 93840}),  # rounded up to minutes
    ("#SBATCH --time=90", {"time_limit": 5400}),
    ("#SBATCH --time 0", {"time_limit": UNLIMITED}),
    ("#SBATCH --time=UNLIMITED --time-min=10", {"time_limit": UNLIMITED, "time_min": 600}),
    ("#SBATCH --mem=32GB", {"req_memory": 32 * GB}),
    ("#SBATCH --mem=4000", {"req_memory": 4000 * MB}),
    ("#SBATCH --mem=0", {"req_memory": 0}),
    ("#SBATCH -N2 -n8 -c 4", {"req_nodes": 2, "req_tasks": 8, "cpus_per_task": 4, "req_cpus": 32}),
    ("#SBATCH --nodes=2-4", {"req_nodes": 2}),
    (
        "#SBATCH --nodes=2 --ntasks-per-node=4 --mem-per-cpu=2G",
        {"req_nodes": 2, "tasks_per_node": 4, "req_tasks": 8, "req_cpus": 8, "req_memory": 8 * GB},
    ),
    ("#SBATCH --mem-per-cpu=2G", {"req_memory": 2 * GB}),
    ("#SBATCH -c 8 --mem-per-cpu=2G", {"cpus_per_task": 8, "req_cpus": 8, "req_memory": 16 * GB}),
    ("#SBATCH -N 2 --gres=gpu:a100:4", {"req_nodes": 2, "req_gres": "gpu:a100:4", "req_gpus": 8}),
    ("#SBATCH --gres=gpu", {"req_gres": "gpu", "req_gpus": 1}),
    ("#SBATCH --gres=gpu:v100", {"req_gres": "gpu:v100", "req_gpus": 1}),
    ("#SBATCH --gpus=a100:3 --mem-per-gpu=10G", {"req_gpus": 3, "req_memory": 30 * GB}),
    ("#SBATCH -n 4 --gpus-per-task=2", {"req_tasks": 4, "req_cpus": 4, "req_gpus": 8}),
    ("#SBATCH --array=1-9%2", {"array": "1-9%2", "array_tasks": 9}),
    ("#SBATCH -J 'two words' # why", {"name": "two words"}),
    ('#SBATCH --job-name="a" -p"gpu"', {"name": "a", "partition": "gpu"}),
    ("#SBATCH --job-name=a#b", {"name": "a"}),
    ("#SBATCH --exclusive --no-requeue", {"exclusive": True, "requeue": False}),
    ("#SBATCH --exclusive=user", {}),
    ("#SBATCH -d afterok:12:13 -x n[1-3] -w n7", {
        "dependency": "afterok:12:13", "exclude_nodes": "n[1-3]", "req_node_list": "n7"}),
    ("#SBATCH -HQ -A acct -q high -C 'a&b' -L x:2 --reservation=r -D /work", {
        "account": "acct", "qos": "high", "constraints": "a&b", "licenses": "x:2", "reservation": "r",
        "work_dir": "/work"}),
    ("#SBATCH --cpus-per-t=2", {"cpus_per_task": 2, "req_cpus": 2}),  # getopt takes a unique beginning
    ("#SBATCH --time=1:00:00\n#SBATCH --time=2:00:00", {"time_limit": 7200}),
    ("#SBATCH --gpus=8 --cpus-per-gpu=4", {"req_gpus": 8, "req_cpus": 32}),
    ("#SBATCH --tres-per-task=cpu:4,gres/gpu:1 -n 8", {
        "req_tasks": 8, "cpus_per_task": 4, "req_cpus": 32, "req_gpus": 8}),
    ("#SBATCH --tres-per-task=cpu=4,gres/gpu:a100=1 -n 8", {
        "req_tasks": 8, "cpus_per_task": 4, "req_cpus": 32, "req_gpus": 8}),
    ("#SBATCH --gres=gpu:2\n#SBATCH --gres=nvme:10", {"req_gres": "nvme:10"}),
    ("#SBATCH --nodes=1k --time=1-", {"req_nodes": 1024, "time_limit": 86400}),
    ("#SBATCH --priority=TOP --mail-type=END,SOMETHING", {}),
    # PBS
    ("#PBS -l select=2:ncpus=4:mem=8gb:ngpus=1,walltime=1:00:00", {
        "req_nodes": 2, "req_tasks": 2, "req_cpus": 8, "req_memory": 8 * GB, "req_gpus": 2, "time_limit": 3600}),
    ("#PBS -l select=1:ncpus=4:mem=8gb+2:ncpus=2:mem=1gb", {
        "req_nodes": 3, "req_tasks": 3, "req_cpus": 8, "req_memory": 8 * GB}),
    ("#PBS -l select=1:ncpus=4:mpiprocs=4+2:ncpus=2", {"req_nodes": 3, "req_tasks": 6, "req_cpus": 8}),
    ("#PBS -l nodes=2:ppn=8:gpus=4\n#PBS -l nodes=1:ppn=4", {"req_nodes": 1, "req_cpus": 4}),
    ("#PBS -l nodes=2:ppn=8,mem=32gb -N x -q long@srv", {
        "req_nodes": 2, "req_cpus": 16, "req_memory": 16 * GB, "name": "x", "partition": "long"}),
    ("#PBS -lnodes=n01:ppn=4+n02:ppn=4", {"req_nodes": 2, "req_cpus": 8, "req_node_list": "n01,n02"}),
    ("#PBS -l nodes=1:ppn=4,pmem=2000mb", {"req_nodes": 1, "req_cpus": 4, "req_memory": 8000 * MB}),
    ("#PBS -l walltime=90", {"time_limit": 90}),
    ("#PBS -l mem=1000", {"req_memory": 1000}),
    ("#PBS -t [0-9]%2", {"array": "0-9%2", "array_tasks": 10}),
    ("#PBS -J 1-10:3 -r n -I", {"array": "1-10:3", "array_tasks": 4, "requeue": False, "interactive": True}),
    ("#PBS -W depend=afterok:1.srv -l place=scatter:excl", {"dependency": "afterok:1.srv", "exclusive": True}),
    ("#PBS -l select=1:ncpus=2 \\\n#PBS -l walltime=60", {
        "req_nodes": 1, "req_tasks": 1, "req_cpus": 2, "time_limit": 60}),
    # LSF
    ("#BSUB -W 1:30 -n 8 -R 'span[ptile=4]'", {
        "time_limit": 5400, "req_tasks": 8, "req_cpus": 8, "tasks_per_node": 4, "req_nodes": 2}),
    ("#BSUB -W 90", {"time_limit": 5400}),
    ("#BSUB -M 4194304", {"req_memory": 4 * GB}),
    ("#BSUB -M16GB", {"req_memory": 16 * GB}),
    ('#BSUB -R "rusage[mem=4000] span[hosts=1]"', {"req_memory": 4000 * MB, "req_nodes": 1}),
    ('#BSUB -R "select[ncpus>4 && mem>8000] rusage[mem=8GB:ngpus_excl_p=2]"', {
        "constraints": "ncpus>4 && mem>8000", "req_memory": 8 * GB, "req_gpus": 2}),
    ('#BSUB -nnodes 2 -gpu "num=4:mode=shared"', {"req_nodes": 2, "req_gpus": 8}),
    ('#BSUB -J "sweep[1-10:2]%3"', {"name": "sweep", "array": "1-10:2", "array_tasks": 5}),
    ("#BSUB -x -q normal -P proj -r", {
        "exclusive": True, "partition": "normal", "account": "proj", "requeue": True}),
    ('#BSUB -R "select[a] \\\nrusage[mem=1GB]"', {"constraints": "a", "req_memory": GB}),
    # Grid Engine
    ("#$ -l h_vmem=2.5G,h_rt=1::1", {"req_memory": 5 * GB // 2, "time_limit": 3601}),
    ("#$ -l h_rt=::3600", {"time_limit": 3600}),
    # OAR, PJM and Flux
    ("#OAR -l /nodes=2+{gpu>0}/nodes=1/gpu=2", {"req_nodes": 3, "req_gpus": 2}),
    ("#OAR -l /nodes=2/core=4+/nodes=1/core=2,walltime=1:0:0", {
        "req_nodes": 3, "req_cpus": 10, "time_limit": 3600}),
    ("#PJM -L elapse=00:10:00-01:00:00", {"time_limit": 3600, "time_min": 600}),
    ('#PJM --bulk --sparam "sd=0-9"', {"array": "0-9", "array_tasks": 10}),
    ('# flux: --conf="""\n# flux: [a]\n# flux: -N = "9" # no\n# flux: """\n# flux: -N 2', {"req_nodes": 2}),
    ("#$ -pe smp 4 -l h_vmem=2G,h_rt=1:00:00", {
        "req_cpus": 4, "req_nodes": 1, "req_memory": 8 * GB, "time_limit": 3600}),
    ("#$ -pe mpi 64 -l h_vmem=2G", {"req_cpus": 64}),  # over how many nodes is not known
    ("#$ -l h_vmem=2g -l h_rt=7200", {"req_memory": 2 * 10**9, "time_limit": 7200}),
    ("#$ -t 1-10:2 -tc 4 -N job -q all.q@n1 -cwd -j y", {
        "array": "1-10:2", "array_tasks": 5, "name": "job", "partition": "all.q"}),
    ("#$ -l gpu=2 -P proj -hold_jid 12 -r y", {
        "req_gpus": 2, "account": "proj", "dependency": "12", "requeue": True}),
    # PJM
    ('#PJM -L "node=2x3x2:torus,elapse=1:00:00,rscgrp=small" --mpi "max-proc-per-node=4" -g grp', {
        "req_nodes": 12, "time_limit": 3600, "partition": "small", "tasks_per_node": 4, "req_tasks": 48,
        "account": "grp"}),
    ('#PJM --bulk --sparam "0-9" -N n -L node-mem=28Gi', {
        "array": "0-9", "array_tasks": 10, "name": "n", "req_memory": 28 * GB}),
    # Flux
    ("# flux: -N2 -n4 -c2 -g1 -t 1h -q batch -B bank", {
        "req_nodes": 2, "req_tasks": 4, "cpus_per_task": 2, "req_cpus": 8, "req_gpus": 4, "time_limit": 3600,
        "partition": "batch", "account": "bank"}),
    ('#flux: --time-limit=30 --job-name="a b" --exclusive', {"time_limit": 1800, "name": "a b", "exclusive": True}),
    # Cobalt
    ("#COBALT -n 4 -t 60 -q default -A proj --mode c16", {
        "req_nodes": 4, "time_limit": 3600, "partition": "default", "account": "proj", "tasks_per_node": 16,
        "req_tasks": 64}),
    ("#COBALT --attrs location=1,2:mcdram=flat --jobname j -t 0:30:00", {
        "req_node_list": "1,2", "name": "j", "time_limit": 1800}),
    # OAR
    ("#OAR -l /nodes=2/core=4,walltime=1:0:0", {"req_nodes": 2, "req_cpus": 8, "time_limit": 3600}),
    ("#OAR -l {gpu='YES'}/host=1/gpu=2/core=4,walltime=2", {
        "constraints": "gpu='YES'", "req_nodes": 1, "req_gpus": 2, "req_cpus": 8, "time_limit": 7200}),
    ("#OAR --project=p\n#OAR -n my job\n#OAR -t idempotent\n#OAR --array 5", {
        "account": "p", "name": "my job", "requeue": True, "array": "1-5", "array_tasks": 5}),
]  # fmt: skip


@pytest.mark.parametrize(("header", "request_"), CASES, ids=[case[0] for case in CASES])
def test_header(header: str, request_: dict[str, object]) -> None:
    script = parse(f"#!/bin/bash\n{header}\nrun\n")
    assert script.request == request_
    assert [problem for problem in script.problems if problem.kind != "note"] == []


def test_every_field_is_one_of_a_jobs_request() -> None:
    for header, request in CASES:
        assert all(FIELDS[name].part is Part.REQUEST for name in request), header


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("#SBATCH --time=soon", "not a time"),
        ("#SBATCH --frobnicate=3", "unknown"),
        ("#SBATCH --mem", "no value"),
        ("#SBATCH –N 2", "typographic dash"),
        ("#SBATCH -N two", "not a number"),
        ("#SBATCH --array=9-1", "no tasks"),
        ("#SBATCH -J 'open", "not closed"),
        ("#SBATCH --parsable=1", "takes no value"),
        ("#SBATCH 4 nodes", "not an option"),
        ("#PBS -l walltime=1h", "not a time"),
        ("#PBS --walltime=1", "unknown"),
        ("#BSUB -n {{ n }}", "not a number"),
        ("#$ -l h_vmem=lots", "not an amount of memory"),
        ("# flux: -t 1w", "not a Flux duration"),
        ("#OAR -l walltime=1:2:3:4", "not an OAR walltime"),
        ("#PJM -L node-mem=much", "not an amount"),
        ("#SBATCH --mem-per-cpu=9999999999999T -n 99", "too large"),
    ],
)
def test_an_error_is_reported_with_its_line_and_the_rest_is_read(header: str, message: str) -> None:
    good = header.split()[0]
    name = {
        "#SBATCH": "-J",
        "#PBS": "-N",
        "#BSUB": "-J",
        "#$": "-N",
        "#": "--job-name",
        "#OAR": "-n",
        "#PJM": "-N",
    }
    prefix = "# flux:" if good == "#" else good
    script = parse(f"#!/bin/sh\n{header}\n{prefix} {name[good]} fine\nrun\n")
    assert any(message in problem.text for problem in script.problems)
    assert {problem.line for problem in script.problems} <= {0, 2}
    assert script.request["name"] == "fine"


def test_begin_needs_the_clusters_zone() -> None:
    text = "#!/bin/sh\n#SBATCH --begin=2026-07-01T12:00:00\n"
    assert "begin" not in parse(text).request
    assert parse(text, zone=ZoneInfo("Europe/Zurich")).request["begin"] == 1782900000
    assert "begin" not in parse("#!/bin/sh\n#SBATCH -b now+1hour\n", zone=ZoneInfo("UTC")).request


@pytest.mark.parametrize("word", ["hetjob", "packjob"])
def test_a_heterogeneous_job_has_a_request_for_each_component(word: str) -> None:
    script = parse(f"#!/bin/sh\n#SBATCH -N 1 --mem=4G\n#SBATCH {word}\n#SBATCH -N 8\nsrun x\n")
    assert script.components == ({"req_nodes": 1, "req_memory": 4 * GB}, {"req_nodes": 8})
    assert script.request == script.components[0]


def test_a_script_that_sbatch_refuses_is_reported() -> None:
    assert "#!" in parse("#SBATCH -N 1\nrun\n").problems[0].text
    assert "dos2unix" in parse("#!/bin/sh\r\n#SBATCH -N 1\r\nrun\r\n").problems[0].text


@pytest.mark.parametrize(
    "argv",
    [
        ["sbatch", "-t", "10", "--mem=4G", "job.sh", "--mem=9G"],
        ["/usr/bin/sbatch", "-Ht10", "--mem", "4G", "--", "job.sh"],
        ["--time=10", "--mem=4G"],
    ],
)
def test_the_command_line_wins_over_the_directives(argv: list[str]) -> None:
    script = parse("#!/bin/sh\n#SBATCH -t 60 --mem-per-cpu=1G -c 2 -p gpu\nrun\n").with_options(argv)
    assert script.request == {
        "time_limit": 600, "req_memory": 4 * GB, "cpus_per_task": 2, "req_cpus": 2, "partition": "gpu"
    }  # fmt: skip
    assert not script.problems


def test_a_plain_script_takes_its_request_from_the_command_line() -> None:
    script = parse("#!/bin/sh\nrun\n")
    assert script.with_options(["bsub", "-W", "1:00", "-n4", "job.sh"]).request == {
        "time_limit": 3600, "req_tasks": 4, "req_cpus": 4
    }  # fmt: skip
    assert script.with_options(["-N", "3", "job.sh"]).request == {"req_nodes": 3}
    assert "unknown" in script.with_options(["sbatch", "--nope", "job.sh"]).problems[-1].text


def test_memory_per_slot_is_unknown_without_a_number_of_nodes() -> None:
    (problem,) = parse("#!/bin/sh\n#$ -pe mpi 4 -l h_vmem=2.5G\nrun\n").problems
    assert problem.line == 2
    assert problem.kind == "note"


def test_a_continued_line_is_read_once() -> None:
    script = parse("#!/bin/sh\n#PBS -l ncpus=2 \\\n#PBS -l walltime=60\nrun\n")
    assert [d.option for d in script.directives] == ["-l ncpus", "-l walltime"]


def test_directives_in_effect_are_marked() -> None:
    text = "#!/bin/sh\n#SBATCH -t 5 -t 6 --mem=4G --mem-per-cpu=1G -o a -o b -n zwei\n#SBATCH --gres=gpu:2\nrun\n"
    seen = to_json(parse(text).with_options(["--gres=gpu:1"]))["directives"]
    assert [(d["option"], d["value"]) for d in seen if d["effective"]] == [
        ("--time", "6"),
        ("--mem-per-cpu", "1G"),
        ("--output", "b"),
        ("--gres", "gpu:1"),
        ("--gres gpu", "1"),
    ]


@pytest.mark.parametrize("line", ["#SBATCH -n 1\n", "#SBATCH " + "-n1 " * 250 + "\n", "#SBATCH hetjob\n"])
def test_a_script_of_nothing_but_directives_is_read_at_both_ends(line: str) -> None:
    many = 4_000_000 // len(line)
    began = time.process_time()
    found = parse(f"#!/bin/sh\n#SBATCH --mem=4G\n{line * many}#SBATCH --time=7\n")
    assert time.process_time() - began < 6
    assert found.components[0]["req_memory"] == 4 * GB
    assert found.components[-1]["time_limit"] == 420
    assert found.last_directive == many + 3
    [note] = [problem for problem in found.problems if problem.kind == "note"]
    assert f"of {many + 2:,}," in note.text


def test_a_long_header_is_read_whole() -> None:
    found = parse("#!/bin/sh\n" + "".join(f"#SBATCH --comment=c{n}\n" for n in range(6000)))
    assert [directive.line for directive in found.directives] == [*range(2, 6002)]
    assert found.problems == ()
