"""Record campaigns on this host's kernel: `python -m bench.campaigns FOLDER [SPLIT…]`, as root, with the machine quiet.

One Slurm node with two CPUs, jobs bound to their CPUs, two jobs at a time. The recording in bench/recordings was made so.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from tests.services.slurm import SlurmLab

__all__ = ["record"]

SPLITS = ("train", "validation", "test")
NORMAL = ("fit", "good_io", "fit", "idle", "mpi_2")
ANOMALIES = (  # in pairs that run side by side
    *("bad_io", "good_io"),
    *("cpu_hog", "memory_leak"),
    *("cache_thrashing", "throttling"),
    *("metadata_storm", "fit"),
)
NOTES = (
    "One host with 2 CPUs: Slurm's daemons, its database and the recorder run on the same CPUs as the jobs.",
    "A virtual machine: time that the hypervisor takes away counts as `other`, and disk speed varies.",
    "Jobs on the two CPUs share the disk and the caches, so each may show in the traces of the other.",
)


def record(lab: SlurmLab, folder: Path, split: str, types: list[str], seconds: int, prefix: list[str]) -> int:
    """Run one campaign on a lab; the exit code of `tocsin campaign run`."""
    tocsin = [sys.executable, "-c", "from tocsin.cli.main import run; run()"]
    notes = [word for note in NOTES for word in ("--note", note)]
    options = ["--split", split, "--types", ",".join(types), "--seconds", str(seconds)]
    command = [
        *tocsin,
        "campaign",
        "run",
        str(folder / split),
        *options,
        "-M",
        lab.cluster,
        "-w",
        "n1",
        *notes,
    ]
    return subprocess.run([*prefix, *command], env={**os.environ, **lab.env}, check=False).returncode


def main() -> None:
    """Read the command line and record."""
    parser = argparse.ArgumentParser(prog="python -m bench.campaigns", description=__doc__)
    parser.add_argument("folder", type=Path, help="gets a folder for each split")
    parser.add_argument("splits", nargs="*", default=SPLITS, metavar="SPLIT", help="default: all three")
    parser.add_argument("--seconds", type=int, default=130, help="of each job (default: 130)")
    parser.add_argument("--types", default=",".join((*NORMAL, *ANOMALIES)), help="default: all")
    parser.add_argument("--prefix", default="", help="command in front of each campaign, such as flock FILE")
    chosen = parser.parse_args()
    with SlurmLab(nodes=1, cpus=2, bound=True) as lab:
        for split in chosen.splits:
            types, prefix = chosen.types.split(","), chosen.prefix.split()
            if code := record(lab, chosen.folder, split, types, chosen.seconds, prefix):
                parser.exit(code, f"the campaign for {split} is not complete\n")


if __name__ == "__main__":
    main()
