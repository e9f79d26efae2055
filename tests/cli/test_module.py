"""tocsin as a module of Python."""

import subprocess
import sys

from tocsin import __version__


def test_python_m_tocsin_is_the_same_command() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "tocsin", "--version"], capture_output=True, text=True, check=True
    )
    assert found.stdout == f"tocsin {__version__}\n"
