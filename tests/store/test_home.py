"""The home folder: where it is and who may enter."""

import os
import pwd
from pathlib import Path

import pytest

from tests.kits.job_frames import many
from tocsin.app.app import App
from tocsin.core.errors import StoreError
from tocsin.sinks.log import Log
from tocsin.store.database import open_store
from tocsin.store.home import SERVICE_HOME, Home, user_name
from tocsin.store.jobs import upsert
from tocsin.store.retention import backup
from tocsin.store.scriptfiles import save_script

NOBODY = pwd.getpwnam("nobody")


def test_TOCSIN_HOME_moves_it(tmp_path: Path) -> None:
    assert Home.default({"TOCSIN_HOME": str(tmp_path)}, user="tocsin").root == tmp_path


def test_the_service_has_its_folder_and_a_user_the_data_folder() -> None:
    assert Home.default({}, user="tocsin").root == SERVICE_HOME
    assert Home.default({"HOME": "/home/ana"}, user="ana").root == Path("/home/ana/.local/share/tocsin")
    assert Home.default({"HOME": "/home/ana", "XDG_DATA_HOME": "/data/ana"}, user="ana").root == Path(
        "/data/ana/tocsin"
    )


def test_a_relative_data_folder_is_ignored_as_xdg_says() -> None:
    home = Home.default({"HOME": "/home/ana", "XDG_DATA_HOME": "data"}, user="ana")
    assert home.root == Path("/home/ana/.local/share/tocsin")


def test_others_cannot_look_into_a_new_home(tmp_path: Path) -> None:
    home = Home(tmp_path / "deep" / "home").prepare()
    assert home.root.stat().st_mode & 0o777 == 0o700
    assert home.scripts.is_dir()
    assert home.prepare() == home


def test_a_home_that_cannot_be_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="TOCSIN_HOME"):
        Home(tmp_path / "file" / "home").prepare()


def test_a_home_that_others_can_write_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    home.root.chmod(0o777)
    with pytest.raises(StoreError, match=f"chmod o-w {home.root}"):
        home.prepare()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_home_of_somebody_else_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    os.chown(home.root, 65534, 65534)
    with pytest.raises(StoreError, match=f"belongs to {pwd.getpwuid(65534).pw_name}"):
        home.prepare()


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_database_scripts_log_and_backup_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        (tmp_path / "open").mkdir(mode=0o755)
        home = Home(tmp_path / "open").prepare()
        (home.root / "tocsin.db").touch()  # made by hand, for everybody
        with open_store(home.url) as store:
            upsert(store, many(3))
            save_script(home.scripts, "#!/bin/sh\n")
            Log(home.root / "log", largest=0, files=1)
            copy = backup(store, home, tmp_path / "copy")
            made = [path for root in (home.root, copy) for path in root.rglob("*") if path.is_file()]
            modes = {str(path): path.stat().st_mode & 0o777 for path in made}
    finally:
        os.umask(before)
    assert any(name.endswith("-wal") for name in modes), (
        "the write-ahead log is there while the store is open"
    )
    assert {name: mode for name, mode in modes.items() if mode & ~0o640} == {}


def test_a_database_behind_a_link_of_ones_own_is_private_too(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    home.database.symlink_to(tmp_path / "large-disk.db")
    open_store(home.url).close()
    assert (tmp_path / "large-disk.db").stat().st_mode & 0o777 == 0o640


def test_a_link_that_leads_in_a_circle_is_no_database(tmp_path: Path) -> None:
    home = Home(tmp_path / "home").prepare()
    home.database.symlink_to(home.database)
    with pytest.raises(StoreError, match="cannot open the store"):
        open_store(home.url)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can work in the home of another user")
@pytest.mark.parametrize("there", [True, False])
def test_a_link_of_somebody_else_makes_and_changes_no_file_elsewhere(tmp_path: Path, there: bool) -> None:
    other = tmp_path / "other"
    if there:
        other.write_text("not theirs")
        other.chmod(0o644)
    home = Home(tmp_path / "home").prepare()
    home.database.symlink_to(other)
    os.lchown(home.database, NOBODY.pw_uid, NOBODY.pw_gid)
    with pytest.raises(StoreError, match=f"is a link of {NOBODY.pw_name} to a file that is not theirs"):
        open_store(home.url)
    assert other.exists() == there
    assert not there or (other.stat().st_mode & 0o777, other.read_text()) == (0o644, "not theirs")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can work in the home of another user")
def test_a_link_of_the_service_to_its_own_database_is_followed(tmp_path: Path) -> None:
    home, disk = Home(tmp_path / "home").prepare(), tmp_path / "large-disk.db"
    open_store(f"sqlite:///{disk}").close()
    home.database.symlink_to(disk)
    for path in (disk, home.database):
        os.lchown(path, NOBODY.pw_uid, NOBODY.pw_gid)
    with open_store(home.url) as store:
        assert store.found is not None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can work in the home of another user")
def test_what_root_makes_in_the_home_of_the_service_belongs_to_the_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command run by root on a new installation left a database that the service could not open."""
    monkeypatch.setattr("tocsin.store.home.SERVICE_USER", NOBODY.pw_name)
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to("disk")  # its owner may have put it on another disk
    (tmp_path / "elsewhere").write_text("")
    os.chown(tmp_path / "disk", NOBODY.pw_uid, NOBODY.pw_gid)
    with App(folder=str(tmp_path / "home")) as app:
        save_script(app.home.prepare().scripts, "#!/bin/sh\n")
        upsert(app.store, many(3))
        (app.home.cache / "link").symlink_to(tmp_path / "elsewhere")
        (app.home.cache / "name").hardlink_to(tmp_path / "elsewhere")
    found = {path.name: path.lstat().st_uid for path in (tmp_path / "disk").rglob("*")}
    assert (found.pop("name"), found.pop("link")) == (0, 0)
    assert set(found.values()) == {NOBODY.pw_uid}
    assert (tmp_path / "elsewhere").stat().st_uid == 0, "it is not in the home"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can work in the home of another user")
def test_what_root_has_in_a_folder_of_another_user_stays_roots(tmp_path: Path) -> None:
    """A wrong `--home` was refused, but gave all files of root in it away."""
    mine = tmp_path / "home" / "of-root"
    mine.parent.mkdir()
    mine.write_text("")
    os.chown(mine.parent, NOBODY.pw_uid, NOBODY.pw_gid)
    with App(folder=str(mine.parent)) as app, pytest.raises(StoreError, match="belongs to nobody"):
        app.store  # noqa: B018  # it is opened
    assert mine.stat().st_uid == 0


def test_the_user_is_the_one_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "mallory")
    assert user_name() == pwd.getpwuid(os.geteuid()).pw_name
    assert user_name(4_000_000_000) == "4000000000"
