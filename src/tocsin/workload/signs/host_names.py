"""Hosts of the Internet that are written out in a text, whatever stands around them.

A program must be told whom it works for. So a name of a host is a sign wherever it stands, and no way from there to a program
needs to be followed: public job scripts have next to none, other than for clients of the network.
"""

import re
from collections.abc import Iterable

__all__ = ["TOP_LEVEL", "may_name_host", "names_host", "names_host_and_port", "strings_of"]

_COUNTRIES = (
    "ac ae af ag ai ao ar au aw ax az ba bb bd bf bg bh bj bm bn bo br bs bt bw ca cg ch ci ck cl cn co cr cv cw cx cy de dj dk dm dz ec"
    " ee eg er es et eu fi fj fk fm fo fr gd ge gf gg gh gi gl gm gn gq gt gu gw gy hk hm hn hr ht hu ie il io iq ir je jm jo jp ke kg kh"
    " ki km kn kp kr kw ky kz lb li lk ls lt lu lv ly mg mh mn mp mq mr mt mu mv mw mx mz ne ni np nr nu nz om pf pg ph pk pw qa ro ru rw"
    " sa se sg si sk sn sr ss su sv sx sy sz td tf tg tj tk tl tm tn tr tt tv tw tz ua ug uk us uy uz vc ve vg vn vu wf ws ye yt za zm zw"
)
_OTHERS = (
    "com org net edu gov mil biz pro site online tech app dev cloud network stream live club shop space website fun world today life"
    " digital systems services solutions money finance exchange hosting click team agency zone games cash capital fund energy lol moe"
    " icu vip bid party trade review rocks ninja guru asia mobi academy bargains bet bitcoin blog boutique business buzz cafe camp"
    " center chat coach coffee community company computer consulting cool coop cricket crypto dance deals directory dog domains"
    " education engineer engineering enterprises estate events expert express farm fashion fyi gallery gives golf guide haus"
    " holdings house immo industries ink institute international investments jobs kim land law llc ltd management marketing"
    " markets media mining nexus observer onion i2p partners photos pictures pink press productions properties quest ren repair sale"
    " school security social software solar studio style sucks supply support surf tax taxi tips tours town toys trading university"
    " ventures video villas vision wang webcam wiki wtf yoga"
)
_ALSO_OF_FILES = (
    "ad al am as at be bi by do gs hm id im is it la lr ma mc me ml mm mo my na nc nf ng nl no pa pe pr re sd sl st sz tc to vi info xyz"
    " top group name link store host email one plus win build art bar show page parts power science tools training help"
    " watch works zip mov city design earth family fit graphics market place red gold green blue wine"
)
"""Domains that are usual endings of files, names of settings, or words of code."""
_SCRIPTS = "py sh pl in so md rs cc ps pt pm"
"""Domains that programs end with."""
TOP_LEVEL = "|".join([*_COUNTRIES.split(), *_OTHERS.split()])
"""Domains that nothing else ends with."""
_DOT = r"[.\u3002\uff0e\uff61]"
_LABEL = r"[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?"
_OWN_LABEL = r"[^\W_](?:[^\W_]|-){1,62}"
"""The part that somebody must register, in which no underscore may be."""
_NAME = re.compile(
    rf"(?<![\w@./$}}*%&~\\-])(?:{_LABEL}{_DOT}){{0,6}}{_OWN_LABEL}{_DOT}(?:{TOP_LEVEL}|xn--[a-z0-9-]{{1,40}})\.?"
    r"(?![\w(@\[*{$-]|\.\w|\s{0,2}=|:{1,2}[A-Za-z_$]|/[\w.*${}-]*[.*]\w)"
)
_ENDS = re.compile(rf"{_DOT}(?:{TOP_LEVEL}|xn--[a-z0-9-]{{1,40}})(?![\w(@\[-])")
"""Where such a name may end. It begins with a plain letter, which makes the search fast."""
_MAY_END = re.compile(_ENDS.pattern, re.IGNORECASE)
_BEFORE, _BEHIND = 300, 40
"""How far around its end a name is looked for."""
_ADDRESS = re.compile(
    r"(?<![\w.=@:/+-])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]|-\d)|(?<==)\d{1,3}(?:\.\d{1,3}){3}(?![\w.]|-\d)"
)
_LOCAL = re.compile(
    r"(?:0|10|127|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01])|2(?:2[4-9]|[345]\d))\.|\d+\.\d+\.\d+\.\d+$(?<=\.255)"
)
_LARGEST_OF_A_VERSION = 99
"""With no larger number, four of them are a version, or the sizes of a lattice."""
_SIXTH = re.compile(
    r"(?<![\w:.])(?=[0-9a-f:]*[0-9a-f]{3})(?:(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6}|(?:[0-9a-f]{1,4}:){1,7}:"
    r"|::(?:[0-9a-f]{1,4}:){1,6}[0-9a-f]{1,4}|(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4})(?![\w:])",
    re.IGNORECASE,
)
_TRUSTED = re.compile(
    r"(?:^|\.)(?:edu|gov|mil|(?:edu|gov|ac|gob|mil)\.[a-z]{2}|cern\.ch"
    r"|(?:docker|ghcr|gcr|quay|nvcr|k8s|nextflow|conda)\.io|docker\.com|pkg\.dev|github(?:usercontent)?\.com|gitlab\.com|bitbucket\.org"
    r"|pypi\.org|pythonhosted\.org|anaconda\.(?:org|com)|npmjs\.org|r-project\.org|bioconductor\.org|sylabs\.io|singularity-hub\.org"
    r"|huggingface\.co|hf\.co|wandb\.ai|pytorch\.org|zenodo\.org|ensembl\.org|sourceforge\.net|apache\.org|gnu\.org|kernel\.org"
    r"|googleapis\.com|microsoft\.com|nvidia\.com|ubuntu\.com|debian\.org|python\.org|julialang\.org|openstreetmap\.org|slack\.com)$",
    re.IGNORECASE,
)
"""Domains that only institutions get, and servers of code, packages, containers and data that nobody mines for."""
_WEB = re.compile(r"https?://(?:[^\s/@\"'<>]{1,200}@)?([^\s/:\"'<>()\\]{1,255})(?::\d{1,5})?", re.IGNORECASE)
_OTHER_SCHEME = re.compile(r"\b[A-Za-z][\w+.-]{0,20}://+(?:[^\s/@:\"']{1,120}(?::[^\s/@:\"']{0,120})?@)?")
_ESCAPE = re.compile(
    r"\\u00([0-9a-fA-F]{2})|\\x([0-9a-fA-F]{2})|%(2[eEdD]|[46][0-9a-fA-F]|[57][0-9aA])|&#x([0-9a-fA-F]{2});|&#(\d{2,3});"
)
"""A letter or a dot as JSON, YAML, the web and most languages write it."""
_WEB_ADDRESS = re.compile(
    r"(?:git\+)?(?:https?|ftps?|s3|gs|git|ssh|docker|oras|library|shub)://[^\s\"'<>()]*", re.IGNORECASE
)
_FILLED_IN = re.compile(r"[$`{\0\1\2]")
_STRING = re.compile(
    r"\"([^\"\n]{1,400})\"|'([^'\n]{1,400})'|`([^`\n]{1,400})`|\bqw?\s?[(\[{/]([^)\]}/\n]{1,400})"
)
_MAY_BE_NUMBER = re.compile(
    r"(?<![\w.])(?:[1-4]\d{9}|\d{8,9}|0x[0-9a-fA-F]{8}|0x[0-9a-fA-F]{1,2}\.0x\w\w?\.\w+\.\w+|\d{1,3}\.\d{1,3}\.\d{4,5})(?![\w.])"
)
_MAY_BE_USER = re.compile(
    r"(?<!\S)(?:-[uUwW]|--?(?:user|wallet|worker|login|account|rig|pass|ident|label))[ =]\s?[A-Za-z]"
)
_MAY_BE_NAME = re.compile(
    rf"[^\W_]\.(?:{TOP_LEVEL}|{'|'.join(_ALSO_OF_FILES.split() + _SCRIPTS.split())})(?=[\s\"':/,]|$)",
    re.MULTILINE | re.IGNORECASE,
)


def may_name_host(text: str) -> bool:
    """Whether there may be a host in a text; most have none."""
    if _ESCAPE.search(text):
        return True
    return (
        _MAY_END.search(text) is not None
        or "://" in text
        or "localhost" in text
        or _ADDRESS.search(text) is not None
        or (":" in text and _SIXTH.search(text) is not None)
        or _MAY_BE_NUMBER.search(text) is not None
        or (_MAY_BE_USER.search(text) is not None and _MAY_BE_NAME.search(text) is not None)
    )


def names_host(text: str, *, web: bool = True) -> bool:
    """Whether a host is written out in a text, other than one that nobody mines for.

    `web`: a page on the web counts, too.
    """
    text = _ESCAPE.sub(_unescaped, text)
    if "://" in text:
        if web and any(_is_foreign_page(found[1]) for found in _WEB.finditer(text)):
            return True
        text = _OTHER_SCHEME.sub(" ", _WEB_ADDRESS.sub(" ", text))
    for end in _ENDS.finditer(text):
        for found in _NAME.finditer(text, max(0, end.start() - _BEFORE), end.end() + _BEHIND):
            if found.end() >= end.end() and not _TRUSTED.search(found[0].rstrip(".")):
                return True
            if found.start() > end.start():
                break
    return any(map(_is_far, _ADDRESS.findall(text))) or (":" in text and _SIXTH.search(text) is not None)


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[5])) if found[5] else chr(int(next(filter(None, found.groups())), 16))


def _is_foreign_page(host: str) -> bool:
    if _FILLED_IN.search(host):
        return False
    if host[0].isdigit() and host.replace(".", "").isdigit():
        return not _LOCAL.match(host)
    return "." in host and not _TRUSTED.search(host)


def _is_far(address: str) -> bool:
    """Whether four numbers are an address of the Internet, and no version."""
    numbers = [int(number) for number in address.split(".")]
    return _LARGEST_OF_A_VERSION < max(numbers) < 256 and not _LOCAL.match(address)


def _is_size(address: str) -> bool:
    """Whether four numbers are the sizes of a lattice or of a grid of processes: even, or very small."""
    return all(
        number.isdigit() and (int(number) < 5 or int(number) % 2 == 0) for number in address.split(".")
    )


def strings_of(code: str) -> str:
    """The written texts of code, one in a line."""
    return "\n".join(next(filter(None, found.groups())) for found in _STRING.finditer(code))


_PORT = re.compile(r"(?:[1-9]\d{2,4}|80|0x[0-9a-f]{2,4})$")
_USER = re.compile(r"(?:-[uUwW]|--?(?:user|wallet|worker|login|account|rig|pass|ident|label))$")
_NO_USER = re.compile(r"-|\d+$|.*\.(?:py|sh|R|pl|jl|m)$|.*/")
_NAME_OR_FILE = re.compile(
    rf"(?:{_LABEL}\.){{0,6}}{_OWN_LABEL}\.(?:{TOP_LEVEL}|{'|'.join(_ALSO_OF_FILES.split())})(?:[:/,;#|]\d{{2,5}})?$",
    re.IGNORECASE,
)
_MAYBE_NAME = re.compile(
    rf"(?:localhost|127(?:\.\d{{1,3}}){{1,3}}|\[?::1\]?|(?:[\w+-]{{1,120}}@)?(?:(?:{_LABEL}\.){{2,6}}(?!(?:txt|csv|json|ya?ml|log|out|gz|nc|h5|sif|img|dat)$)[A-Za-z]{{2,12}}"
    rf"|(?:{_LABEL}\.){{1,6}}(?:{'|'.join(_SCRIPTS.split())})))$"
)
"""This machine, a name that may be one of a program, or an address of mail."""
_NUMBERS = re.compile(
    r"(?:\d{1,3}(?:\.\d{1,3}){3}|[1-9]\d{0,2}\.\d{1,3}\.\d{4,5}|(?:0x[0-9a-f]{1,2}|0[0-7]{1,3})(?:\.(?:0x[0-9a-f]{1,2}|0[0-7]{1,3}|\d{1,3})){3})$",
    re.IGNORECASE,
)
_ONE_NUMBER = re.compile(r"\d{8,10}$|0x[0-9a-f]{8}$", re.IGNORECASE)
_DATE = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])(?:\d\d)?$")
_FEW_DIGITS = 4
"""With fewer different ones, it is a round number or a mask."""


def names_host_and_port(words: Iterable[str]) -> bool:
    """Whether words are a host with its port or user, where the host alone would be something else: a file, or a number."""
    name = maybe = numbers = port = user = False
    before = ""
    for word in words:
        option, before = before, word
        if option == "-m":  # a module of Python
            continue
        name_of_value, sign, value = word.rpartition("=")
        value = value.strip("\"'")
        if _USER.match(name_of_value if sign else option) and not _NO_USER.match(value):
            user = True
        if value[:1] == "-" and len(value) > 3:  # an option with its value glued to it
            value = value[2:]
        if _PORT.match(value):
            port = True
        elif (_NUMBERS.match(value) and not _is_size(value) and value[:4] != "127.") or _is_number_of_host(
            value
        ):
            numbers = True
        elif "." in value or value == "localhost":
            name = name or _NAME_OR_FILE.match(value) is not None
            maybe = maybe or _MAYBE_NAME.match(value) is not None
    return (numbers and port) or (name and (port or user)) or (maybe and port and user)


def _is_number_of_host(value: str) -> bool:
    """Whether a number may be an address in one: in the range of these, not round, and no date."""
    if not _ONE_NUMBER.match(value) or _DATE.match(value) or len(set(value.lower())) <= _FEW_DIGITS:
        return False
    number = int(value, 0 if value[:2].lower() == "0x" else 10)
    return 1 << 24 <= number < 1 << 32 and number % 1000 != 0 and number & 0xFFFF != 0
