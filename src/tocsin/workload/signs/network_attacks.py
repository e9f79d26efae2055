"""Signs of scanning, flooding and breaking into other machines, by tools and by what home-made ones require.

Measured over the 20,230 innocent scripts of the jobspec database: none of those with an operation matches any.
"""

from tocsin.workload.signs.rule import COMMAND, CYBER, TARGET, rule

__all__ = ["NETWORK_ATTACK_SIGNS", "SCANNER_NAME"]

SCANNER_NAME = "a program with the name of a network scanner"

# It begins with a digit, and lookbehinds come later, since that search is fastest.
_NETWORK = r"\d\d{0,2}\.\d{1,3}\.\d{1,3}\.(?:\d{1,3}/(?:[0-9]|[12][0-9]|3[01])\b|\d{1,3}-\d{1,3}\b|\*)"
_REPORT_HOOKS = "-ol -og -oa -on -ox -oj"
_REPORT = r"\s(?-i:-o[LGANXJ])\s+\S"
_SPEED = r"\s(?:--(?:max-|min-)?rate[ =]\d|(?-i:-T[0-5]|-iL|-Pn|-s[STUV])\s|--script[ =]|--top-ports|-p-\s)"
_RANGE = r"(?:^|\s)\./[\w.-]{1,40}\s+(?:-\w{1,9}\s+)?\$\{?\w{0,9}(?:%s)\w{0,9}\}?\s+(?:-\w{1,9}\s+)?\$\{?(?:\w{0,9}port|\d)"

NETWORK_ATTACK_SIGNS = (
    rule(
        CYBER,
        "a network scanner",
        "nmap zmap zgrab zgrab2",
        line=(
            rf"{COMMAND}(?:nmap|zmap|zgrab2?)\s",
            r"^(?!.{0,500}\b(?:localhost|127\.0\.0\.1)\b)",
            rf"{TARGET}|\s(?-i:-s[STUVACNPn]|-Pn|-T[0-5]|-iL|-o[NXGA])\s|\s--(?:script|top-ports|probe)|/\d\d?\b",
        ),
    ),
    rule(
        CYBER,
        SCANNER_NAME,
        "nmap zmap zgrab zgrab2",
        line=(
            rf"{COMMAND}(?:nmap|zmap|zgrab2?)\s",
            r"^(?!.{0,500}\b(?:localhost|127\.0\.0\.1)\b)",
            r"\s(?-i:-p|-A|-O|-F|-r)",
        ),
        weak=True,
    ),
    rule(
        CYBER,
        "a network scanner",
        "masscan rustscan naabu unicornscan nikto gobuster wfuzz ffuf wpscan feroxbuster enum4linux theharvester subfinder "
        "nuclei amass dnsrecon",
        line=(
            rf"{COMMAND}(?:masscan\s(?!--version)|rustscan\s|naabu\s|unicornscan\s|nikto(?:\.pl)?\s+-|gobuster\s+\w|wfuzz\s+-"
            r"|ffuf\s+-|wpscan\s+-|feroxbuster\s+-|enum4linux\s|theharvester\s|subfinder\s+-|nuclei\s+-|amass\s+(?:enum|intel)"
            r"|dnsrecon\s+-)",
            rf"{TARGET}|\s-(?:iL|[uhdlp]|host|p\d[\d,-]*)\s|\s--(?:(?:top-)?ports?|url|host|target|domain|include-?file)\b",
        ),
    ),
    rule(
        CYBER,
        "an attack tool",
        "sqlmap crackmapexec netexec nxc msfconsole msfvenom ettercap arpspoof bettercap responder kerbrute bloodhound evil "
        "impacket secretsdump",
        line=rf"{COMMAND}(?:(?:python\d?\s+)?(?:[\w./-]{{0,99}}/)?(?:sqlmap(?:\.py)?\s+-|responder(?:\.py)?\s+-I\s+(?:[a-z]{{2,8}}\d|lo\b|all\b|\$)|secretsdump(?:\.py)?\s+-)|crackmapexec\s"
        r"|(?:netexec|nxc)\s+(?:smb|ssh|ldap|winrm|mssql|rdp)\s|msf(?:console|venom)\b|ettercap\s|arpspoof\s|bettercap\s+-"
        r"|kerbrute\s+\w|bloodhound-python\s|evil-winrm\s|impacket-\w)",
    ),
    rule(
        CYBER,
        "a scan of ports by the shell",
        "tcp udp",
        "dev",
        line=r"/dev/(?:tcp|udp)/[\w.${}]{0,60}\.\$\{?\w{1,30}\}?/",
    ),
    rule(
        CYBER,
        "a scanner by its arguments",
        "iprange ipranges range subnet cidr",
        "port",
        line=_RANGE % "ip_?range|subnet|cidr",
        weak=True,
    ),
    rule(
        CYBER,
        "a scan of range after range",
        "iprange ipranges range cidr",
        "port",
        "for while xargs parallel",
        line=_RANGE % "ip_?range|cidr",
        near=(r"\bfor\s+\w{0,9}(?:ip_?range|cidr)\w{0,9}\s+in\b|\bread\s+\w{0,9}(?:ip_?range|cidr)",),
    ),
    rule(
        CYBER,
        "packets with false senders",
        "scapy sock randip",
        "send sendp sendpfast sr1 srloop raw randip",
        line=r"\bsend(?:p|pfast)?\(\s{0,9}(?:IP|Ether|IPv6|p(?:ac)?ke?t)\b|\bRandIP\(|\bSOCK_RAW\b.{0,80}IPPROTO_(?:TCP|UDP|RAW)",
    ),
    rule(
        CYBER,
        "a flood",
        "flood flooder udpflood synflood httpflood icmpflood tcpflood dnsamp mhddos ripper",
        line=r"\b(?:udp|syn|http|icmp|tcp|ack|dns)[-_]?flood(?:er|ing)?\b|\bdns[-_]?amp(?:lif\w{0,8})?\b|\bmhddos\b|\bddos-ripper\b",
        weak=True,
    ),
    rule(
        CYBER,
        "a flood",
        "sendto send",
        "dgram",
        "urandom randbytes random randint rand",
        "while for",
        line=r"\.sendto\(|\bsend\(\s{0,9}\$?\w{1,40}\s{0,9},",
        near=(
            r"\bwhile\s{0,9}\(?\s{0,9}(?:true|1)\b|\bfor\s{0,9}\(\s{0,9};;|\brange\(\s{0,9}\d{5}",
            r"urandom|randbytes|\brandom\b|\brand\b|\bx\s{0,9}\d{3}",
        ),
        unless=(r"sleep|recv|localhost|127\.0\.0\.1",),
    ),
    rule(
        CYBER,
        "a flood",
        "start",
        "py",
        "tcp udp syn get post stress slow bypass ovh cfb null",
        line=r"\bstart\.py\s+\w{2,10}\s+(?:https?://|(?:\d{1,3}\.){3}\d)",
    ),
    rule(
        CYBER,
        "the arguments of a network scanner",
        "--rate --max-rate --min-rate -ss -su -pn --banners --top-ports -p",
        line=(
            r"-(?<!\S-)(?:-(?:max-|min-)?rate[ =]\d|s[SU]\b|Pn\b|-banners|-top-ports|p ?\d{1,5}[-,]\d)",
            _NETWORK,
        ),
        weak=True,
    ),
    rule(
        CYBER,
        "a scan of ports with a report",
        _REPORT_HOOKS,
        line=(_REPORT, _SPEED, r"\s(?:(?-i:-p)[ ]?[\d$-]|--(?:top-)?ports[ =])"),
    ),
    rule(
        CYBER,
        "the arguments of a network scanner",
        _REPORT_HOOKS,
        line=(_REPORT, _SPEED),
        weak=True,
    ),
    rule(
        CYBER,
        "a flood",
        "hping hping3 slowloris slowhttptest goldeneye --rand-source t50 hulk torshammer xerxes ddos mdk3 mdk4 --syn-flood ufonet",
        line=(
            r"(?:^|\s)--(?:rand-source|syn-flood)\b|\bddos[\w-]{0,30}\.(?:py|sh|pl)\b"
            rf"|{COMMAND}(?:(?:python\d?\s+)?(?:[\w./-]{{0,99}}/)?(?:slowloris|goldeneye|torshammer|hulk|ufonet)(?:\.p[yl])?\s"
            r"|hping3?\s|t50\s|xerxes\s|mdk[34]\s|slowhttptest\s)",
            rf"--(?:rand-source|flood|syn-flood)\b|{TARGET}|\smdk[34]\s|^mdk[34]\s|\$\{{?[1-9]",
        ),
    ),
    rule(
        CYBER,
        "a shell for somebody else",
        "tcp nc ncat socat",
        line=r"\bba?sh\s+-i\s{0,9}[0-9]?>[>&]\s{0,9}/dev/(?:tcp|udp)/|\bn(?:c|cat)\s+(?:-\w{1,9}\s+){0,4}-\w{0,4}e\s{0,9}/bin/\w{0,3}sh"
        r"|\bsocat\s.{0,80}exec:.{0,20}sh\b|0<&\d{1,3}-?.{0,20}/dev/tcp/",
    ),
)
