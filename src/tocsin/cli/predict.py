"""`tocsin predict` and `tocsin answer`: how likely jobs are to fail, which are worth asking about, and the answers."""

import click

from tocsin.app.answers import record_answer
from tocsin.app.app import App
from tocsin.app.predict import PredictRequest
from tocsin.app.predict import predict as predict_jobs
from tocsin.cli import options
from tocsin.cli.output import Column, Listing, print_json, print_message, text_of
from tocsin.core.outcomes import Outcome

__all__ = ["answer", "predict"]


@click.command()
@click.argument("jobs", nargs=-1, metavar="JOB...")
@click.option("--ask", type=click.IntRange(min=1), metavar="N",
              help="Instead of JOB: the N jobs in the store most worth asking their users about.")  # fmt: skip
@options.cluster
@options.stage
@options.listing
@click.pass_obj
@options.gathered(PredictRequest, "request")
def predict(app: App, request: PredictRequest, listing: Listing) -> None:
    """Predict how likely jobs are to fail.

    JOB is an id or a key of a job in the store or in the live queue. Only what was known at the stage is used.

    --ask picks the jobs whose outcome would teach the model most: their prediction is uncertain, and many other jobs
    resemble them. It picks among jobs that have not ended, or among the latest ones if all have. `tocsin answer`
    records what their users say.
    """
    if bool(request.jobs) == (request.ask is not None):
        raise click.UsageError("give one or more JOBs, or --ask N")
    rows = predict_jobs(app, request)
    if listing.as_json:
        print_json(rows)
        return
    listing.print_table(rows, _COLUMNS)
    for row in rows:
        for reason in row["missing"].values():
            print_message(f"note: {row['job']}: {reason}")


@click.command()
@click.argument("job", metavar="JOB")
@click.argument("outcome", type=click.Choice([str(Outcome.COMPLETED), str(Outcome.FAILED)]))
@options.cluster
@click.option("--note", default="", metavar="TEXT", help="The reason, kept with the answer.")
@click.pass_obj
def answer(app: App, job: str, outcome: str, cluster: str | None, note: str) -> None:
    """Record how a job ends, as a label for the next training.

    For jobs that `tocsin predict --ask` chose: `tocsin train failure` uses the answer instead of the recorded outcome.
    The last answer for a job counts.
    """
    key = record_answer(app, job, cluster, Outcome(outcome), note)
    print_message(f"{key} counts as {outcome} from the next training on; `tocsin train failure` trains now")


_COLUMNS = [
    Column("Job", text_of("job"), -28),
    Column("User", text_of("user"), -10),
    Column("JobName", text_of("name"), -14),
    Column("Risk", lambda row: "" if row["probability"] is None else f"{row['probability']:.1%}", 6),
    Column("Alarm", lambda row: {None: "", True: "yes", False: "no"}[row["will_fail"]], -5),
    Column("Cause", lambda row: next(iter(row["causes"]), ""), -14),
    Column("Outcome", text_of("outcome"), -13),
]
