"""SIGKILL every writing command at many points, run it again, and compare with a home where nothing was killed.

A command that was killed before it wrote anything leaves what one run leaves; one that was killed after its work was
stored leaves what two runs leave. Anything else is lost, doubled or left behind.
"""

import hashlib
import json
import os
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

__all__ = ["COMMANDS", "run", "survey"]

KILLS = 20
_HOME = "HOME_FOLDER"
_WORK = "WORK_FOLDER"
_SMALL_CAMPAIGN = ["--nodes", "2", "--cpus", "4", "--seconds", "300"]
COMMANDS: Mapping[str, list[str]] = {
    "import": ["import", f"{_WORK}/log.swf", "-M", "swf"],
    "demo": ["demo", "--days", "3"],
    "screen": ["screen"],
    "watch": ["watch", "--demo", "--once", "--speed", "1"],
    "train failure": ["train", "failure", "-M", "demo", "--trials", "1"],
    "train workload": ["train", "workload", "--rules", f"{_WORK}/rules.toml"],
    "threshold": ["threshold", "-M", "demo", "--rule", "precision_at_least=0.9"],
    "models promote": ["models", "promote", "failure", "1", "-M", "demo", "--why", "bench"],
    "models rollback": ["models", "rollback", "failure", "-M", "demo"],
    "allow add": ["allow", "add", "ai", "--user", "ann"],
    "allow remove": ["allow", "remove", "1"],
    "allow default": ["allow", "default", "ai", "never"],
    "cases confirm": ["cases", "confirm", "1"],
    "cases dismiss": ["cases", "dismiss", "1"],
    "answer": ["answer", "10", "failed", "-M", "lab"],
    "campaign simulate": ["campaign", "simulate", f"{_HOME}/campaign", *_SMALL_CAMPAIGN],
    "traces import": ["traces", "import", f"{_WORK}/campaign", "-M", "lab"],
    "traces train": ["traces", "train", f"{_WORK}/campaign", "-M", "lab", "--seconds", "1"],
    "profiles": ["profiles", "--store", "-M", "demo", "--out", f"{_HOME}/charts"],
    "prune": ["prune", "--days", "1"],
    "backup": ["backup", f"{_WORK}/backup"],
    "nightly": ["nightly", "-M", "demo"],
}
_BEFORE = {"nightly": ["demo", "--days", "7"], "allow remove": COMMANDS["allow add"]}
"""What is run on the home first: for `nightly`, days that the models in it were not trained on."""
_FREE = ("watch",)
"""How far it gets depends on the clock, so that two homes differ; the rest is checked."""


def survey(names: list[str], kills: int) -> dict[str, Any]:
    """For each command what was wrong after how many kills."""
    _import_all()
    with tempfile.TemporaryDirectory(prefix="tocsin-kills-") as folder:
        work = Path(folder)
        _prepare(work)
        return {name: _command(work, name, kills) for name in names}


def _command(work: Path, name: str, kills: int) -> dict[str, Any]:
    arguments = [word.replace(_WORK, str(work)) for word in COMMANDS[name]]
    home, base = work / "home", work / "base"
    if name in _BEFORE:
        _fresh(work, base)
        assert _run(home, _BEFORE[name]) == 0, name
        home.rename(base := work / f"base of {name}")
    _fresh(work, base)
    start = time.monotonic()
    first = _run(home, arguments)
    seconds = time.monotonic() - start
    once = _state(work)
    _run(home, arguments)
    allowed = [once, _state(work)]
    wrong, died = [], 0
    for number in range(kills):
        _fresh(work, base)
        died += _run(home, arguments, kill_after=seconds * (number + 0.5) / kills) is None
        _run(home, arguments)
        found = _state(work)
        trouble = _trouble(work, found, pruned=name == "prune")
        if name not in _FREE and found not in allowed:
            trouble.append(f"neither one run nor two: {_difference(found, once)}")
        wrong += [f"kill {number + 1}: {each}" for each in trouble]
    return {
        "exit_code": first,
        "kills": kills,
        "died": died,
        "wrong": wrong[:5],
        "seconds": round(seconds, 2),
    }


def _import_all() -> None:
    """What a command loads, so that a fork of this process starts at once; nothing of it is used here, only in forks."""
    from importlib import import_module

    from tocsin.cli.main import cli

    for name in cli.commands:
        assert cli.commands[name]
    for module in (
        "polars",
        "sqlalchemy",
        "alembic.command",
        "tocsin.failure.detector",
        "tocsin.workload.detector",
    ):
        import_module(module)


def _run(home: Path, arguments: list[str], kill_after: float | None = None) -> int | None:
    """Its exit code; None if it was killed."""
    child = os.fork()
    if not child:
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(null, stream)
            for name in [name for name in os.environ if name.startswith("TOCSIN_")]:
                del os.environ[name]
            os.environ |= {
                "TOCSIN_SINKS__log__KIND": "log",
                "TOCSIN_SINKS__log__FILE": str(home / "verdicts.log"),
                "TOCSIN_WORKLOAD__BETA_DAYS": "0",
                "HOME": str(home),
            }
            from tocsin.cli.main import run

            run(["--home", str(home), *(word.replace(_HOME, str(home)) for word in arguments)])
        except SystemExit as ended:
            os._exit(ended.code if isinstance(ended.code, int) else 0)
        finally:
            os._exit(70)
    if kill_after is not None:
        deadline = time.monotonic() + kill_after
        while time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return None if code == -signal.SIGKILL else code


def _prepare(work: Path) -> None:
    """A home with jobs, scripts, cases and two failure models."""
    home = work / "base"
    rows = (f"{n} {n * 60} 5 100 4 90 1000 4 200 2000 1 7 1 3 1 1 -1 -1" for n in range(1, 30_000))
    (work / "log.swf").write_text("; UnixStartTime: 1700000000\n" + "\n".join(rows) + "\n")
    (work / "rules.toml").write_text('[bitfarm]\nwords = ["farmer"]\n')
    assert _run(work / "unused", ["campaign", "simulate", str(work / "campaign"), *_SMALL_CAMPAIGN]) == 0
    for arguments in (
        ["demo", "--days", "2"],
        ["train", "failure", "-M", "demo", "--trials", "1"],
        ["train", "failure", "-M", "demo", "--trials", "1", "--seed", "2"],
    ):
        assert _run(home, arguments) == 0, arguments
    child = os.fork()
    if not child:
        try:
            _add_miner(home)
            os._exit(0)
        finally:
            os._exit(70)
    assert os.waitpid(child, 0)[1] == 0
    copy = work / "screened"
    shutil.copytree(home, copy)
    assert _run(copy, ["screen"]) == 0
    # the case is open in the base, and one more job waits to be screened
    shutil.rmtree(home)
    copy.rename(home)
    child = os.fork()
    if not child:
        try:
            _add_miner(home, number=2)
            os._exit(0)
        finally:
            os._exit(70)
    assert os.waitpid(child, 0)[1] == 0


def _add_miner(home: Path, number: int = 1) -> None:
    import polars as pl

    from tocsin.core.frames import SCHEMA
    from tocsin.store.database import open_store
    from tocsin.store.home import Home
    from tocsin.store.jobs import upsert
    from tocsin.store.scriptfiles import save_script

    made = Home(home)
    text = f"#!/bin/bash\n./xmrig -o stratum+tcp://pool.example:3333 -u {number} --donate-level 1\n"
    job = {
        "cluster": "lab",
        "submit": 1_700_000_000 + number,
        "user": "eve",
        "script": save_script(made.scripts, text),
    }
    rows = [{**dict.fromkeys(SCHEMA), **job, "job_id": 10 * number + n} for n in range(3)]
    with open_store(made.url) as store:
        upsert(store, pl.DataFrame(rows, schema=SCHEMA, orient="row"))


def _fresh(work: Path, base: Path) -> None:
    for name in ("home", "backup"):
        shutil.rmtree(work / name, ignore_errors=True)
    shutil.copytree(base, work / "home")


def _state(work: Path) -> dict[str, Any]:
    """What is kept, without instants."""
    home = work / "home"
    found: dict[str, Any] = {
        "scripts": sorted(path.name for path in (home / "scripts").iterdir()),
        "log": sorted(_log(home)),
        "charts": sorted(path.name for path in (home / "charts").glob("*")),
        "campaign": sorted(path.name for path in (home / "campaign").glob("*")),
        "windows": {
            str(path.relative_to(home)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted((home / "windows").rglob("*.*"))
        },
    }
    with closing(sqlite3.connect(home / "tocsin.db")) as store:
        tables = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in sorted(tables):
            found[table] = store.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
        found["jobs"] = store.execute(
            "SELECT cluster, job_id, task, submit, outcome FROM jobs ORDER BY 1, 2, 3, 4"
        ).fetchall()
        found["verdicts"] = store.execute("SELECT job, stage, seq FROM verdicts ORDER BY 1, 2, 3").fetchall()
    for path in sorted((home / "models").rglob("*.json")):
        if path.name == "aliases.json":
            found[str(path.relative_to(home))] = json.loads(path.read_text())
        if path.name == "card.json":
            found[str(path.relative_to(home))] = len(json.loads(path.read_text())["promotions"])
        if path.name == "nightly.json":
            found["nightly"] = [
                [entry[name] for name in ("step", "champion", "challenger", "promoted", "why")]
                for entry in json.loads(path.read_text())["entries"]
            ]
    backup = work / "backup"
    if backup.is_dir():
        found["backup"] = sorted(str(path.relative_to(backup)) for path in backup.rglob("*"))
    return found


def _log(home: Path) -> list[str]:
    path = home / "verdicts.log"
    return [json.loads(line)["id"] for line in path.read_text().splitlines()] if path.exists() else []


def _trouble(work: Path, found: dict[str, Any], *, pruned: bool) -> list[str]:
    home, trouble = work / "home", []
    left = [
        *home.rglob(".new-*"),
        *work.glob(".tocsin-backup-*"),
        *home.rglob("*.tmp"),
        *home.rglob("*.part*"),
    ]
    if left:
        trouble.append(f"left behind: {', '.join(str(path.relative_to(work)) for path in left)}")
    if len(set(found["log"])) != len(found["log"]):
        trouble.append("a verdict is in the log twice")
    with closing(sqlite3.connect(home / "tocsin.db")) as store:
        if store.execute("PRAGMA quick_check").fetchone() != ("ok",):
            trouble.append("the database is damaged")
        documents = [json.loads(text) for (text,) in store.execute("SELECT document FROM verdicts")]
        waiting = store.execute("SELECT count(*) FROM outbox").fetchone()[0]
    stored = {document["id"] for document in documents}
    missing = (
        stored - set(found["log"]) if pruned else stored ^ set(found["log"])
    )  # the log keeps what is pruned
    if missing or waiting:
        trouble.append(f"log and store differ by {len(missing)} verdicts; {waiting} wait in the outbox")
    return trouble


def _difference(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    names = [name for name in {**wanted, **found} if found.get(name) != wanted.get(name)]
    return ", ".join(
        f"{name}: {str(found.get(name))[:60]} for {str(wanted.get(name))[:60]}" for name in names[:4]
    )


def run(kills: int = KILLS) -> dict[str, Any]:
    found = survey(list(COMMANDS), kills)
    return {
        "kills": sum(result["kills"] for result in found.values()),
        "died": sum(result["died"] for result in found.values()),
        "wrong": sum(len(result["wrong"]) for result in found.values()),
        "commands": found,
    }
