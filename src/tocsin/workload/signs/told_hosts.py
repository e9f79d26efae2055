"""Hosts that a program is told as a word of its own: with a port or a user as another word, or far away by their name."""

import re
from collections.abc import Iterable

from tocsin.workload.signs.values import PIECE

__all__ = ["HOST_NAME", "may_tell_host", "settings_tell_host", "strings_tell_host", "tell_host"]

_COUNTRIES = (
    "ac ad ae af ag al am ao ar at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw by ca cc cg ch ci ck cl cn co cr cv cw cx"
    " cy de dj dk dm dz ec ee eg er es et eu fi fj fk fm fo fr gd ge gf gg gh gi gl gm gn gq gt gu gw gy hk hm hn hr ht hu id ie il io"
    " iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz lb li lk lr ls lt lu lv ly ma mc me mg mh mp mq mr mt mu mv mw mx my mz na"
    " ne ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pr pw qa re ro ru rw sa sd se sg si sk sl sn sr ss su sv sx sy sz tc td"
    " tg tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz vc ve vg vn vu wf ws ye yt za zm zw"
)
_OTHERS = (
    "com org net edu gov mil info biz pro xyz site online store tech app dev cloud network stream live club shop space website"
    " fun world today life digital systems services solutions money finance exchange host hosting link click team agency zone email"
    " games cash capital fund gold energy lol moe one icu vip win bid party trade science review rocks ninja guru plus asia mobi"
)
"""Domains of the Internet, without those that are usual endings of files: .py, .sh, .in, .pt and their like."""
HOST_NAME = re.compile(
    rf"\.(?:{'|'.join([*_COUNTRIES.split(), *_OTHERS.split()])}|xn--[a-z0-9-]{{1,40}})(?![\w.@:(-]|/\w{{2}})",
    re.IGNORECASE,
)
"""Where the name of a host may end."""
_NUMBER_OF_HOST = re.compile(r"\.(?<=\d\.)\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w.])")
"""Both begin with a plain letter, which makes the search fast."""
_FAR = re.compile(
    rf"(?:(?:[A-Za-z0-9][\w-]{{0,62}}\.){{1,6}}(?:{'|'.join([*_COUNTRIES.split(), *_OTHERS.split()])}|xn--[a-z0-9-]{{1,40}})\.?"
    r"|(?!127\.|0\.|255\.)\d{1,3}(?:\.\d{1,3}){3}|\[?(?!::1\]?$)[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){4,7}\]?)$"
)
_NEAR = re.compile(
    r"(?:localhost|127(?:\.\d{1,3}){1,3}|\[?::1\]?|(?:[\w+-]{1,120}@)?(?:[A-Za-z][\w-]{0,62}\.){2,6}[a-z]{2,5})$"
)
"""This machine, a name that may be one of a file, or an address of mail."""
_PIECES = re.compile(rf"{PIECE}(?:\.{PIECE}){{2,3}}$")
_TEMPLATE = re.compile(
    rf"(?<![\w/.@$])\$[({{]?\w+[)}}]?(?:\.[\w-]+)*\.(?:{'|'.join([*_COUNTRIES.split(), *_OTHERS.split()])})(?![\w.@:(/-])"
)
"""The name of a host of which another program fills in a part."""
_PORT = re.compile(r"(?:[1-9]\d{2,4}|80|0x[0-9a-f]{2,4})$")
_WITH_PORT = re.compile(r"([\w.-]{4,255})[/,;#|](\d{2,5})$")
"""A host and its port with another sign than a colon in between."""
_USER = re.compile(r"(?:-[uUwW]\w*|--?(?:user|wallet|worker|login|account|rig|pass|ident|label)\w*)(?:=.*)?$")
_PROTOCOL = re.compile(r"(?!https?:|ftps?:|s3:|gs:|git|ssh:|file:|docker:|root:)[A-Za-z][\w+]{0,15}://")
_STRING = re.compile(r"\"([^\"\n]{1,400})\"|'([^'\n]{1,400})'")
_SETTING = re.compile(r"[\s=:;,\"'<>{}()\[\]/|]+")
_MOST_WORDS = 400
_NEAR_LINES = 6


def may_tell_host(text: str) -> bool:
    """Whether there may be a host in a text; most have none."""
    return (
        HOST_NAME.search(text) is not None or "localhost" in text or _NUMBER_OF_HOST.search(text) is not None
    )


def tell_host(words: Iterable[str]) -> bool:
    """Whether words tell a host and a port, or a host and a user there."""
    far = near = port = user = False
    before = ""
    for word in words:
        option, before = before, word
        if option == "-m":  # a module of Python
            continue
        if _USER.match(word):
            user = True
        value = word.rpartition("=")[2].strip("\"'")
        if not value:
            continue
        if value[0].isdigit() and _PORT.match(value):
            port = True
        elif "." in value or ":" in value or value == "localhost":
            if "://" in value:
                value = _PROTOCOL.sub("", value, count=1)
            if found := _WITH_PORT.match(value):
                value, port = found[1], True
            elif value[:1] == "-" and ":" in value:
                value = value.rpartition(":")[2]
            if PIECE in value:  # a part of a name is one of a name, too
                far = far or _PIECES.match(value) is not None
                value = value.replace(PIECE, "x")
            if value[:1] == "-" and len(value) > 3:  # an option with its value glued to it
                value = value[2:]
            if _FAR.match(value.lower()):
                far = True
            elif _NEAR.match(value):
                near = True
    return (far and (port or user)) or (near and port and user)


def settings_tell_host(text: str) -> bool:
    """Whether lines that stand near each other tell a host and a port or a user."""
    if not may_tell_host(text):
        return False
    if "$" in text and _TEMPLATE.search(text):
        return True
    lines = text.split("\n")
    for place, line in enumerate(lines[:_MOST_WORDS]):
        if ("." in line or "localhost" in line) and any(map(_FAR.match, _SETTING.split(line)[:40])):
            block = lines[max(0, place - _NEAR_LINES) : place + _NEAR_LINES]
            if tell_host(word for near in block for word in _SETTING.split(near)[:40]):
                return True
    return False


def strings_tell_host(code: str) -> bool:
    """Whether the strings in a line of code tell a host and a port or a user."""
    if not may_tell_host(code):
        return False
    return any(
        tell_host(
            word for found in _STRING.finditer(line) for word in (found[1] or found[2]).split()[:_MOST_WORDS]
        )
        for line in code.split("\n")
        if may_tell_host(line)
    )
