"""The demonstration of the service: some weeks of the demo cluster, and a model trained on them."""

from tocsin.app.app import App
from tocsin.app.demo import demo
from tocsin.app.logs import LogRequest
from tocsin.app.train import FailureRequest, train_failure
from tocsin.core.errors import ModelError
from tocsin.core.stages import Stage
from tocsin.models.aliases import is_shipped

__all__ = ["prepare"]

DAYS = 30 + 9 / 24
"""Until the morning of a working day, when most jobs are submitted."""
TRIALS = 2
CLUSTER = "demo"


def prepare(app: App) -> None:
    """Import the jobs and train, unless an earlier demo in this home did so."""
    from tocsin.store.jobs import cluster_names

    app.home.prepare()
    if CLUSTER not in cluster_names(app.store):
        app.notify(f"simulating {DAYS:.0f} days of a small cluster")
        demo(app, seed=1, days=DAYS)
    in_use = app.registry.champion("failure", Stage.SUBMIT, CLUSTER)
    if in_use is None or is_shipped(in_use):
        try:
            train_failure(
                app,
                FailureRequest(
                    log=LogRequest(cluster=CLUSTER),
                    stage=Stage.SUBMIT,
                    target=None,
                    engine="lightgbm",
                    rule="precision_at_least=0.8",
                    trials=TRIALS,
                    shortest=0,
                    seed=0,
                    promote=True,
                ),
            )
        except ModelError as error:
            app.notify(f"note: no failure model: {error}")
