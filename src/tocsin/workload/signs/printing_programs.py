"""Programs by what they print or write: their input, numbers, paths, or text from outside the script."""

import re

__all__ = [
    "ASK_SERVERS",
    "CODE",
    "COMPILERS",
    "DECODERS",
    "ECHOES",
    "FILTERS",
    "HARMLESS",
    "KEEPS",
    "NUMBERS",
    "PATHS",
    "REVEALS",
    "SEARCHES",
    "SHELL_STATE",
    "STARTERS",
    "WRITERS",
]

FILTERS = frozenset(
    """tr sed rev cut awk gawk mawk nawk paste fold tac od hexdump perl sort head tail uniq column fmt join jq yq envsubst
    m4 cpp nl split dd gzip gunzip zcat xz expand comm shuf pr colrm""".split()  # noqa: SIM905
)
"""Programs whose output is their input, changed or filtered."""
DECODERS = frozenset("xxd base64 base32 basenc openssl uudecode iconv dc gpg".split())  # noqa: SIM905
"""Programs that make other text, even from numbers."""
KEEPS = frozenset("cat tee xargs".split())  # noqa: SIM905
NUMBERS = frozenset("bc wc md5sum sha1sum sha256sum cksum factor nproc arch uptime".split())  # noqa: SIM905
"""Programs whose output has nothing of their input text."""
SEARCHES = frozenset("grep egrep fgrep zgrep".split())  # noqa: SIM905
"""Programs whose output is whole lines of their input, unless told otherwise."""
ASK_SERVERS = frozenset("curl wget dig drill kdig nslookup aria2c http lynx w3m nc ncat socat".split())  # noqa: SIM905
"""Programs that print a server's response."""
HARMLESS = frozenset(
    """eval command which type date hostname pwd dirname basename readlink realpath mktemp find ls du df stat whoami id uname
    getconf lscpu free nvidia-smi rocm-smi squeue scontrol sacct sinfo qstat conda mamba spack git module test [ [[ true false hash
    whereis tput getent host dig logname uuidgen tempfile pgrep pidof nodeset seq expr sleep cd wget curl mkdir rm cp mv read
    getopt numfmt modulecmd scram scramv1 ssh-agent tty set shopt env printenv declare sbatch qsub bsub""".split()  # noqa: SIM905
)
"""Programs whose output comes from outside the script, unless they get its own text or files."""
REVEALS = frozenset("git squeue scontrol sacct qstat set env printenv declare type getent host dig".split())  # noqa: SIM905
"""Those of them that may print the script, its directives or the job's request, or the address of a host."""
SHELL_STATE = frozenset(
    "env printenv declare typeset export alias history fc trap dirs caller compgen ps mkdir cp mv rm".split()  # noqa: SIM905
)
"""Commands that print what the script has set, run or named."""
PATHS = frozenset("dirname basename readlink realpath which command whereis".split())  # noqa: SIM905
"""Those of them that print their argument, or a part of it."""
WRITERS = frozenset("dd install patch sponge cpio uudecode git split csplit".split())  # noqa: SIM905
"""Programs that write their input into given files."""
COMPILERS = frozenset(
    "cc gcc g++ c++ clang clang++ icc icx gfortran ifort tcc go rustc ghc nvcc mpicc".split()  # noqa: SIM905
)
STARTERS = frozenset(
    "srun mpirun mpiexec ssh timeout time sudo nice nohup stdbuf command builtin exec eval env busybox".split()  # noqa: SIM905
)
"""Programs that run another one and print its output."""
ECHOES = frozenset("echo printf print yes".split())  # noqa: SIM905
CODE = re.compile(
    r"(?:python[\d.]*|pypy\d?|perl|ruby|node|nodejs|php|lua|luajit|Rscript|julia|octave|tclsh|awk|gawk|mawk|nawk|jq)$"
)
"""Programs that read code on their command line."""
