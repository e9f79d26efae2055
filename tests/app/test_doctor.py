"""`doctor`: every link to Slurm is reported, and each that is broken with its fix."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from tocsin.app import doctor_slurm
from tocsin.app.app import App
from tocsin.app.doctor import Finding, Status, doctor
from tocsin.core.errors import StoreError

CONFIG = "ClusterName = lab\nAccountingStorageType = accounting_storage/slurmdbd\nMinJobAge = 300 sec\n"
DOWN = "echo 'sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection' >&2; exit 1"


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    """Beside a Slurm whose slurmdbd is down."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (tmp_path / "config").write_text(CONFIG)
    for name, text in {
        "scontrol": f'case "$1" in --version) echo slurm 22.05.8;; *) cat {tmp_path}/config;; esac',
        "squeue": "exit 0",
        "sacct": DOWN,
        "sacctmgr": DOWN,
    }.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return App(folder=str(tmp_path / "home"), environ={"HOME": str(tmp_path), "TZ": "UTC"})


def found(app: App) -> dict[str, Finding]:
    with app:
        return {finding.link: finding for finding in doctor(app)}


def test_a_slurmdbd_that_is_down_is_named_with_its_fix_and_hides_no_other_link(app: App) -> None:
    links = found(app)
    accounting = links["accounting"]
    assert accounting.status is Status.BROKEN
    assert "persistent connection" in accounting.text
    assert "slurmdbd" in accounting.fix
    assert "scripts" in links
    assert links["slurmctld"].status is Status.FINE


def test_a_user_whose_rights_only_slurmdbd_knows_is_told_that_they_are_unknown(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_slurm, "user_name", lambda: "watcher")
    scripts = found(app)["scripts"]
    assert scripts.status is Status.NOTE
    assert "does not say whether user watcher may read them" in scripts.text
    assert scripts.fix


@pytest.mark.parametrize(
    ("printed", "status"),
    [
        ("slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)", Status.BROKEN),
        (
            "scontrol: error: resolve_ctls_from_dns_srv: res_nsearch error: Host name lookup failure",
            Status.ABSENT,
        ),
    ],
)
def test_a_slurmctld_that_does_not_answer_is_broken_unless_the_host_belongs_to_no_cluster(
    app: App, tmp_path: Path, printed: str, status: Status
) -> None:
    """Before anything else is set up, that is what doctor is for."""
    scontrol = tmp_path / "bin" / "scontrol"
    scontrol.write_text(f"#!/bin/sh\necho '{printed}' >&2; exit 1\n")
    slurmctld = found(app)["slurmctld"]
    assert slurmctld.status is status
    assert "scontrol ping" in slurmctld.fix


def test_a_full_disk_is_broken(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    free = 10 << 20
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
    assert found(app)["home"].status is Status.BROKEN
    free = 500 << 20
    home = found(app)["home"]
    assert (home.status, home.text.endswith("with 500 MiB free")) == (Status.NOTE, True)


def test_whatever_is_broken_comes_with_a_fix(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(_: App) -> None:
        raise StoreError("the store was locked by another process for 30 s")

    monkeypatch.setattr(App, "store", property(locked))
    monkeypatch.setattr("tocsin.judge.plugins.find_detectors", lambda: locked(app))
    broken = [finding for finding in found(app).values() if finding.status is Status.BROKEN]
    assert len(broken) >= 4
    assert all(finding.fix for finding in broken), broken
