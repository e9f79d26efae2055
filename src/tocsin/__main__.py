"""`python -m tocsin`: the same as the command `tocsin`."""

from tocsin.cli.main import run

if __name__ == "__main__":
    run()
