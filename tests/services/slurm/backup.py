"""A second, small Slurm cluster with a backup slurmctld, beside the first one on the same host."""

import socket

from tests.services.daemons import end_now
from tests.services.slurm.lab import SlurmLab

STANDBY = "standby"
# Each controller has a host name, and by it an address, of its own; both listen on the same port.
_START = 'mount --bind "$2" /etc/hosts && hostname "$1" && exec slurmctld -D -i'
# A busy host can keep a healthy slurmctld from answering for seconds: with 5 s the backup took over unasked.
_SETTINGS = f"""
SlurmctldHost={STANDBY}(127.0.0.2)
CommunicationParameters=NoCtldInAddrAny
SlurmctldTimeout=30
"""


class LabWithBackup(SlurmLab):
    """Cluster `second`: one node, two controllers. `fail_over` kills the first."""

    cluster = "second"

    def __init__(self) -> None:
        super().__init__(nodes=1, more_settings=_SETTINGS)

    def _start(
        self, program: str, *options: object, user: str | None = None, name: str = "", **env: str
    ) -> None:
        if program != "slurmctld":
            super()._start(program, *options, user=user, name=name, **env)  # type: ignore[arg-type]  # as given
            return
        hosts = self.folder / "etc" / "hosts"
        hosts.write_text(f"127.0.0.1 localhost {self._host}\n127.0.0.2 {STANDBY}\n")
        host = STANDBY if name else self._host
        # As root: it becomes SlurmUser by itself.
        super()._start(
            "unshare", "--mount", "--uts", "sh", "-c", _START, "sh", host, hosts, name=name or program
        )

    @property
    def _host(self) -> str:
        return socket.gethostname().partition(".")[0]

    def start_backup(self) -> None:
        self._start("slurmctld", name="slurmctld-backup")
        self.daemons.record(self._record, self._owner)
        self._await("slurmctld-backup", lambda: self._ping().count("UP") == 2, 60)

    def fail_over(self) -> None:
        """Kill the first slurmctld; the second takes over when it has missed it for SlurmctldTimeout."""
        end_now([self.daemons.running.pop("slurmctld")])

    def _ping(self) -> str:
        return self.run("scontrol", "ping", check=False).stdout
