"""Kinds of files, by their names, and whether a redirection writes one."""

import re

__all__ = [
    "CODE_FILE",
    "DATA_FILE",
    "FILE_NAME",
    "FOR_PEOPLE",
    "PAPER",
    "RECIPE",
    "SCRIPT_FILE",
    "SETTINGS_FILE",
    "SHELL_FILE",
    "STARTUP_FILE",
    "is_file",
]

SHELL_FILE = re.compile(r"\.(?:sh|slurm|sbatch|pbs|job|sub|lsf|bash|csh)$")
PAPER = re.compile(
    r"(?<!CMakeLists)\.(?:md|rst|html?|tex|log|txt|csv|tsv|bib|adoc|rules|out|err|dat)$|^README|^NOTES|^null$"
)
"""Files that people read."""
FOR_PEOPLE = re.compile(r"\.(?:md|rst|html?|tex|log|bib|adoc|rules)$|^README|^NOTES|^null$")
"""Those of them that no scientific program reads."""
SETTINGS_FILE = re.compile(
    r"\.(?:json|jsonc|conf|cfg|ini|toml|ya?ml|env|service|config)$|^config|^[de]?pools\.txt$"
)
CODE_FILE = re.compile(
    r"\.(?:py|ipynb|pl|R|r|rb|m?js|ts|lua|jl|mk|nf|smk|tcl|exp|php|m|c|cc|cpp|f90|go|rs|java|kt|scala|groovy|raku|hs|mli?|exs?|cr|nim|swift|clj|scm|lisp|el|vim|tex|def)$|^(?:(?:[Mm]ake|Snake|Rake)file|CMakeLists\.txt)$"
)
SCRIPT_FILE = re.compile(
    r"\.(?:py|Rmd|qmd|pl|R|r|rb|m?js|ts|lua|jl|tcl|exp|php|m|go|rs|java|kt|scala|groovy|raku|hs|mli?|exs?|cr|nim|swift|clj|scm|lisp|el|vim)$"
)
"""Code in languages in which a few characters make text from other text."""
RECIPE = re.compile(
    r"\.(?:mk|ninja|cmake|nf|smk|cwl|wdl|gradle|just)$|^(?:(?:GNU)?[Mm]akefile|CMakeLists\.txt|SCons\w+|wscript|meson\.build|build\.xml|pom\.xml|Snakefile"
    r"|[Rr]akefile|[Jj]ustfile|Taskfile\.ya?ml|package\.json|(?:docker-)?compose\.ya?ml|(?:playbook|site)\.ya?ml|WORKSPACE|BUILD)$"
)
"""Files in which build and workflow tools find commands."""
STARTUP_FILE = re.compile(r"^\.(?:bashrc|bash_\w+|profile|zsh\w+|kshrc|cshrc|tcshrc|login|logout|envrc)$")
"""Files that a shell runs by itself."""

_DATA_ENDS = (
    "bam sam cram fastq fq fa fasta fai vcf bcf bed gff3? gtf nc h5 hdf5 csv tsv txt log out err npy npz pt pth pkl png pdf svg avi mp4 dcd gro"
    " tpr pdb xtc trr mdp inp dat nii mat rds RData root tif tiff jpg sif img gz bz2 xz tar fits ms mesh grb grib2? parquet ndx top xyz list"
)
DATA_FILE = re.compile(rf"\.(?:{'|'.join(_DATA_ENDS.split())})$")
"""What scientific programs read and write."""
_MARKED = "[\0\1]"
FILE_NAME = re.compile(
    rf"^(?!/dev/|/proc/)(?:-{{0,2}}\w[\w.-]*=)?(?:[.~]{{0,2}}|{_MARKED}|\w[\w.-]*)/(?!/)(?!.*(?:://|@|[\w\0\1]:\d))|^[^:@]*{DATA_FILE.pattern}"
)
"""The name of a file: in a folder that is not computed, or with a suffix that no host has."""


def is_file(operator: str, target: str) -> bool:
    """Whether a redirection writes a file."""
    return operator in (">", ">>", ">|", "&>", "&>>") and not target.startswith(
        ("&", "/dev/null", "/dev/std", "/dev/tty")
    )
