"""Where on a submit command's line its options end and the script's name begins."""

from tocsin.scripts.dialect import Dialect
from tocsin.scripts.words import Word

__all__ = ["up_to_script"]


def up_to_script(words: list[Word], dialect: Dialect) -> list[Word]:
    """The words of a command line before the script's name."""
    given, wanted = [], 0
    for word in words:
        if not wanted and (not word.text.startswith("-") or word.text == "--"):
            break
        if wanted:
            wanted -= 1
        else:
            wanted = _wants(word.text, dialect)
        given.append(word)
    return given


def _wants(text: str, dialect: Dialect) -> int:
    """How many further words are the value of this one."""
    table = dialect.table
    if not table.double or text.startswith("--"):
        option = table.find(text.partition("=")[0]) if table.double else table.find(text)
        return 0 if option is None or option.optional or ("=" in text and table.double) else option.values
    for j, letter in enumerate(text[1:], 1):
        option = table.find("-" + letter)
        if option and option.values:
            return 0 if option.optional or text[j + 1 :] else option.values
    return 0
