"""One process asks several clusters, each by its own slurm.conf."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tocsin.app.app import App
from tocsin.app.clusters import live_cluster, slurm_confs
from tocsin.app.jobs import JobsRequest, page_of_jobs
from tocsin.core.errors import NotFound
from tocsin.core.ids import JobKey
from tocsin.sources.rest_token import ScontrolToken

FAKE = """#!/bin/sh
# A stand-in for Slurm's commands: what they print depends on the slurm.conf that they are given.
case "$1" in
token) echo "SLURM_JWT=from.$(basename "$SLURM_CONF").x" ;;
*) echo "script of $(basename "$SLURM_CONF")" ;;
esac
"""


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> App:
    (tmp_path / "bin").mkdir()
    for name in ("scontrol", "sacct"):
        (tmp_path / "bin" / name).write_text(FAKE)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_CONF", raising=False)
    settings = tmp_path / "tocsin.toml"
    settings.write_text(
        "".join(f'[cluster.{name}]\nslurm_conf = "/etc/slurm/{name}.conf"\n' for name in ("big", "small"))
    )
    return App(str(settings), str(tmp_path / "home"), {"HOME": str(tmp_path)})


def test_two_clusters_are_asked_at_once_each_by_its_own_slurm_conf(app: App) -> None:
    def script(cluster: str) -> str | None:
        with live_cluster(app, cluster) as live:
            return live.script(JobKey(cluster, 7, None, 1))

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(script, ["big", "small"] * 5))
    assert found == ["script of big.conf\n", "script of small.conf\n"] * 5
    assert "SLURM_CONF" not in os.environ, "the process itself belongs to no cluster"


def test_a_token_is_asked_for_at_the_cluster_that_it_is_for(app: App) -> None:
    for name, cluster in app.settings.cluster.items():
        assert ScontrolToken(slurm_conf=cluster.slurm_conf)() == f"from.{name}.conf.x"


def test_each_slurm_of_the_settings_counts_once(app: App, tmp_path: Path) -> None:
    assert slurm_confs(app) == ["/etc/slurm/big.conf", "/etc/slurm/small.conf"]
    assert slurm_confs(App(None, str(tmp_path), {"HOME": str(tmp_path)})) == [""]


def test_slurm_is_not_asked_for_each_mistyped_cluster_in_a_request(app: App, tmp_path: Path) -> None:
    asked = tmp_path / "asked"
    (tmp_path / "bin" / "scontrol").write_text(f"#!/bin/sh\necho >> {asked}\necho ClusterName = here\n")
    for name in ("bigg", "smal", "bigg"):
        with pytest.raises(NotFound, match="did you mean"):
            page_of_jobs(app, JobsRequest(clusters=(name,)), past=None, size=10)
    assert page_of_jobs(app, JobsRequest(clusters=("here",)), past=None, size=10).is_empty()
    assert len(asked.read_text().splitlines()) == 1
    app.close()
