"""Runs a relay until it is stopped."""

from functools import partial
from pathlib import Path

import uvicorn

from tocsin.app.credentials import secret_in
from tocsin.app.slurm_hooks import beat_for_hooks
from tocsin.core.settings import ServiceSettings
from tocsin.serve.identity.protocol import uvicorn_options
from tocsin.serve.identity.relay import Relay, relay_app

__all__ = ["run_relay"]


def run_relay(
    url: str, token_file: str, socket: str, *, ca_file: str | None, settings: ServiceSettings
) -> None:
    relay = Relay(url, secret_in(token_file), ca_file=ca_file, beat=partial(beat_for_hooks, socket))
    within = relay_app(relay, body_megabytes=settings.max_body_megabytes, seconds=settings.request_seconds)
    Path(socket).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    uvicorn.run(within, uds=socket, lifespan="on", log_level="warning", **uvicorn_options())
