"""Find where the options of a submit command line end and the script name begins."""

from tocsin.scripts.dialect import Dialect
from tocsin.scripts.words import Word

__all__ = ["options_before_script"]


def options_before_script(words: list[Word], dialect: Dialect) -> list[Word]:
    """The words before the script name."""
    given, remaining = [], 0
    for word in words:
        if not remaining and (not word.text.startswith("-") or word.text == "--"):
            break
        if remaining:
            remaining -= 1
        else:
            remaining = _value_words(word.text, dialect)
        given.append(word)
    return given


def _value_words(text: str, dialect: Dialect) -> int:
    """How many of the following words are the value of this option."""
    table = dialect.table
    if not table.double or text.startswith("--"):
        option = table.find(text.partition("=")[0]) if table.double else table.find(text)
        return 0 if option is None or option.optional or ("=" in text and table.double) else option.values
    for j, letter in enumerate(text[1:], 1):
        option = table.find("-" + letter)
        if option and option.values:
            return 0 if option.optional or text[j + 1 :] else option.values
    return 0
