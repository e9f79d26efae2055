from pathlib import Path

import pytest

from tocsin.core.errors import StoreError
from tocsin.store.home import SERVICE_HOME, Home


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
