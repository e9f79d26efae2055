"""Secrets are read only from files that nobody else can read."""

from pathlib import Path

import pytest

from tocsin.core.errors import SettingsError
from tocsin.sources.secrets import read_secret


def test_a_secret_is_read_without_the_white_space_around_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("\n  s3cret \n")
    file.chmod(0o640)
    assert read_secret(file) == "s3cret"


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o602])
def test_a_secret_that_others_can_read_or_write_is_refused_with_the_command_that_mends_it(
    tmp_path: Path, mode: int
) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret")
    file.chmod(mode)
    with pytest.raises(SettingsError, match=f"chmod 600 {file}") as refusal:
        read_secret(file)
    assert "s3cret" not in str(refusal.value)


def test_a_missing_an_empty_and_a_huge_file_and_a_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        read_secret(tmp_path / "none")
    with pytest.raises(SettingsError, match="directory"):
        read_secret(tmp_path)
    for text, words in (("  \n", "empty"), ("x" * 100_000, "too long")):
        file = tmp_path / "token"
        file.write_text(text)
        file.chmod(0o600)
        with pytest.raises(SettingsError, match=words):
            read_secret(file)
