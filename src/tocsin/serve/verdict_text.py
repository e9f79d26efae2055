"""A verdict as text for the person who asked. Imports little, because the process that checks scripts loads it too."""

import json
from typing import Any

from tocsin.app.advice import advice_text
from tocsin.core.verdict import Verdict
from tocsin.serve.principal import Principal
from tocsin.serve.visible import visible

__all__ = ["json_text", "verdict_advice", "verdict_json"]


def json_text(document: Any) -> bytes:
    """Compact JSON; text that is not valid Unicode is escaped."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace")


def verdict_json(asker: Principal, verdict: Verdict) -> bytes:
    return json_text(visible(verdict.to_json(), asker))


def verdict_advice(asker: Principal, verdict: Verdict) -> str:
    return advice_text(Verdict.from_json(visible(verdict.to_json(), asker)))
