"""Our Lua libraries, run by the Lua that Slurm's plug-ins load: what they change, and what never stops a submission."""

import ctypes
from pathlib import Path

import pytest

from tests.conftest import unavailable
from tests.slurm.stand_in import StandIn
from tocsin.slurm.heartbeat import heartbeat_file
from tocsin.slurm.hooks import HOOKS, library

NAMES = ("liblua5.1.so.0", "liblua5.3.so.0", "liblua5.4.so.0")


@pytest.fixture(scope="module")
def lua() -> ctypes.CDLL:
    for name in NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return unavailable(f"none of {', '.join(NAMES)} is on this machine; Slurm's packages bring one")


def run(lua: ctypes.CDLL, text: str) -> None:
    """Run a Lua text; its error is ours."""
    lua.luaL_newstate.restype = ctypes.c_void_p
    lua.lua_tolstring.restype = ctypes.c_char_p
    state = ctypes.c_void_p(lua.luaL_newstate())
    try:
        lua.luaL_openlibs(state)
        failed = lua.luaL_loadstring(state, text.encode())
        if not failed:
            if hasattr(lua, "lua_pcallk"):
                failed = lua.lua_pcallk(state, 0, 0, 0, 0, None)
            else:
                failed = lua.lua_pcall(state, 0, 0, 0)
        if failed:
            raise AssertionError(lua.lua_tolstring(state, -1, None).decode())
    finally:
        lua.lua_close(state)


def job_submit(tmp_path: Path, window: int) -> str:
    path = tmp_path / "tocsin_job_submit.lua"
    path.write_bytes(library(HOOKS["job_submit"], {"WINDOW": window}))
    return f'slurm = {{SUCCESS = 0, ERROR = -1}}\nlocal load = function() pcall(dofile, "{path}") end\n'


def test_a_batch_job_gets_an_earliest_start_and_a_later_one_is_kept(lua: ctypes.CDLL, tmp_path: Path) -> None:
    run(
        lua,
        job_submit(tmp_path, 20)
        + """
        load()
        local now = os.time()
        local function begin(job) assert(slurm_job_submit(job, {}, 1000) == 0); return job.begin_time end
        local set = begin({script = "#!/bin/sh", begin_time = 0})
        assert(set >= now + 20 and set <= now + 22, set)
        assert(begin({script = "#!/bin/sh", begin_time = now + 500}) == now + 500)
        assert(begin({script = "#!/bin/sh", begin_time = 4294967294}) <= now + 22, "no value")
        assert(begin({begin_time = 0}) == 0, "not a batch job")
        assert(begin({script = "#!/bin/sh", begin_time = 0, immediate = 1}) == 0, "immediate")
        """,
    )


def test_with_a_window_of_zero_nothing_is_changed(lua: ctypes.CDLL, tmp_path: Path) -> None:
    run(
        lua,
        job_submit(tmp_path, 0)
        + """
        load()
        local job = {script = "#!/bin/sh", begin_time = 0}
        assert(slurm_job_submit(job, {}, 1000) == 0 and job.begin_time == 0)
        local change = {begin_time = 5}
        assert(slurm_job_modify(change, {user_id = 1000, submit_time = os.time()}, {}, 1000) == 0 and change.begin_time == 5)
        """,
    )


def test_only_an_owner_within_the_window_is_kept_from_moving_the_start(
    lua: ctypes.CDLL, tmp_path: Path
) -> None:
    run(
        lua,
        job_submit(tmp_path, 20)
        + """
        load()
        local now = os.time()
        local function moved(uid, submit, begin)
          local change = {begin_time = begin}
          assert(slurm_job_modify(change, {user_id = 1000, submit_time = submit}, {}, uid) == 0)
          return change.begin_time
        end
        assert(moved(1000, now, now) == now + 20)
        assert(moved(1000, now, now + 60) == now + 60, "later is fine")
        assert(moved(1000, now - 30, now) == now, "the window is over")
        assert(moved(0, now, now) == now, "root")
        assert(moved(2000, now, now) == now, "an operator")
        assert(moved(1000, now, 0) == 0, "the start was not moved")
        """,
    )


def test_the_sites_own_functions_are_called_first_and_their_refusal_stands(
    lua: ctypes.CDLL, tmp_path: Path
) -> None:
    run(
        lua,
        job_submit(tmp_path, 20)
        + """
        local calls = 0
        function slurm_job_submit(job, partitions, uid) calls = calls + 1; return uid == 7 and slurm.ERROR or slurm.SUCCESS end
        load()
        local job = {script = "x", begin_time = 0}
        assert(slurm_job_submit(job, {}, 7) == slurm.ERROR and job.begin_time == 0)
        assert(slurm_job_submit(job, {}, 8) == slurm.SUCCESS and job.begin_time > 0 and calls == 2)
        """,
    )


def test_a_job_that_cannot_be_read_is_submitted_unchanged(lua: ctypes.CDLL, tmp_path: Path) -> None:
    run(
        lua,
        job_submit(tmp_path, 20)
        + """
        load()
        local broken = setmetatable({}, {__index = function() error("no such field") end})
        assert(slurm_job_submit(broken, {}, 1000) == 0)
        assert(slurm_job_modify(broken, broken, {}, 1000) == 0)
        """,
    )


def cli_filter(folder: Path, socket: Path) -> str:
    path = folder / "tocsin_cli_filter.lua"
    values = {"SOCKET": str(socket), "HEARTBEAT": str(heartbeat_file(socket)), "DEADLINE": "0.150"}
    path.write_bytes(library(HOOKS["cli_filter"], values))
    return f'slurm = {{SUCCESS = 0, ERROR = -1}}\npcall(dofile, "{path}")\n'


def test_sbatch_is_never_stopped_whatever_its_options_are(lua: ctypes.CDLL, tmp_path: Path) -> None:
    with StandIn(tmp_path / "service") as service:
        text = cli_filter(tmp_path, service.socket_file)
        for options in (
            "{}",
            "{type = 'srun'}",
            "{type = 'sbatch'}",
            "{type = 'sbatch', argv = {[0] = '/no/such/script'}}",
            "{type = 'sbatch', argv = 'x', wrap = 7}",
            "setmetatable({}, {__index = function() error('no') end})",
            "nil",
        ):
            run(lua, f"{text}\nassert(slurm_cli_pre_submit({options}, 0) == 0)")
    run(lua, f"{text}\nassert(slurm_cli_pre_submit({{type = 'sbatch', wrap = 'true'}}, 0) == 0)")
    assert service.asked == [], "standard error is no terminal here"


def test_a_sites_refusal_of_an_option_stands(lua: ctypes.CDLL, tmp_path: Path) -> None:
    site = "function slurm_cli_pre_submit(options, offset) return -7 end\n"
    text = cli_filter(tmp_path, tmp_path / "tocsin.sock")
    run(lua, f"{site}{text}\nassert(slurm_cli_pre_submit({{type = 'sbatch'}}, 0) == -7)")
