"""The top-level domains of the Internet, by what else such a suffix may be."""

__all__ = ["OF_FILES", "OF_SCRIPTS", "SURE"]

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
_FILES = (
    "ad al am as at be bi by do gs hm id im is it la lr ma mc me my na nf ng nl no pa pe pr re sd sl st sz tc to vi info xyz"
    " top group name link store host email one plus win build art bar show page parts power science tools training help"
    " watch works zip mov city design earth family fit graphics market place red gold green blue wine"
)
SURE = frozenset([*_COUNTRIES.split(), *_OTHERS.split()])
"""Those that are not a suffix of anything else."""
OF_FILES = frozenset(_FILES.split())
"""Common suffixes of files, names of settings, or words of code."""
OF_SCRIPTS = frozenset("py sh pl in so md rs cc ps pt pm".split())  # noqa: SIM905  # a list of words reads best so
"""Suffixes of programs."""
