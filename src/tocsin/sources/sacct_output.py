"""What sacct printed into a file or pipe, text or JSON: told apart by its first bytes."""

import zlib
from collections.abc import Sequence

from tocsin.sources.lines import Pipe, is_regular, open_file
from tocsin.sources.sacct import SacctFile
from tocsin.sources.sacct_json import SacctJsonFile

__all__ = ["sacct_output"]

_HEAD = 4096


def sacct_output(
    path: str, *, columns: Sequence[str] | None = None, cluster: str | None = None, zone: str = "UTC"
) -> SacctFile | SacctJsonFile:
    """The text or the JSON of sacct, whichever the file begins with; a pipe is opened only once."""
    source = path if is_regular(path) else Pipe(path)
    if not columns and _opens_object(source):
        return SacctJsonFile(source, cluster=cluster)
    return SacctFile(source, columns=columns, cluster=cluster, zone=zone)


def _opens_object(source: str | Pipe) -> bool:
    """Whether the first thing in it is the brace of a JSON object."""
    if isinstance(source, Pipe):
        head = source.ahead(_HEAD)
    else:
        with open_file(source) as file:
            head = file.read(_HEAD)
    if head.startswith(b"\x1f\x8b"):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD)
        except zlib.error:
            return False  # the reading says what is wrong with it
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
