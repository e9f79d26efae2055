"""The kinds of open signs that follow from where a script's words come from."""

from collections.abc import Iterator

__all__ = ["BUILT", "ENDPOINT", "HANDS_FETCHED", "HANDS_ON", "RUNS", "TOO_MUCH", "UNCLEAR", "Found"]

RUNS = "runs what it computes"
HANDS_ON = "passes computed text to an unknown program"
HANDS_FETCHED = "passes fetched data to an unknown program"
BUILT = "assembles a mining term from pieces"
ENDPOINT = "a server address in a script that runs an unknown program"
UNCLEAR = "not read whole: a quote or bracket is never closed"
TOO_MUCH = "not read whole: it is too long, or assembles too much text"
Found = Iterator[tuple[int, str]]
"""Lines, each with the kind of its sign."""
