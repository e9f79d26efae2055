"""A change is one line, in the script's own words; every other byte stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scripts.test_requests import CASES
from tocsin.core.errors import ScriptError
from tocsin.scripts.edits import Edit, apply, edit
from tocsin.scripts.script import parse

GB = 1024**3

VALUES: dict[str, st.SearchStrategy[int | str]] = {
    "time_limit": st.integers(1, 20000).map(lambda minutes: minutes * 60),
    "req_memory": st.integers(1, 4000).map(lambda size: size * GB),
    "req_nodes": st.integers(1, 5000),
    "req_cpus": st.integers(1, 5000),
    "req_tasks": st.integers(1, 5000),
    "cpus_per_task": st.integers(1, 256),
    "exclude_nodes": st.sampled_from(["n1", "n[1-3],m4"]),
    "partition": st.sampled_from(["short", "gpu_long", "all-q"]),
    "array": st.sampled_from(["1-9", "1-100", "1-12"]),
}


@pytest.mark.parametrize(
    ("header", "field", "value", "becomes"),
    [
        ("#SBATCH -N 2 -t 10 # short", "time_limit", 7200, "#SBATCH -N 2 -t 02:00:00 # short"),
        ('#SBATCH --time="10" -N 1', "time_limit", 7200, '#SBATCH --time="02:00:00" -N 1'),
        ("#SBATCH --mem=4G", "req_memory", 6 * GB, "#SBATCH --mem=6G"),
        ("#SBATCH -c 4 --mem-per-cpu=1G -J x", "req_memory", 8 * GB, "#SBATCH -c 4 --mem-per-cpu=2G -J x"),
        ("#SBATCH -c 3 --mem-per-cpu=1G -J x", "req_memory", 10 * GB, "#SBATCH -c 3 --mem=10G -J x"),
        ("#SBATCH -xn1", "exclude_nodes", "n1,n2", "#SBATCH -xn1,n2"),
        ("#PBS -l nodes=1:ppn=4,walltime=1:00:00 -N x", "time_limit", 90,
         "#PBS -l nodes=1:ppn=4,walltime=00:01:30 -N x"),
        ("#PBS -l nodes=2:ppn=4", "req_cpus", 16, "#PBS -l nodes=2:ppn=8"),
        ("#PBS -l nodes=1:ppn=3,pmem=1gb,walltime=60", "req_memory", 4 * GB,
         "#PBS -l nodes=1:ppn=3,mem=4gb,walltime=60"),
        ("#PBS -l select=2:ncpus=4:mem=8gb", "req_memory", 16 * GB, "#PBS -l select=2:ncpus=4:mem=16gb"),
        ("#BSUB -W 10", "time_limit", 5400, "#BSUB -W 1:30"),
        ('#BSUB -R "rusage[mem=4000]" -n 2', "req_memory", GB, '#BSUB -R "rusage[mem=1024MB]" -n 2'),
        ('#BSUB -J "x[1-5]"', "array", "1-9", '#BSUB -J "x[1-9]"'),
        ("#$ -pe smp 4 -l h_vmem=1G,h_rt=60", "req_memory", 8 * GB, "#$ -pe smp 4 -l h_vmem=2G,h_rt=60"),
        ('#BSUB -J "x" -n 1', "array", "1-9", '#BSUB -J "x[1-9]" -n 1'),
        ('#BSUB -J "x[1-5]%3"', "array", "1-9", '#BSUB -J "x[1-9]%3"'),
        ("#PBS -l select=2:ncpus=4", "req_memory", GB, "#PBS -l select=2:ncpus=4:mem=1gb"),
        ("#OAR -l /nodes=2/core=4", "time_limit", 5400, "#OAR -l /nodes=2/core=4,walltime=01:30:00"),
        ('#PJM -L "node=2,elapse=10:00"', "req_nodes", 4, '#PJM -L "node=4,elapse=10:00"'),
        ("# flux: -t 1h", "time_limit", 5400, "# flux: -t 90m"),
        ("#COBALT -t 60", "time_limit", 5400, "#COBALT -t 90"),
        ("#OAR -l /nodes=2/core=4,walltime=1:0:0", "time_limit", 5400, "#OAR -l /nodes=2/core=4,walltime=01:30:00"),
    ],
)  # fmt: skip
def test_only_the_value_changes(header: str, field: str, value: int | str, becomes: str) -> None:
    text = f"#!/bin/bash\n{header}\nrun\n"
    assert edit(parse(text), field, value) == Edit(2, header, becomes)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("#!/bin/sh\n#SBATCH -N 1\n\nrun\n", Edit(3, None, "#SBATCH --time=01:00:00")),
        ("#!/bin/sh\r\n#PBS -N a\r\nrun\r\n", Edit(3, None, "#PBS -l walltime=01:00:00\r")),
        ("#!/bin/sh\n  #BSUB -n 1\nrun", Edit(3, None, "  #BSUB -W 1:00")),
        ("#!/bin/sh\nrun\n", Edit(2, None, "#SBATCH --time=01:00:00")),
        ("run", Edit(1, None, "#SBATCH --time=01:00:00")),
        ("#!/bin/sh\n#SBATCH -N 1", Edit(3, None, "#SBATCH --time=01:00:00")),
    ],
)
def test_a_missing_directive_is_inserted_after_the_last(text: str, change: Edit) -> None:
    assert edit(parse(text), "time_limit", 3600) == change
    assert parse(apply(text, [change])).request["time_limit"] == 3600


@given(st.sampled_from([header for header, _ in CASES]), st.sampled_from(sorted(VALUES)), st.data())
def test_an_edit_gives_the_new_value_and_leaves_every_other_line(
    header: str, field: str, data: st.DataObject
) -> None:
    value = data.draw(VALUES[field])
    text = f"#!/bin/bash\n# caf\udce9\n{header}\n\n#comment\necho 'x' # y\n\x0bend"
    script = parse(text)
    try:
        change = edit(script, field, value)
    except ScriptError as refused:
        assert field in str(refused)
        return
    after = apply(text, [change])
    assert parse(after).request[field] == value
    before, changed = text.split("\n"), after.split("\n")
    if change.old is None:
        del changed[change.line - 1]
    else:
        before[change.line - 1] = changed[change.line - 1]
    assert changed == before


@pytest.mark.parametrize(
    "field", ["time_limit", "req_memory", "req_nodes", "req_tasks", "cpus_per_task", "partition"]
)
def test_slurm_scripts_take_every_change(field: str) -> None:
    value: int | str = "x" if field == "partition" else 3600 * 1024**2
    for header, _ in CASES:
        if header.startswith("#SBATCH"):
            text = f"#!/bin/bash\n{header}\nrun\n"
            assert parse(apply(text, [edit(parse(text), field, value)])).request[field] == value


def test_several_edits_are_applied_and_stale_ones_refused() -> None:
    text = "#!/bin/sh\n#SBATCH -t 10\n#SBATCH -N 1\nrun\n"
    script = parse(text)
    changes = [edit(script, "time_limit", 3600), edit(script, "req_nodes", 2), edit(script, "partition", "p")]
    assert (
        apply(text, changes) == "#!/bin/sh\n#SBATCH -t 01:00:00\n#SBATCH -N 2\n#SBATCH --partition=p\nrun\n"
    )
    with pytest.raises(ScriptError, match="read the script again"):
        apply("#!/bin/sh\nother\n", changes)
    with pytest.raises(ScriptError, match="two edits of line 2"):
        apply(text, [changes[0], changes[0]])


def test_an_impossible_edit_is_refused() -> None:
    with pytest.raises(ScriptError, match="cannot set"):
        edit(parse("#!/bin/sh\n#COBALT -n 1\n"), "exclude_nodes", "n1")
    with pytest.raises(ScriptError, match="cannot set"):
        edit(parse("#!/bin/sh\n#PBS -l select=2:ncpus=4\n"), "req_cpus", 9)  # nine on two nodes
    with pytest.raises(ScriptError, match="cannot set"):
        edit(parse("#!/bin/sh\n#SBATCH -N 1\n"), "partition", "a b\n#SBATCH -N 2")
    with pytest.raises(ScriptError, match="heterogeneous"):
        edit(parse("#!/bin/sh\n#SBATCH -N 1\n#SBATCH hetjob\n#SBATCH -N 2\n"), "req_nodes", 3)
