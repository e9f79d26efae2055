"""The words of command lines: runs of letters and digits, and such runs joined by _ . + and -."""

from collections.abc import Collection

__all__ = ["joined_words", "parts_of", "plain_text", "plain_words", "words_and_options"]


def _blanks_but(kept: str) -> bytes:
    """A table of bytes in which all ASCII except letters, digits and these characters is blank."""
    return bytes(
        code if code > 127 or chr(code).isalnum() or chr(code) in kept else 32 for code in range(256)
    )


_PLAIN, _JOINED, _OPTIONS = _blanks_but(""), _blanks_but("_.+-"), _blanks_but("-")


def _split(text: str, table: bytes) -> list[str]:
    # a table of bytes is five times as fast as one of characters
    spelled = text.lower().encode("utf-8", "surrogatepass").translate(table)
    return spelled.decode("utf-8", "surrogatepass").split()


def plain_text(text: str) -> str:
    """`./gmx_mpi -nb gpu` is gmx mpi nb gpu."""
    return " ".join(_split(text, _PLAIN))


def plain_words(text: str) -> set[str]:
    """`./gmx_mpi -nb gpu` has gmx, mpi, nb and gpu."""
    return set(_split(text, _PLAIN))


def joined_words(text: str) -> set[str]:
    """`./gmx_mpi -nb gpu` has gmx_mpi, nb and gpu."""
    return {word.strip("_.-") for word in set(_split(text, _JOINED))}


def parts_of(joined: Collection[str]) -> set[str]:
    """The plain words of a text from its joined words, which are fewer than the words of the text."""
    return plain_words(" ".join(joined))


def words_and_options(text: str) -> tuple[set[str], set[str]]:
    """`./gmx_mpi -nb gpu` has the plain words gmx, mpi, nb and gpu, and the option -nb."""
    dashed = set(_split(text, _OPTIONS))
    return set(" ".join(dashed).replace("-", " ").split()), {word for word in dashed if word[0] == "-"}
