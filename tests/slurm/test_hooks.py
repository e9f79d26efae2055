"""The hooks: the site's Lua files get one line, stay valid Lua, and are restored byte for byte."""

import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kits.command_line import Tocsin
from tocsin.core.errors import InputError
from tocsin.slurm.heartbeat import heartbeat_file, write_heartbeat
from tocsin.slurm.hooks import HOOKS, apply_changes, install, uninstall, with_line, without_line
from tocsin.slurm.lua_syntax import check_lua
from tocsin.slurm.slurm_conf import lua_lines
from tocsin.slurm.start_delay import start_delay

VALUES = {
    "WINDOW": 20,
    "SOCKET": "/run/tocsin/tocsin.sock",
    "HEARTBEAT": "/run/tocsin/heartbeat",
    "DEADLINE": "0.150",
}
SITE = """function slurm_job_submit(job, partitions, uid)
  if job.account == nil then
    return slurm.ERROR
  end
  return slurm.SUCCESS
end
function slurm_job_modify(job, record, partitions, uid) return slurm.SUCCESS end
"""
BOTH = list(HOOKS.values())

try:
    check_lua("probe", b"return 1")
except InputError as missing:
    if os.environ.get("CI") == "true":
        raise
    pytest.skip(str(missing), allow_module_level=True)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"x = 1",
        SITE.encode(),
        SITE.encode() + b"return slurm.SUCCESS\n",
        SITE.encode() + b"return slurm.SUCCESS -- done\n\n-- the end\n",
        SITE.encode() + b"return slurm.SUCCESS",
        SITE.replace("\n", "\r\n").encode() + b"return slurm.SUCCESS\r\n",
        "-- Überschrift in Latin-1\n".encode("latin-1") + SITE.encode(),
    ],
)
def test_a_sites_file_gets_one_line_and_is_restored_byte_for_byte(tmp_path: Path, text: bytes) -> None:
    site = tmp_path / "job_submit.lua"
    site.write_bytes(text)
    site.chmod(0o640)
    hook = HOOKS["job_submit"]
    apply_changes(install(tmp_path, [hook], VALUES))
    assert site.read_bytes().count(b"pcall(dofile") == 1
    assert stat.S_IMODE(site.stat().st_mode) == 0o640
    assert install(tmp_path, [hook], VALUES) == [], "a second time changes nothing"
    apply_changes(uninstall(tmp_path, [hook]))
    assert site.read_bytes() == text
    assert [path.name for path in tmp_path.iterdir()] == ["job_submit.lua"]


@given(st.binary(max_size=200).map(lambda text: text.replace(b"pcall(dofile", b"")))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_line_that_was_added_can_always_be_removed(tmp_path: Path, text: bytes) -> None:
    line = HOOKS["job_submit"].line(tmp_path)
    assert without_line(with_line(text, line), line) == text


def test_where_there_is_no_file_one_is_created_and_deleted_again(tmp_path: Path) -> None:
    apply_changes(install(tmp_path, BOTH, VALUES))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "cli_filter.lua",
        "job_submit.lua",
        "tocsin_cli_filter.lua",
        "tocsin_job_submit.lua",
    ]
    apply_changes(uninstall(tmp_path, BOTH))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_slurm_still_looks_for_stays_and_does_nothing(tmp_path: Path) -> None:
    apply_changes(install(tmp_path, BOTH, VALUES))
    installed = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    apply_changes(uninstall(tmp_path, BOTH, BOTH))
    for hook in BOTH:
        text = (tmp_path / hook.file).read_bytes()
        check_lua(hook.file, text)
        assert b"pcall" not in text
        assert all(f"function {name}()".encode() in text for name in hook.functions)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cli_filter.lua", "job_submit.lua"]
    assert uninstall(tmp_path, BOTH, BOTH) == [], "a second time changes nothing"
    apply_changes(install(tmp_path, BOTH, VALUES))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == installed
    apply_changes(uninstall(tmp_path, BOTH, BOTH))
    apply_changes(uninstall(tmp_path, BOTH))
    assert list(tmp_path.iterdir()) == [], "once slurm.conf is without lua"


@pytest.mark.parametrize(
    ("conf", "found"),
    [
        ("ClusterName=lab\n", []),
        ("# JobSubmitPlugins=lua\nJobSubmitPlugins=throttle # lua\n", []),
        ("ClusterName=lab\nJobSubmitPlugins=throttle,lua\n", [("slurm.conf", 2)]),
        ('x=1 jobsubmitplugins = "lua"\n', [("slurm.conf", 1)]),
        ("JobSubmitPlugins+=job_submit/lua\n", [("slurm.conf", 1)]),
        ("x=1\nJobSubmitPlugins=\\\nlua\n", [("slurm.conf", 2)]),
        ("include plugins.conf\n", [("plugins.conf", 1)]),
    ],
)
def test_the_lines_of_slurm_conf_that_name_lua_are_found(
    tmp_path: Path, conf: str, found: list[tuple[str, int]]
) -> None:
    (tmp_path / "plugins.conf").write_text("JobSubmitPlugins=lua\n")
    (tmp_path / "slurm.conf").write_text(conf)
    lines = lua_lines(tmp_path / "slurm.conf", "JobSubmitPlugins")
    assert [(line.path.name, line.number) for line in lines] == found


def test_an_included_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    for text in ("Include /no/such/file\n", "Include slurm.conf\n"):
        conf.write_text(text)
        with pytest.raises(OSError):
            lua_lines(conf, "JobSubmitPlugins")


def test_changes_that_a_site_made_since_are_kept(tmp_path: Path) -> None:
    site = tmp_path / "job_submit.lua"
    site.write_text(SITE)
    apply_changes(install(tmp_path, BOTH, VALUES))
    site.write_text(site.read_text() + "-- added later\n")
    apply_changes(uninstall(tmp_path, BOTH))
    assert site.read_text() == SITE + "-- added later\n"


def test_a_file_that_would_not_be_lua_is_never_written(tmp_path: Path) -> None:
    site = tmp_path / "job_submit.lua"
    for text, sentence in (
        ("function broken(\n", "is not valid Lua as it is"),
        ("do return slurm.SUCCESS end --[[\n", "is not valid Lua as it is"),
        ("x = 1\n  return slurm.SUCCESS\n", "would not be valid Lua"),
    ):
        site.write_text(text)
        with pytest.raises(InputError, match=sentence):
            install(tmp_path, BOTH, VALUES)
        assert site.read_text() == text
        assert list(tmp_path.iterdir()) == [site]


def test_a_file_behind_a_link_is_changed_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    real = tmp_path / "shared" / "job_submit.lua"
    real.write_text(SITE)
    link = tmp_path / "job_submit.lua"
    link.symlink_to(real)
    apply_changes(install(tmp_path, [HOOKS["job_submit"]], VALUES))
    assert link.is_symlink()
    assert "pcall(dofile" in real.read_text()


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    site = tmp_path / "job_submit.lua"
    site.write_text(SITE)
    changes = install(tmp_path, BOTH, VALUES)
    site.write_text(SITE + "-- just now\n")
    with pytest.raises(InputError, match="was changed in the meantime"):
        apply_changes(changes)
    assert site.read_text() == SITE + "-- just now\n"


def test_other_settings_update_the_library_and_make_slurm_load_it(tmp_path: Path) -> None:
    hook = HOOKS["job_submit"]
    apply_changes(install(tmp_path, [hook], VALUES))
    site = tmp_path / "job_submit.lua"
    os.utime(site, (1, 1))
    apply_changes(install(tmp_path, [hook], {**VALUES, "WINDOW": 30}))
    assert "local WINDOW = 30" in (tmp_path / hook.library).read_text()
    assert site.stat().st_mtime > 1, "slurmctld reads the file again when its time changes"


def test_a_path_that_would_break_out_of_the_lua_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written into Lua"):
        install(tmp_path, BOTH, {**VALUES, "SOCKET": '/run/x"; os.exit() --'})


def test_the_command_shows_what_it_will_do_and_does_it_with_yes(tocsin: Tocsin, tmp_path: Path) -> None:
    folder = tmp_path / "slurm"
    folder.mkdir()
    shown = tocsin("slurm", "install", "--folder", folder)
    assert "tocsin_cli_filter.lua: write the tocsin library" in shown.out
    assert "nothing was changed" in shown.err
    assert list(folder.iterdir()) == []
    assert tocsin("slurm", "install", "--folder", folder, "--yes").code == 0
    status = json.loads(tocsin("slurm", "status", "--folder", folder, "--json").out)
    assert [(hook["hook"], hook["installed"]) for hook in status["hooks"]] == [
        ("cli_filter", True),
        ("job_submit", False),
    ]


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Set what `scontrol show config` prints; an empty text: slurmctld does not answer."""
    program = tmp_path / "bin" / "scontrol"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    def show(config: str) -> None:
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{config}\nEND\n" if config else "#!/bin/sh\nexit 1\n")
        program.chmod(0o755)

    return show


@pytest.mark.parametrize(
    ("conf", "config", "step"),
    [
        (
            "ClusterName=lab\nCliFilterPlugins=cli_filter/lua\n",
            "CliFilterPlugins        = (null)",
            "slurm.conf line 2 is CliFilterPlugins=cli_filter/lua; take lua out of CliFilterPlugins, run: scontrol reconf",
        ),
        (
            "ClusterName=lab\n",
            "CliFilterPlugins        = cli_filter/lua",
            "slurmctld still runs with CliFilterPlugins=cli_filter/lua; run: scontrol reconfigure, and then again: tocsin",
        ),
        (None, "CliFilterPlugins        = (null)", "slurm.conf cannot be read (No such file or directory)"),
        ("ClusterName=lab\n", "", "Slurm does not answer, so it may still run with lua in CliFilterPlugins"),
        ("ClusterName=lab\n", "CliFilterPlugins        = (null)", None),
    ],
)
def test_uninstall_never_deletes_a_file_that_slurm_may_need_and_names_the_next_step(
    tocsin: Tocsin,
    tmp_path: Path,
    scontrol: Callable[[str], None],
    conf: str | None,
    config: str,
    step: str | None,
) -> None:
    folder = tmp_path / "slurm"
    folder.mkdir()
    scontrol(config)
    if conf is not None:
        (folder / "slurm.conf").write_text(conf)
    tocsin("slurm", "install", "--folder", folder, "--yes")
    removed = tocsin("slurm", "uninstall", "--folder", folder, "--yes")
    assert removed.code == 0
    left = {path.name for path in folder.glob("*.lua")}
    if step is None:
        assert (left, removed.err) == (set(), "")
        return
    assert left == {"cli_filter.lua"}
    assert "cli_filter.lua stays and does nothing, because Slurm fails without it" in removed.err
    assert step in removed.err
    again = json.loads(tocsin("slurm", "uninstall", "--folder", folder, "--yes", "--json").out)
    assert again["changes"] == []
    assert step in again["next_steps"][0]


def test_the_true_delay_of_a_start_comes_from_the_scheduler(tmp_path: Path) -> None:
    for parameters, seconds in (
        ("", 30),
        ("(null)", 30),
        ("bf_interval=10,sched_interval=20", 10),
        ("bf_interval=-1", 60),
        ("sched_interval=5", 5),
    ):
        config = {"SchedulerType": "sched/backfill", "SchedulerParameters": parameters}
        assert start_delay(config).seconds == seconds, parameters
    assert start_delay({"SchedulerType": "sched/builtin"}).seconds == 60


def test_a_heartbeat_is_one_number_and_a_missing_folder_is_no_error(tmp_path: Path) -> None:
    beat = heartbeat_file(tmp_path / "tocsin.sock")
    write_heartbeat(beat, 1794775393.7)
    assert beat.read_text() == "1794775393\n"
    write_heartbeat(tmp_path / "no" / "heartbeat", 1.0)


def test_a_site_sets_how_long_sbatch_waits_for_advice_and_never_without_a_limit(
    tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "slurm"
    folder.mkdir()
    tocsin("slurm", "install", "--folder", folder, "--yes")
    library = folder / "tocsin_cli_filter.lua"
    assert 'local DEADLINE = "0.150"' in library.read_text()
    monkeypatch.setenv("TOCSIN_POLICY__ADVICE_MILLISECONDS", "1200")
    [status, _] = json.loads(tocsin("slurm", "status", "--folder", folder, "--json").out)["hooks"]
    assert (status["current"], status["fix"]) == (False, "tocsin slurm install cli_filter")
    tocsin("slurm", "install", "--folder", folder, "--yes")
    assert 'local DEADLINE = "1.200"' in library.read_text()
    for wrong in ("0", "10001"):
        monkeypatch.setenv("TOCSIN_POLICY__ADVICE_MILLISECONDS", wrong)
        refused = tocsin("slurm", "install", "--folder", folder, "--yes")
        assert (refused.code, refused.out) == (1, "")
        assert f"policy.advice_milliseconds is {wrong}; it must be 1 to 10000" in refused.err


def test_the_hook_asks_the_socket_of_the_settings_and_status_names_it(
    tocsin: Tocsin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, first, second = tmp_path / "slurm", tmp_path / "a" / "a.sock", tmp_path / "b" / "b.sock"
    folder.mkdir()
    library = folder / "tocsin_cli_filter.lua"

    def status() -> dict[str, object]:
        [found, _] = json.loads(tocsin("slurm", "status", "--folder", folder, "--json").out)["hooks"]
        return dict(found)

    tocsin("slurm", "install", "--folder", folder, "--yes")
    assert 'local SOCKET = "/run/tocsin/tocsin.sock"' in library.read_text()
    tocsin("slurm", "install", "--folder", folder, "--socket", first, "--yes")
    found = status()
    assert (found["current"], found["fix"]) == (True, "")
    assert f"no service answers at {first} on this host" in str(found["text"])
    first.parent.mkdir()
    write_heartbeat(heartbeat_file(first), time.time())
    assert f"the service at {first} answered" in str(status()["text"])
    tocsin("slurm", "install", "--folder", folder, "--yes")
    assert f'local SOCKET = "{first}"' in library.read_text(), "installing again keeps it"

    monkeypatch.setenv("TOCSIN_SERVICE__SOCKET", str(second))
    found = status()
    assert f"installed for the socket {first}, but service.socket is {second}" in str(found["text"])
    assert found["fix"] == "tocsin slurm install cli_filter"
    tocsin("slurm", "install", "--folder", folder, "--yes")
    assert f'local SOCKET = "{second}"' in library.read_text()
    assert f'local HEARTBEAT = "{second.with_name("heartbeat")}"' in library.read_text()
    assert status()["current"] is True
