"""What a script calls is read as its submitter may read it, within bounds, and never otherwise."""

import os
from pathlib import Path

import pytest

from tocsin.sources.permitted import Refused, Submitter, read_as
from tocsin.workload.script_calls import Bounds, Kind, called, joined

ME = Submitter(os.geteuid(), frozenset({os.getegid()}))
STRANGER = Submitter(61234, frozenset({61234}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that everybody may enter, up to the root."""
    home = tmp_path / "ann"
    home.mkdir()
    for part in (home, *home.parents):
        if part.stat().st_uid == os.geteuid() and part != Path("/"):
            part.chmod(part.stat().st_mode | 0o755)
    return home


def write(path: Path, text: str, mode: int = 0o644) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def paths(text: str, folder: Path, who: Submitter = ME, **more: object) -> list[tuple[str, str, int]]:
    found = called(text, folder=str(folder), who=who, **more)  # type: ignore[arg-type]  # bounds or clock
    return [
        (os.path.relpath(c.path, folder) if c.path.startswith("/") else c.path, str(c.kind), c.line)
        for c in found
    ]


def test_sourced_nested_and_python_files_and_containers_are_found(folder: Path) -> None:
    write(folder / "env.sh", "module load x\nbash deep/run.sh\n")
    write(folder / "deep" / "run.sh", "echo deep\n")
    write(folder / "train.py", "import os\nfrom torch.nn import Linear\nimport numpy as np\n")
    write(folder / "pkg" / "go.py", "import jax\n")
    text = (
        "#!/bin/bash\nsource env.sh\nD=.\nsrun python -u $D/train.py --epochs 3\npython -m pkg.go\n"
        "apptainer exec --nv /sw/images/pytorch_2.sif true\npodman run --rm docker.example/miner:1 go\nsh nothere.sh\n"
    )
    assert paths(text, folder) == [
        ("env.sh", "sourced", 2),
        ("train.py", "python", 4),
        ("pkg/go.py", "python", 5),
        (os.path.relpath("/sw/images/pytorch_2.sif", folder), "container", 6),
        ("docker.example/miner:1", "container", 7),
        ("deep/run.sh", "script", 2),
    ]
    python = next(c for c in called(text, folder=str(folder), who=ME) if c.kind is Kind.PYTHON)
    assert python.text == "import numpy\nimport os\nimport torch.nn"


def test_evidence_names_the_file_its_line_and_the_line_that_leads_there(folder: Path) -> None:
    write(folder / "b.sh", "one\ntwo\npython c.py\n")
    write(folder / "c.py", "import os\n\n\nimport torch\nimport torch, os\n")
    text = "first\nsh b.sh\napptainer run x.sif"
    whole = joined(text, called(text, folder=str(folder), who=ME))
    assert (
        whole.text
        == "first\nsh b.sh\napptainer run x.sif\none\ntwo\npython c.py\n\nx.sif\nimport os\nimport torch"
    )
    assert [tuple(whole.place(line)) for line in (1, 2, 4, 5, 8, 9, 10)] == [
        (1, None, None),
        (2, None, None),
        (2, str(folder / "b.sh"), 1),
        (2, str(folder / "b.sh"), 2),
        (3, "x.sif", None),
        (2, str(folder / "c.py"), 1),
        (2, str(folder / "c.py"), 4),
    ]


def test_the_imports_of_what_is_no_python_have_their_lines(folder: Path) -> None:
    write(folder / "a.py", "print 'two'\n\n\n  import torch\nfrom jax import (\n")
    [file] = called("python a.py", folder=str(folder), who=ME)
    assert (file.text, file.numbers) == ("import jax\nimport torch", (5, 4))


def test_nothing_beyond_the_submitters_permissions_is_read(folder: Path) -> None:
    write(folder / "open.sh", "open", 0o644)
    write(folder / "own.sh", "own", 0o600)
    write(folder / "shut" / "in.sh", "in", 0o644)
    (folder / "shut").chmod(0o700)
    (folder / "link.sh").symlink_to(folder / "own.sh")
    (folder / "way").symlink_to(folder / "shut")
    text = "sh open.sh\nsh own.sh\nsh shut/in.sh\nsh link.sh\nsh way/in.sh\nsource /etc/shadow\n"
    assert [name for name, *_ in paths(text, folder, STRANGER)] == ["open.sh"]
    assert [n for n, *_ in paths(text, folder)][:5] == [
        "open.sh",
        "own.sh",
        "shut/in.sh",
        "link.sh",
        "way/in.sh",
    ]


def test_the_owners_bits_count_for_the_owner_and_the_groups_for_members(folder: Path) -> None:
    file = write(folder / "f.sh", "text", 0o046)
    path = str(file)
    owner = Submitter(os.geteuid(), frozenset({os.getegid()}))
    member = Submitter(61234, frozenset({file.stat().st_gid}))
    with pytest.raises(Refused, match=r"may not read|Permission denied"):
        read_as(owner, path, 10)
    if os.geteuid() == 0:  # only root can open what its mode forbids
        assert read_as(member, path, 10) == b"text"


def test_special_files_are_never_opened(folder: Path) -> None:
    os.mkfifo(folder / "pipe.sh")
    (folder / "dir.sh").mkdir()
    (folder / "loop.sh").symlink_to("loop.sh")
    (folder / "null.sh").symlink_to("/dev/null")
    for name in ("pipe.sh", "dir.sh", "loop.sh", "null.sh"):
        with pytest.raises(Refused):
            read_as(ME, str(folder / name), 10)
    for path in ("/proc/self/environ", "/dev/zero", "relative.sh", "/a\0b"):
        with pytest.raises(Refused):
            read_as(ME, path, 10)


def test_files_bytes_depth_and_time_are_bounded(folder: Path) -> None:
    for number in range(10):
        write(folder / f"s{number}.sh", f"sh s{number + 1}.sh\n" + "x" * 1000)
    text = "\n".join(f"sh s{n}.sh" for n in range(10))
    assert len(paths(text, folder, bounds=Bounds(files=4))) == 4
    assert len(paths(text, folder, bounds=Bounds(whole=2500))) == 3
    assert len(paths("sh s0.sh", folder, bounds=Bounds(depth=3))) == 3
    ticks = iter(range(100))
    assert len(paths(text, folder, clock=lambda: float(next(ticks)), bounds=Bounds(seconds=3.5))) == 3
    [big] = called("sh s0.sh", folder=str(folder), who=ME, bounds=Bounds(each=100, depth=1))
    assert len(big.text) == 100


@pytest.mark.parametrize(
    "source", ["import torch\nthis is (no python", "(" * 9999 + "\nimport torch", "import torch\0"]
)
def test_a_file_that_is_no_python_is_read_as_far_as_it_goes(folder: Path, source: str) -> None:
    write(folder / "a.py", source)
    found = called("python a.py", folder=str(folder), who=ME)
    assert [c.text for c in found] == (["import torch"] if "\0" not in source else [])


@pytest.mark.parametrize(
    "name", ["$HOME/x.sh", "${HOME}/x.sh", "~/x.sh", '"$HOME/x.sh"', "$SLURM_SUBMIT_DIR/x.sh"]
)
@pytest.mark.parametrize("call", ["bash", "source", "."])
def test_files_below_the_home_folder_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "x.sh").write_text("./solver\n")
    me = Submitter(os.geteuid(), frozenset({os.getegid()}))
    found = called(f"#!/bin/sh\n{call} {name}\n", folder=str(tmp_path), who=me)
    assert [(one.path, one.line) for one in found] == [(str(tmp_path / "x.sh"), 2)]
    assert called(f"#!/bin/sh\n{call} $HOMER/x.sh a~/x.sh\n", folder=str(tmp_path), who=me) == []
