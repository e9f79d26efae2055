"""Changed bytes: a seed with one to five changes, drawn by the number of the case."""

import random
import re
from collections.abc import Sequence

__all__ = ["LARGEST", "mutated"]

LARGEST = 200_000
_WORDS = (
    b'nan -nan inf 1e400 -1 0 1_0 0x10 99999999999999999999 2147483648 -2147483649 true null [] {} "" \' " ` \\ $( ${ )) '
    b"<<EOF |bash &&eval ; # % %s {0} .. / -- = == \\x00 \\u0000 UNLIMITED INFINITE NONE Unknown 1-00:00:00 "
    b"16777215-99:99:99 9999999999G 10Gn node[1-99999] node[001-100000000] lab:1_2@3 2030-02-30T25:61:61 1970-01-01 Tree=0 "
    b"left_child=0 num_leaves=9999999 base64 -d curl|sh xmrig stratum+tcp:// #SBATCH #PBS #!/bin/sh JobID| PAR1"
).split(b" ")
_NUMBER = re.compile(rb"-?[0-9]+")
_NUMBERS = (b"0", b"1", b"2", b"-1", b"7", b"31", b"1000000", b"2147483647", b"99999999999", b"0.5")
_BYTES = (
    b"\x00",
    b"\xff",
    b"\x1b[2J",
    b"\x9b",
    b"\n",
    b"\r",
    b"\t",
    b"|",
    b",",
    b"\xe2\x80\xae",
    b"\xd9\xa1",
    b"\xed\xa0\x80",
)


def mutated(seeds: Sequence[bytes], number: int) -> bytes:
    """One of the seeds with one to five changes."""
    chance = random.Random(number)
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        place = chance.randrange(len(data) + 1)
        length = min(chance.choice((1, 2, 8, 60, 1000)), max(1, len(data) - place))
        match chance.randrange(12):
            case 0:
                data[place : place + 1] = bytes([chance.randrange(256)])
            case 1:
                del data[place : place + length]
            case 2:
                data[place:place] = chance.choice(_WORDS)
            case 3:
                data[place:place] = chance.choice(_BYTES)
            case 4:
                data[place : place + length] = chance.choice(_WORDS)
            case 5:
                part = bytes(data[place : place + length])
                data[place:place] = part * chance.choice((1, 3, 100))
            case 6:
                other = chance.choice(seeds)
                start = chance.randrange(len(other) + 1)
                data[place:place] = other[start : start + length]
            case 7:
                data[place:place] = chance.choice(
                    (b"[", b"{", b"(", b'"', b"a.", b" ", b"9", b"$(")
                ) * chance.choice((10, 1000, 20_000))
            case 8:
                if chance.random() < 0.3:
                    del data[place:]
            case _:
                if found := _NUMBER.search(data, place):
                    data[found.start() : found.end()] = chance.choice(_NUMBERS)
        if len(data) > LARGEST:
            del data[LARGEST:]
    return bytes(data)
