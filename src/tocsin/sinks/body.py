"""The body of a message: its JSON, and the job that it concerns."""

import json
from typing import Any

from tocsin.core.errors import UnitError
from tocsin.core.ids import JobKey, parse_key
from tocsin.core.ports import Message

__all__ = ["body", "job_of", "message_id", "payload"]


def message_id(message: Message) -> str:
    """The same for the same message, however often it is sent; for a verdict, the verdict's own id."""
    return message.reference if message.kind == "verdict" else f"{message.kind}-{message.reference}"


def body(message: Message) -> dict[str, Any]:
    """A verdict has the same form everywhere; other messages get their kind and id in front."""
    if message.kind == "verdict":
        return message.document
    return {"kind": message.kind, "id": message_id(message), **message.document}


def payload(message: Message) -> str:
    return json.dumps(body(message), allow_nan=False)


def job_of(message: Message) -> JobKey | None:
    """The job that it concerns, if any."""
    try:
        return parse_key(str(message.document.get("job")))
    except UnitError:
        return None
