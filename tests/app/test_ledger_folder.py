"""Where the history of a cluster is kept: inside the home, whatever a store from somebody else calls its clusters."""

from pathlib import Path

import pytest

from tests.kits.job_frames import frame
from tocsin.app.app import App
from tocsin.app.ledger import open_history
from tocsin.core.errors import StoreError
from tocsin.store.jobs import upsert


@pytest.mark.parametrize("name", ["../../../elsewhere", "{tmp}/elsewhere", ".."])
def test_the_name_of_a_cluster_leads_to_no_other_folder(tmp_path: Path, name: str) -> None:
    cluster = name.format(tmp=tmp_path)
    with App(folder=str(tmp_path / "home"), environ={}) as app:
        upsert(app.store, frame({"cluster": cluster, "outcome": "completed", "known_at": 1_700_000_100}))
        with pytest.raises(StoreError, match="cannot be the name of a cluster"), open_history(app, cluster):
            pass
    assert not list(tmp_path.rglob("history.json.z"))
    assert not (tmp_path / "elsewhere").exists()
