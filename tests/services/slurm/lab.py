"""A cluster of Slurm daemons on this host, in a private folder and on free ports, for as long as it is wanted."""

import contextlib
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from string import Template
from types import TracebackType
from typing import Self

from tests.services import SYSTEM_PATH, missing
from tests.services.daemons import (
    Daemons,
    Process,
    ServiceError,
    await_true,
    connects,
    end_now,
    free_ports,
    listener,
    this_process,
    with_descendants,
)
from tests.services.slurm.commands import Commands

TEMPLATES = Path(__file__).parent
FOLDER_PREFIX = "tocsin-slurm-"
USERS = ("alice", "bob")
PARTITIONS = ("main", "short")
# slurmrestd runs neither as root nor as SlurmUser.
REST_USER = "slurmrest"
CGROUPS = Path("/sys/fs/cgroup")


def render(template: str, values: Mapping[str, object]) -> str:
    """A configuration file from its template beside this module."""
    return Template((TEMPLATES / template).read_text()).substitute(values)


def cgroups_usable() -> bool:
    """Whether the cgroup v1 controllers that Slurm needs are mounted and ours to write."""
    return all(
        os.path.ismount(CGROUPS / c) and os.access(CGROUPS / c, os.W_OK) for c in ("memory", "freezer")
    )


class SlurmLab(Commands):
    """munged, mariadbd, slurmdbd, slurmctld, slurmd for each node, and slurmrestd with JWT on TCP and on a unix socket.

    Nodes `n1`…; the first has two GPUs in name. Partition `main` (default, one day) and `short` (5 minutes, one node).
    Users alice and bob, made if the machine has none of that name and left there, with root in the account `research`.
    Everything else lives in one temporary folder that `stop` removes; /etc/slurm is neither read nor written.
    """

    cluster = "lab"
    account = "research"

    def __init__(
        self,
        nodes: int = 4,
        cpus: int = 2,
        memory_mb: int = 4000,
        hardware: Mapping[str, str] | None = None,
        more_settings: str = "",
        accounting: Sequence[str] = (),
        bound: bool = False,
    ) -> None:
        """`hardware` replaces the options of a node's line in slurm.conf; `more_settings` end that file.

        `accounting` are commands for sacctmgr, run before slurmctld reads that file: 26.05 refuses a partition for a QOS
        that does not exist. With `bound`, jobs keep to the CPUs of their allocation, which are CPUs of the host.
        """
        self.nodes = [f"n{i}" for i in range(1, nodes + 1)]
        self.cpus = cpus
        self.memory_mb = memory_mb
        self.hardware = hardware or {}
        self.more_settings = more_settings
        self.accounting = accounting
        self.bound = bound
        self.cgroups = cgroups_usable()  # without them a job over its memory ends FAILED, not OUT_OF_MEMORY

    # --- where things are ------------------------------------------------------------------------

    def _settle(self, folder: Path) -> None:
        self.folder = folder
        self.conf = folder / "etc" / "slurm.conf"
        self.token_file = folder / "root.jwt"
        self.rest_socket = folder / "rest" / "slurmrestd.sock"
        self._record = folder / "processes.json"
        self.daemons = Daemons(folder / "log")

    @property
    def token(self) -> str:
        """root's JSON Web Token."""
        return self.token_file.read_text().strip()

    # --- up --------------------------------------------------------------------------------------

    def start(self, owned: bool = True) -> Self:
        """Bring everything up and return when jobs can be submitted; an unowned lab outlives this process."""
        if sentence := missing("slurm"):
            raise ServiceError(sentence)
        # munge refuses folders that others could rename; /tmp is root's and sticky, and its short name fits a socket's.
        self._settle(Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir="/tmp")))
        self.folder.chmod(0o755)
        self._owner = this_process() if owned else None
        try:
            self._lay_out()
            for start in (self._start_munge, self._start_database, self._start_slurm, self.start_rest):
                start()
                self.daemons.record(self._record, self._owner)
        except BaseException:
            self.stop()
            raise
        if not owned:
            self.daemons.forget()
        return self

    def _lay_out(self) -> None:
        for user in USERS:
            make_user(user)
        make_user(REST_USER)
        for name, owner, mode in (
            ("etc", "root", 0o755),
            ("log", "root", 0o755),
            ("spool", "root", 0o755),
            ("munge", "munge", 0o755),
            ("database", "slurm", 0o700),
            ("state", "slurm", 0o700),
            ("run", "slurm", 0o755),
            ("rest", REST_USER, 0o755),
            *((f"home-{user}", user, 0o755) for user in USERS),
        ):
            make_folder(self.folder / name, owner, mode)
        for gpu in ("gpu0", "gpu1"):
            (self.folder / "spool" / gpu).touch()
        _write_secret(self.folder / "munge" / "munge.key", secrets.token_bytes(1024), "munge")
        _write_secret(self.folder / "state" / "jwt.key", secrets.token_bytes(32), "slurm")
        self._write_configuration()

    def _write_configuration(self) -> None:
        ctld_port, dbd_port, rest_port, *node_ports = free_ports(3 + len(self.nodes))
        self.rest_url = f"http://127.0.0.1:{rest_port}"
        self._rest_address = ("127.0.0.1", rest_port)
        host = socket.gethostname().partition(".")[0]
        lines = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
            + self.hardware.get(node, f"CPUs={self.cpus} RealMemory={self.memory_mb}")
            + (" Gres=gpu:2" if node == self.nodes[0] else "")
            for node, port in zip(self.nodes, node_ports, strict=True)
        ]
        values = {
            "cluster": self.cluster,
            "first_job_id": 1000 * (1 + secrets.randbelow(999)),
            "folder": self.folder,
            "host": host,
            "nodes": len(self.nodes),
            "node_list": ",".join(self.nodes),
            "node_lines": "\n".join(lines),
            "more_settings": self.more_settings,
            "gpu_node": self.nodes[0],
            "ctld_port": ctld_port,
            "dbd_port": dbd_port,
            "proctrack": "proctrack/cgroup" if self.cgroups else "proctrack/linuxproc",
            "task": "task/cgroup" if self.cgroups else "task/none",
            "gather": "jobacct_gather/cgroup" if self.cgroups else "jobacct_gather/linux",
            "constrain_cores": "yes" if self.bound else "no",
            "over_memory": "" if self.cgroups else "JobAcctGatherParams=OverMemoryKill",
        }
        for name in ("slurm.conf", "gres.conf") + (("cgroup.conf",) if self.cgroups else ()):
            (self.conf.parent / name).write_text(render(name, values))
        _write_secret(self.conf.parent / "slurmdbd.conf", render("slurmdbd.conf", values).encode(), "slurm")

    def _start_munge(self) -> None:
        folder = self.folder / "munge"
        files = {
            "key-file": "munge.key",
            "socket": "munge.sock",
            "pid-file": "pid",
            "log-file": "log",
            "seed-file": "seed",
        }
        options = [f"--{option}={folder / name}" for option, name in files.items()]
        self._start("munged", "--foreground", *options, user="munge")
        self._await("munged", lambda: connects(folder / "munge.sock"), 10)

    def _start_database(self) -> None:
        folder = self.folder / "database"
        # slurmdbd's tables are hundreds of small transactions; this database need not survive a power cut.
        careless = [
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-doublewrite=0",
            "--innodb-flush-method=nosync",
        ]
        install = [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={folder / 'data'}",
            "--skip-test-db",
            "--auth-root-authentication-method=socket",
            "--auth-root-socket-user=root",
            *careless,
        ]
        self.run(*install, user="slurm", timeout=60)
        shutil.copy(TEMPLATES / "accounts.sql", self.conf.parent)
        self._start(
            "mariadbd",
            "--no-defaults",
            f"--datadir={folder / 'data'}",
            f"--socket={folder / 'sock'}",
            f"--pid-file={folder / 'pid'}",
            f"--init-file={self.conf.parent / 'accounts.sql'}",
            "--skip-networking",
            "--skip-log-bin",
            "--innodb-buffer-pool-size=128M",
            "--innodb-lock-wait-timeout=900",
            *careless,
            user="slurm",
        )
        self._await("mariadbd", lambda: connects(folder / "sock"), 30)

    def _start_slurm(self) -> None:
        self._start("slurmdbd", "-D", user="slurm", MYSQL_UNIX_PORT=str(self.folder / "database" / "sock"))
        self._await("slurmdbd", lambda: self._answers("sacctmgr", "-n", "list", "cluster"), 60)
        # Before slurmctld comes up, which then knows them from its first second.
        self.run("sacctmgr", "-i", "add", "cluster", self.cluster)
        self.run("sacctmgr", "-i", "add", "account", self.account, f"cluster={self.cluster}")
        self.run("sacctmgr", "-i", "add", "user", "root," + ",".join(USERS), f"account={self.account}")
        for command in self.accounting:
            self.run("sacctmgr", "-i", *command.split())
        self._start_slurmctld()
        for node in self.nodes:
            self._start("slurmd", "-D", "-N", node, name=f"slurmd-{node}")
        for node in self.nodes:
            self._await(f"slurmd-{node}", partial(self._is_idle, node), 30)
        self.new_token("root", self.token_file)

    def _start_slurmctld(self) -> None:
        self._start("slurmctld", "-D", "-i", user="slurm")
        self._await("slurmctld", lambda: "UP" in self.run("scontrol", "ping", check=False).stdout, 60)

    def restart_slurmctld(self) -> None:
        """As an operator does it; an error if it does not come up again."""
        self.daemons.stop(["slurmctld"])
        self._start_slurmctld()

    def _is_idle(self, node: str) -> bool:
        return self.run("sinfo", "-h", "-N", "-n", node, "-p", "main", "-o", "%T").stdout.strip() == "idle"

    def start_rest(self) -> None:
        """Start slurmrestd; it answers on `rest_url` and on `rest_socket`."""
        self.rest_socket.unlink(missing_ok=True)
        listeners = (":".join(map(str, self._rest_address)), f"unix:{self.rest_socket}")
        # With SLURM_JWT=daemon it has no identity of its own: each request brings its token.
        self._start("slurmrestd", "-a", "rest_auth/jwt", *listeners, user=REST_USER, SLURM_JWT="daemon")
        both = (self._rest_address, self.rest_socket)
        self._await("slurmrestd", lambda: all(connects(address) for address in both), 20)
        self.daemons.record(self._record, self._owner)

    @contextlib.contextmanager
    def local_rest(self, user: str) -> Iterator[Path]:
        """A second slurmrestd, without tokens, which serves one user at the socket that is returned."""
        socket_file = self.folder / f"home-{user}" / "rest.sock"
        name = f"slurmrestd-{user}"
        self._start("slurmrestd", "-a", "rest_auth/local", f"unix:{socket_file}", user=user, name=name)
        try:
            self._await(name, lambda: connects(socket_file), 20)
            self.daemons.record(self._record, self._owner)
            yield socket_file
        finally:
            self.daemons.stop([name])

    def stop_rest(self) -> None:
        """End slurmrestd, as when an operator restarts it."""
        self.daemons.stop(["slurmrestd"])

    def _start(
        self, program: str, *options: str | Path, user: str | None = None, name: str = "", **env: str
    ) -> None:
        path = shutil.which(program, path=SYSTEM_PATH) or program
        self.daemons.start(name or program, [path, *options], {**self.command_env, **env}, user)

    def _await(self, name: str, ready: Callable[[], bool], timeout: float) -> None:
        self.daemons.await_ready(name, ready, timeout)

    def _answers(self, *command: str) -> bool:
        with contextlib.suppress(ServiceError):
            return self.run(*command, check=False, timeout=5).returncode == 0
        return False

    def new_token(self, user: str, file: Path, lifespan: int = 86400) -> str:
        """A JSON Web Token of a user, also kept in a file that only its owner can read."""
        said = self.run("scontrol", "token", f"username={user}", f"lifespan={lifespan}").stdout
        token = said.strip().removeprefix("SLURM_JWT=")
        _write_secret(file, token.encode(), "root")
        return token

    # --- down ------------------------------------------------------------------------------------

    def stop(self) -> None:
        """End every job and every daemon of this lab, and remove its folder."""
        if "slurmctld" in self.daemons.running:
            with contextlib.suppress(ServiceError):
                for partition in PARTITIONS:
                    self.run("scancel", f"--partition={partition}", check=False, timeout=5)
                await_true("jobs still run", lambda: not self._steps(), 6)
        left = with_descendants(self._steps())
        self.daemons.stop(list(self.daemons.running))
        end_now(left)
        for node in set(self.nodes) - _nodes_served():
            for cgroup in CGROUPS.glob(f"*/slurm_{node}"):
                with contextlib.suppress(OSError):  # not empty: jobs that are not ours
                    cgroup.rmdir()
        shutil.rmtree(self.folder)

    def _steps(self) -> list[Process]:
        """The slurmstepd processes of this lab, asked of their sockets: they rewrite their command line and environment."""
        sockets = self.folder.glob("spool/*/*_*.*")
        return [step for path in sockets if path.is_socket() and (step := listener(path))]

    @classmethod
    def at(cls, folder: Path) -> "SlurmLab":
        """The lab that an earlier process started in this folder, to be stopped by this one."""
        record = folder / "processes.json"
        if not folder.name.startswith(FOLDER_PREFIX) or not record.is_file():
            raise ServiceError(f"{folder} is not the folder of a lab; `up` printed it")
        # A record that someone else could write might name any process.
        if folder.stat().st_uid != os.geteuid() or record.stat().st_uid != os.geteuid():
            raise ServiceError(f"{folder} belongs to another user, who has to stop that lab")
        lab = cls()
        lab._settle(folder)
        lab.daemons, owner = Daemons.recorded(record, folder / "log")
        lab.nodes = [n.removeprefix("slurmd-") for n in lab.daemons.running if n.startswith("slurmd-")]
        if owner:
            raise ServiceError(f"{folder} is in use by process {owner.pid}, which stops it when it ends")
        return lab

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _nodes_served() -> set[str]:
    """The nodes that some slurmd on this host plays, of any lab: their cgroups are shared by name."""
    served = set()
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            program, *options = file.read_bytes().decode(errors="replace").split("\0")
            if Path(program).name == "slurmd" and "-N" in options:
                served.add(options[options.index("-N") + 1])
    return served


def make_user(name: str) -> None:
    try:
        pwd.getpwnam(name)
    except KeyError:
        subprocess.run(
            ["/usr/sbin/useradd", "--no-create-home", "--user-group", name], check=True, timeout=30
        )


def make_folder(path: Path, owner: str, mode: int) -> None:
    path.mkdir()
    path.chmod(mode)
    shutil.chown(path, owner, owner)


def _write_secret(path: Path, secret: bytes, owner: str) -> None:
    path.touch(mode=0o600)
    path.write_bytes(secret)
    shutil.chown(path, owner, owner)
