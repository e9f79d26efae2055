"""The command line: parse a request, call one function below, render."""

__all__ = ["main"]


def main() -> None:
    """Entry point of the `tocsin` command."""
    from tocsin.cli.main import run

    run()
