"""A home with a failure model of the demo's first days, and the days after them, which a contest is held on."""

from pathlib import Path

from tocsin.app.app import App
from tocsin.app.demo import demo
from tocsin.app.logs import LogRequest
from tocsin.app.train import FailureRequest, train_failure
from tocsin.core.stages import Stage

SETTINGS = {"TZ": "UTC", "TOCSIN_LEARN__HOLDBACK_DAYS": "2"}


def make_trained_home(home: Path) -> Path:
    with App(folder=str(home), environ={"HOME": str(home.parent), **SETTINGS}) as app:
        demo(app, seed=1, days=3)
        train_failure(
            app,
            FailureRequest(
                log=LogRequest(cluster="demo"),
                stage=Stage.SUBMIT,
                target=None,
                engine="lightgbm",
                rule="precision_at_least=0.8",
                trials=1,
                shortest=0,
                seed=0,
                promote=True,
            ),
        )
        demo(app, seed=1, days=6)
    return home
