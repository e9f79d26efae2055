"""A small Slurm cluster with a backup slurmctld, both on this host."""

import socket

from tests.services.daemons import await_true
from tests.services.slurm.lab import SlurmLab, make_folder

STANDBY = "standby"
# Each controller has a host name, and by it an address, of its own; both listen on the same port. Each sees a folder of its
# own for the pid file: slurmctld ends the process that the file names before it starts.
_START = 'mount --bind "$2" /etc/hosts && mount --bind "$3" "$4" && hostname "$1" && exec slurmctld -D -i'
# While nobody is in charge, commands sleep for half of the timeout. A busy host can keep a healthy slurmctld from answering for
# seconds, so it is not shorter; the test asks for the takeover and does not wait for it.
_SETTINGS = f"""
SlurmctldHost={STANDBY}(127.0.0.2)
CommunicationParameters=NoCtldInAddrAny
SlurmctldTimeout=20
"""


class LabWithBackup(SlurmLab):
    """Cluster `spare`: one node, two controllers. `fail_over` kills the first."""

    cluster = "spare"

    def __init__(self) -> None:
        super().__init__(nodes=1, more_settings=_SETTINGS)

    def _start(
        self, program: str, *options: object, user: str | None = None, name: str = "", **env: str
    ) -> None:
        if program != "slurmctld":
            super()._start(program, *options, user=user, name=name, **env)  # type: ignore[arg-type]  # as given
            return
        hosts, own = self.folder / "etc" / "hosts", self.folder / f"run-{name or program}"
        hosts.write_text(f"127.0.0.1 localhost {self._host}\n127.0.0.2 {STANDBY}\n")
        make_folder(own, "slurm", 0o755)
        host = STANDBY if name else self._host
        command = ("--mount", "--uts", "sh", "-c", _START, "sh", host, hosts, own, self.folder / "run")
        # As root: it becomes SlurmUser by itself.
        super()._start("unshare", *command, name=name or program)

    @property
    def _host(self) -> str:
        return socket.gethostname().partition(".")[0]

    def start_backup(self) -> None:
        self._start("slurmctld", name="slurmctld-backup")
        self.daemons.record(self._record, self._owner)
        self._await("slurmctld-backup", lambda: self.ping().count("UP") == 2, 60)

    def fail_over(self) -> None:
        """Kill the first slurmctld, and let the second take over, as an administrator would."""
        self.daemons.kill("slurmctld")
        self.run("scontrol", "takeover", timeout=60)
        await_true("the backup is not in charge", lambda: f"at {STANDBY} is UP" in self.ping(), 60, self.ping)

    def await_saved(self, job: int) -> None:
        """Until the job is in the state that the backup will read: slurmctld saves it every few seconds, ids in network order."""
        state = self.folder / "state" / "job_state"
        await_true(
            "it is not saved", lambda: state.exists() and job.to_bytes(4, "big") in state.read_bytes(), 60
        )

    def ping(self) -> str:
        return self.run("scontrol", "ping", check=False).stdout
