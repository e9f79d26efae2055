"""Which programs run others, run text, only print, or are known to be harmless whatever they get."""

import re

__all__ = [
    "CLIENTS",
    "DISPLAYS",
    "EDITORS",
    "ENDS",
    "EXECUTORS",
    "KNOWN",
    "MAKERS",
    "NETWORK",
    "NO_PROGRAM",
    "RUN_SUBCOMMANDS",
    "RUN_TEXT",
    "SHELLS",
    "SUBMITS",
    "WRAPPERS",
    "is_known_path",
]

WRAPPERS = frozenset(
    """srun mpirun mpiexec mpiexec.hydra aprun jsrun ibrun nice ionice time timeout nohup stdbuf taskset numactl command exec sudo
    setsid builtin catchsegv strace perf chrt doas unshare chroot proot fakeroot valgrind orterun prun pbsdsh xargs env""".split()  # noqa: SIM905  # lists of words read best so
)
SHELLS = frozenset("sh bash zsh dash ksh csh tcsh fish ash rbash busybox".split())  # noqa: SIM905
SUBMITS = frozenset("sbatch qsub bsub salloc at batch parallel crontab source .".split())  # noqa: SIM905
"""Programs that run their input, as shells do."""
RUN_TEXT = SHELLS | frozenset(
    """eval source . trap ssh pdsh clush at batch su runuser watch flock script screen tmux parallel alias crontab systemd-run coproc
    sg newgrp sem sbatch qsub bsub salloc""".split()  # noqa: SIM905
)
"""Programs that run the text that they get."""
KNOWN = frozenset(
    """: [ [[ awk gawk mawk nawk basename bc bg break bunzip2 bzip2 cat cd chgrp chmod chown chdir cksum clear cmp column comm
    conda continue cp csplit curl cut date dd declare df diff dirname dirs disown dos2unix du echo egrep exit
    expand export expr factor false fg fgrep file find fmt fold function git getopts grep groups gunzip gzip hash head help hostname
    iconv id jobs join kill killall less let ln local locale logger login logout ls lsof mail mailx mamba mapfile md5sum mkdir mkfifo
    mktemp ml module more mount mv nl nproc numfmt od paste pgrep pidof pip pip3 pkill popd printenv printf ps pushd pwd qdel
    qstat squeue scancel sacct scontrol sinfo sacctmgr sstat sreport bkill bjobs quota read readarray readlink readonly realpath
    rename return rev rm rmdir rsync scp sed select seq set setenv unsetenv setfacl getfacl sftp sha1sum sha256sum sha512sum shift
    shopt shuf sleep sort split stat strings stty sum sync tac tail tar tee test times top touch tput tr true truncate tty type typeset
    ulimit umask unalias uname uniq unlink unset unzip uptime users vmstat wait wc wget which who whoami yes
    zcat zip case esac fi done nvidia-smi lscpu free lstopo ifconfig ip getent host
    notify-send mutt sendmail spack apt apt-get yum brew gcc g++ gfortran icc mpicc mpif90 nvcc ar ranlib ld latex pdflatex""".split()  # noqa: SIM905
)
"""Programs that are not miners, whatever they get."""
CLIENTS = frozenset(
    """curl wget aria2c http https git pip pip3 conda mamba aws s3cmd s5cmd azcopy az gsutil gcloud rclone mc mlflow wandb dask
    dask-worker dask-scheduler huggingface-cli hf twine globus lftp ftp sftp scp rsync smbclient ldapsearch psql pg_dump pg_restore
    mysql mysqldump mongo mongosh mongodump mongorestore redis-cli influx clickhouse-client cqlsh""".split()  # noqa: SIM905
)
"""Programs for which a host and a user are ordinary options; none of them runs what it gets."""
NETWORK = CLIENTS | {"ssh", "autossh", "sshpass"}
"""Programs for which the address of a server is ordinary."""
DISPLAYS = frozenset(
    """echo printf print logger wall write mail mailx mutt cat grep egrep fgrep zgrep rg ag ack pgrep pkill [ [[ test wc iptables
    nft ufw firewall-cmd""".split()  # noqa: SIM905
)
"""Programs that show, search or compare what they get."""
ENDS = frozenset("done } fi esac ) ]]".split())  # noqa: SIM905
NO_PROGRAM = frozenset("for case function select foreach in".split())  # noqa: SIM905
MAKERS = re.compile(
    r"(?:gmake|make|snakemake|nextflow|ninja|rake|scons|meson|waf|just|task|invoke|cmake|ctest|ant|mvn|gradle|bazel|doit|fab|ansible\S*|docker-compose"
    r"|podman-compose|npm|cwltool|cwl-runner|toil\S*|cromwell|miniwdl|expect|wish|gdb|lldb|R|sqlite3|ed|ex|n?vim?|view|emacs|m4|gnuplot|matlab|sas|stata|p?rename)$"
)
"""Programs that read code or recipes of their own kind."""
EDITORS = frozenset("ed ex vi vim nvim nvi view emacs".split())  # noqa: SIM905
EXECUTORS = frozenset(
    """git conda mamba sftp scp rsync tar zip unzip find latex pdflatex gcc g++ gfortran icc mpicc mpif90 nvcc ld mapfile readarray
    jobs compgen complete hash enable less more mail mailx mutt split sort spack apt apt-get yum brew""".split()  # noqa: SIM905
)
"""Known programs that run others if told to."""
RUN_SUBCOMMANDS = frozenset("run exec foreach".split())  # noqa: SIM905
"""Words of such programs before the command that they run."""
_SYSTEM = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/")


def is_known_path(word: str) -> bool:
    """Whether this path is that of the system's program of that name."""
    return "/" not in word or word.startswith(_SYSTEM)
