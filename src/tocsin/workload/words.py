"""The words of command lines: runs of letters and digits, and such runs joined by _ . + and -."""

__all__ = ["joined_words", "plain_text", "plain_words"]

_PLAIN = {code: " " for code in range(128) if not chr(code).isalnum()}
_JOINED = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) in "_.+-")}


def plain_text(text: str) -> str:
    """`./gmx_mpi -nb gpu` is gmx mpi nb gpu."""
    return " ".join(text.lower().translate(_PLAIN).split())


def plain_words(text: str) -> set[str]:
    """`./gmx_mpi -nb gpu` has gmx, mpi, nb and gpu."""
    return set(text.lower().translate(_PLAIN).split())


def joined_words(text: str) -> set[str]:
    """`./gmx_mpi -nb gpu` has gmx_mpi, nb and gpu."""
    return {word.strip("_.-") for word in set(text.lower().translate(_JOINED).split())}
