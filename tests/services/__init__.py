"""The real services that integration tests run against, and what this machine lacks of them."""

import os
import shutil
from ctypes import CDLL
from dataclasses import dataclass, field
from pathlib import Path

# Debian keeps daemons in sbin, which an ordinary user's PATH leaves out, and PostgreSQL's programs in a folder per version.
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Service:
    """What a service is made of: each program, plug-in or library, and the Debian package that brings it."""

    title: str
    programs: dict[str, str]
    plugins: dict[str, str]
    libraries: dict[str, str] = field(default_factory=dict)
    needs_root: bool = False


SERVICES = {
    "slurm": Service(
        title="Slurm",
        programs={
            "munged": "munge",
            "mariadbd": "mariadb-server-core",
            "mariadb-install-db": "mariadb-server-core",
            "my_print_defaults": "mariadb-client-core",  # mariadb-install-db calls it
            "slurmdbd": "slurmdbd",
            "slurmctld": "slurmctld",
            "slurmd": "slurmd",
            "slurmrestd": "slurmrestd",
            "sbatch": "slurm-client",
            "sacct": "slurm-client",
            "curl": "curl",  # the hook in sbatch asks with it
        },
        plugins={
            "auth_jwt.so": "slurm-wlm-jwt-plugin",
            "accounting_storage_mysql.so": "slurm-wlm-mysql-plugin",
        },
        needs_root=True,
    ),
    "postgres": Service(
        title="PostgreSQL",
        programs={"initdb": "postgresql", "postgres": "postgresql", "psql": "postgresql"},
        plugins={},
    ),
    "prometheus": Service(title="Prometheus", programs={"prometheus": "prometheus"}, plugins={}),
    "mosquitto": Service(title="mosquitto", programs={"mosquitto": "mosquitto"}, plugins={}),
    "chromium": Service(title="Chromium", programs={"chromium": "chromium"}, plugins={}),
    "systemd": Service(
        title="systemd's tools",
        programs=dict.fromkeys(("systemd-analyze", "systemd-sysusers", "systemd-tmpfiles"), "systemd"),
        plugins={},
    ),
    "lightgbm": Service(title="LightGBM", programs={}, plugins={}, libraries={"libgomp.so.1": "libgomp1"}),
}


def postgres_folders() -> list[Path]:
    """The folders that hold a PostgreSQL server, newest version of Debian's packages first."""
    versions = [f for f in Path("/usr/lib/postgresql").glob("*/bin") if f.parent.name.isdigit()]
    folders = sorted(versions, key=lambda f: int(f.parent.name), reverse=True)
    folders += [Path(f) for f in os.environ.get("PATH", "").split(":") if f]
    return [f for f in folders if all(os.access(f / p, os.X_OK) for p in SERVICES["postgres"].programs)]


def _has_program(name: str) -> bool:
    if name in SERVICES["postgres"].programs:
        return bool(postgres_folders())
    return shutil.which(name, path=SYSTEM_PATH) is not None


def _has_plugin(name: str) -> bool:
    return any(Path("/usr").glob(f"lib*/*/slurm*/{name}")) or any(Path("/usr").glob(f"lib*/slurm*/{name}"))


def _has_library(name: str) -> bool:
    try:
        return bool(CDLL(name))
    except OSError:
        return False


def _lacking(service: str) -> dict[str, str]:
    known = SERVICES[service]
    lacking = {p: package for p, package in known.programs.items() if not _has_program(p)}
    lacking |= {p: package for p, package in known.plugins.items() if not _has_plugin(p)}
    return lacking | {name: package for name, package in known.libraries.items() if not _has_library(name)}


def missing_plugin(name: str) -> str | None:
    """A sentence if Slurm lacks a plug-in on this machine."""
    if _has_plugin(name):
        return None
    return f"Slurm has no plug-in {name} here; on Debian it is in slurm-wlm-basic-plugins"


def missing_packages() -> list[str]:
    """The Debian packages that would complete every service on this machine."""
    return sorted({package for service in SERVICES for package in _lacking(service).values()})


def missing(service: str) -> str | None:
    """A sentence that says what this machine lacks to run a service and the next step; None when it lacks nothing."""
    known, lacking = SERVICES[service], _lacking(service)
    if lacking:
        packages = " ".join(sorted(set(lacking.values())))
        return (
            f"{known.title} cannot run here: {', '.join(lacking)} not found; "
            f"on Debian, as root: apt-get install --no-install-recommends {packages}"
        )
    if known.needs_root and os.geteuid() != 0:
        return f"{known.title} cannot be started here by user id {os.geteuid()}: its daemons need root; run `make test` as root"
    return None
