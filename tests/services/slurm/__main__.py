"""A Slurm cluster for developers: `python -m tests.services.slurm up`, later `down FOLDER` with the folder that `up` printed."""

import argparse
from pathlib import Path

from tests.services.daemons import ServiceError
from tests.services.slurm.lab import SlurmLab


def up(nodes: int, bound: bool) -> None:
    """Start a lab that stays up, and print what a shell needs to use it."""
    lab = SlurmLab(nodes=nodes, bound=bound).start(owned=False)
    print(f"export SLURM_CONF={lab.conf}")
    print(f"# slurmrestd: {lab.rest_url} and unix socket {lab.rest_socket}; root's token: {lab.token_file}")
    print(f"# submit in {lab.folder}/home-alice: setpriv --reuid alice --regid alice --clear-groups sbatch …")
    print(f"# stop it: python -m tests.services.slurm down {lab.folder}")


def main() -> None:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m tests.services.slurm", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    starting = actions.add_parser("up")
    starting.add_argument("--nodes", type=int, default=4, help="nodes of the cluster (default 4)")
    starting.add_argument("--bound", action="store_true", help="keep jobs to the CPUs of their allocation")
    # Several labs may run side by side, other people's too: only the one that is named is stopped.
    actions.add_parser("down").add_argument("folder", type=Path, help="the folder that `up` printed")
    chosen = parser.parse_args()
    try:
        if chosen.action == "up":
            up(chosen.nodes, chosen.bound)
        else:
            SlurmLab.at(chosen.folder).stop()
    except ServiceError as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
