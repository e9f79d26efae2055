"""`tocsin predict`: how likely jobs are to fail, and which are worth asking about."""

import click

from tocsin.app.app import App
from tocsin.app.predict import PredictRequest
from tocsin.app.predict import predict as predict_jobs
from tocsin.cli import options
from tocsin.cli.output import Column, Listing, print_json, say, text_of

__all__ = ["predict"]


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

    JOB is an id or a key of a job in the store or in the live queue. Only what was known at the stage is used. --ask
    chooses among jobs that have not ended (or else the latest ones) those with the least certain prediction that
    resemble most others.
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
            say(f"note: {row['job']}: {reason}")


_COLUMNS = [
    Column("Job", text_of("job"), -28),
    Column("User", text_of("user"), -10),
    Column("JobName", text_of("name"), -14),
    Column("Risk", lambda row: "" if row["probability"] is None else f"{row['probability']:.1%}", 6),
    Column("Alarm", lambda row: {None: "", True: "yes", False: "no"}[row["will_fail"]], -5),
    Column("Cause", lambda row: next(iter(row["causes"]), ""), -14),
    Column("Outcome", text_of("outcome"), -13),
]
