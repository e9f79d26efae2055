"""The kinds of open signs that follow from where a script's words come from."""

from collections.abc import Iterator

__all__ = ["BUILT", "ENDPOINT", "HANDS_FETCHED", "HANDS_ON", "RUNS", "TOO_MUCH", "UNCLEAR", "Found"]

RUNS = "runs what it computes"
HANDS_ON = "hands a program what it computes"
HANDS_FETCHED = "hands a program what it fetches"
BUILT = "puts a name of mining together"
ENDPOINT = "the address of a server, for a program that is not known"
UNCLEAR = "not read whole: a quote or bracket without an end"
TOO_MUCH = "not read whole: it has or puts together too much"
Found = Iterator[tuple[int, str]]
"""Lines, each with the kind of its sign."""
