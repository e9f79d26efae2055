"""The documents are true: every command and option in them exists, and every setting is a setting."""

import re
import shlex
import tomllib
import types
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tocsin.causes.catalogue import load_catalogue
from tocsin.cli.main import cli
from tocsin.cli.options import ListedByDefault
from tocsin.core.fields import Job
from tocsin.core.outcomes import Outcome
from tocsin.core.settings import Layer, resolve
from tocsin.core.units import UNLIMITED
from tocsin.judge.check_data import demo_check_data
from tocsin.judge.checks import CHECKS
from tocsin.sources.table import TableFile

REPOSITORY = Path(__file__).parents[1]
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"(?:^|\| |\$ )(tocsin [^#|\n]*)", re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for language, block in _BLOCK.findall(page.read_text()):
            if language in ("", "console"):
                found += [(page.name, line.strip()) for line in _COMMAND.findall(block)]
        found += [(page.name, line) for line in re.findall(r"`(tocsin [a-z][^`]*)`", page.read_text())]
    return found


def _options(command: click.Command) -> set[str]:
    """As one can write them, the `--no-` forms too."""
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}


@pytest.mark.parametrize(("page", "line"), commands())
def test_a_command_in_the_documents_exists(page: str, line: str) -> None:
    command: click.Command = cli
    words = shlex.split(line)[1:]
    if words[:1] == ["import"] and words[1:2] != ["slurm"]:
        words.insert(1, "files")  # what `import FILE` stands for
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        if words[0].isupper():  # a placeholder such as COMMAND
            return
        name = words.pop(0)
        assert name in command.commands, f"{page}: {line}"
        command = command.commands[name]
    if isinstance(command, ListedByDefault):
        command = command.commands["list"]
    known = {*_options(command), "--help", "-h"}
    used = {word.partition("=")[0] for word in words if word.startswith("-") and word != "-"}
    assert used <= known, f"{page}: {line}"


def _all(command: click.Command, *name: str) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(("tocsin", *name)), command
    if isinstance(command, click.Group):
        for child, inner in command.commands.items():
            yield from _all(inner, *name, child)


def test_every_command_and_every_way_to_say_no_is_in_the_documents() -> None:
    pages = "\n".join(page.read_text() for page in PAGES)
    for name, command in _all(cli):
        assert name in pages, f"no page names {name}"
        for option in (option for parameter in command.params for option in parameter.secondary_opts):
            assert option in pages, f"no page names {option} of {name}"


def test_the_settings_in_the_documents_are_settings() -> None:
    blocks = [
        block
        for page in PAGES
        for language, block in _BLOCK.findall(page.read_text())
        if language == "toml"
        and not any(part in block for part in ("entry-points", "[fields]", "[cpu_jobs]", "certain = ["))
    ]
    assert blocks
    for block in blocks:
        resolve([Layer("the documents", tomllib.loads(block))])


def test_the_mapping_in_the_documents_reads_a_table(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "import-jobs.md").read_text()
    (tmp_path / "my.toml").write_text(
        next(block for language, block in _BLOCK.findall(page) if language == "toml")
    )
    (tmp_path / "t.csv").write_text(
        "id,submitted,started,ended,owner,queue,slots,mem_mb,walltime,status,rc\n"
        "7,01.02.2025 10:00:00,1738400500,1738400600,ada,long,4,100,-1,done,0\n"
    )
    [batch] = TableFile(tmp_path / "t.csv", str(tmp_path / "my.toml")).batches()
    [job] = [Job(**row) for row in batch.jobs.iter_rows(named=True)]
    assert (job.job_id, job.user, job.req_memory, job.time_limit) == (7, "ada", 100 * 2**20, UNLIMITED)
    assert (job.submit, job.outcome) == (1738400400, Outcome.COMPLETED)


def test_the_kind_of_cause_in_the_documents_is_one(tmp_path: Path) -> None:
    page = (REPOSITORY / "docs" / "why-did-it-fail.md").read_text()
    block = next(
        block for language, block in _BLOCK.findall(page) if "certain = [" in block and language == "toml"
    )
    (tmp_path / "own.toml").write_text(block)
    assert "burst_buffer" in load_catalogue(tmp_path).kinds
    listed = set(re.findall(r"`([a-z_]+)`", page.partition("The kinds:")[2].partition("The last resort")[0]))
    assert listed == set(load_catalogue().kinds)
    for kind in load_catalogue().kinds.values():
        assert f"| `{kind.name}` | {kind.meaning} |" in page


def test_the_detector_in_the_documents_passes_every_check() -> None:
    page = (REPOSITORY / "docs" / "write-a-detector.md").read_text()
    code = next(block for language, block in _BLOCK.findall(page) if language == "python")
    module = types.ModuleType("siren_of_the_documents")
    exec(compile(code, "write-a-detector.md", "exec"), module.__dict__)  # our own page, run as a reader would
    check_data = demo_check_data()
    for check in CHECKS:
        check(module.DETECTOR, check_data)


def test_every_room_is_in_the_architecture() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text()
    for room in sorted((REPOSITORY / "src" / "tocsin").iterdir()):
        if (room / "__init__.py").is_file():
            assert f"`{room.name}`" in page, f"docs/architecture.md says nothing of the room {room.name}"


def test_links_between_the_documents_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} names {target}"
