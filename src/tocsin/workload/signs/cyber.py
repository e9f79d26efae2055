"""Signs of cracking, scanning and flooding, by tools and by what home-made ones require.

Measured over the 20,230 innocent scripts of the jobspec database: none of those with an operation matches any.
"""

from tocsin.workload.signs.rule import COMMAND, CYBER, rule

__all__ = ["CRACKER_NAME", "CYBER_SIGNS", "SCANNER_NAME"]

CRACKER_NAME = "a program with the name of a password cracker"
SCANNER_NAME = "a program with the name of a network scanner"

# It begins with a digit, and lookbehinds come later, since that search is fastest.
_NETWORK = r"\d\d{0,2}\.\d{1,3}\.\d{1,3}\.(?:\d{1,3}/(?:[0-9]|[12][0-9]|3[01])\b|\d{1,3}-\d{1,3}\b|\*)"
_REPORT_HOOKS = "-ol -og -oa -on -ox -oj"
_REPORT = r"\s(?-i:-o[LGANXJ])\s+\S"
_SPEED = r"\s(?:--(?:max-|min-)?rate[ =]\d|(?-i:-T[0-5]|-iL|-Pn|-s[STUV])\s|--script[ =]|--top-ports|-p-\s)"
_RANGE = r"(?:^|\s)\./[\w.-]{1,40}\s+(?:-\w{1,9}\s+)?\$\{?\w{0,9}(?:%s)\w{0,9}\}?\s+(?:-\w{1,9}\s+)?\$\{?(?:\w{0,9}port|\d)"
_TARGET = r"://|(?:\d{1,3}\.){3}\d|[\w-]\.(?:com|org|net|io|local|lan)\b|\$\{?\w{0,20}(?:ip|host|target|url|domain|net|range|cidr|server)\w{0,20}"
"""A machine or a network; a scientific program that happens to have a tool's name has none."""
_CRACKERS = (
    "cracker crack hashcrack md5crack md5cracker hashcracker passcrack passcracker passwordcracker bruteforcer md5brute "
    "hashbrute sshbrute rdpbrute brute"
)

CYBER_SIGNS = (
    rule(
        CYBER,
        "a password cracker",
        "hashcat hashcat64 hashcat32 zip2john ssh2john rar2john pdf2john office2john keepass2john gpg2john 7z2john "
        "bitlocker2john bitcoin2john unshadow hcxpcapngtool hcxpcaptool hcxdumptool aircrack aireplay airodump airmon "
        "airbase cowpatty pyrit rcrack ophcrack cap2hccapx fcrackzip pdfcrack",
        line=rf"{COMMAND}(?:hashcat(?:\d\d)?(?:-?cli\d{{0,2}})?(?:\.(?:bin|exe))?(?=\s|$|[\"'])(?!\s+--?(?:version|help))"
        r"|(?:zip|ssh|rar|pdf|office|keepass|gpg|7z|bitlocker|bitcoin)2john(?:\.p[ly])?\b|unshadow\s|hcxpcap(?:ng)?tool"
        r"|hcxdumptool|air(?:crack|eplay|odump|mon|base)-ng|cowpatty\s|pyrit\s+-|rcrack\w{0,9}\s|ophcrack|cap2hccapx"
        r"|fcrackzip\s|pdfcrack\s)",
    ),
    rule(
        CYBER,
        "a password cracker",
        "john",
        line=(
            rf"{COMMAND}john(?:\.exe)?\s",
            r"\s--?(?:incremental|fork|rules|show|single|restore|mask|pot|loopback|users)\b"
            r"|\s--?format[ =](?:raw|nt|lm|md5|sha|bcrypt|crypt|des|krb|net|zip|rar|pdf|office|ssh|wpa|mysql|oracle|phpass|dynamic|pkzip|keepass|dmg)"
            r"|hash|shadow|passw|rockyou|crack",
        ),
    ),
    rule(
        CYBER,
        CRACKER_NAME,
        "john",
        line=(rf"{COMMAND}john(?:\.exe)?\s", r"\s--?(?:wordlist|format|session)\b"),
        weak=True,
    ),
    rule(
        CYBER,
        "the arguments of a password cracker",
        "-m -m0 -m1000 -m1400 -m1800 -m2500 -m22000 -m3200 -m500 --hash-type",
        line=(
            # the kinds of hash that hashcat knows: 0, 10, 900, 1000, 1410, 22000
            r"(?:^|\s)(?:-m ?|--hash-type[ =])(?:0|[1-9]\d{0,2}0|\d{4,5})(?=\s|$)",
            r"(?:^|\s)(?:-a ?|--attack-mode[ =])[0-9](?=\s|$)",
            r"hash|wordlist|words|\.dict|\.rule|crack|passw|\.lst\b|rockyou|\?[ludsahb]\?[ludsahb]",
        ),
        weak=True,
    ),
    rule(
        CYBER,
        "the arguments of a password cracker",
        "--potfile-path --potfile-disable hccapx 22000",
        line=r"(?:^|\s)--potfile-(?:path|disable)\b|\.(?:hccapx|22000)(?=\s|$|[\"'])",
    ),
    rule(
        CYBER,
        "a kind of hash to crack",
        "--format",
        line=r"--format[ =](?:raw-(?:md5|sha\d{1,3})"
        r"|nt(?:lm)?|lm|md5crypt|sha(?:256|512)crypt|bcrypt|descrypt|krb5\w{1,20}|netntlm\w{0,4}|wpapsk|mscash2?)\b",
        weak=True,
    ),
    rule(
        CYBER,
        "a password cracker by its name",
        "brute bruteforce bruteforcer crack",
        "md5 sha1 sha256 sha512 ntlm hash hashes pass passlist passwd password passwords shadow",
        line=(
            r"brute(?:[-_ ]?force|\b)|crack",
            r"(?:md5|sha(?:1|256|512)|ntlm|passlist|passw(?:or)?d|hash(?:es)?)[-_/ ]?(?:crack|brute)"
            r"|(?:crack|brute)(?:[-_ ]?forc(?:e|er|ing))?[-_/ ]?(?:md5|sha(?:1|256|512)|ntlm|passw|hash)"
            r"|[/ =](?:passlist|passwords?|hashes|shadow)(?:[\w.-]{0,40}\.(?:txt|lst|hash)|/)",
        ),
        weak=True,
    ),
    rule(
        CYBER,
        "a wordlist of passwords",
        "rockyou seclists wordlists crackstation hashesorg weakpass",
        line=r"\b(?:rockyou|crackstation|hashesorg|weakpass)|\b(?:seclists|usr/share/wordlists)/",
        weak=True,
    ),
    rule(
        CYBER,
        "an online password guesser",
        "hydra xhydra",
        line=(
            rf"{COMMAND}x?hydra\s",
            r"\s-[lLpPCM]\s",
            rf"\s(?:ssh|ftp|rdp|smb|telnet|vnc|mysql|imap|pop3|smtp|http[\w-]{{0,20}})\b|\s-M\s|{_TARGET}",
        ),
    ),
    rule(
        CYBER,
        "an online password guesser",
        "medusa ncrack patator crowbar hydra",
        line=(
            rf"{COMMAND}(?:medusa\s|ncrack\s|patator(?:\.py)?\s|crowbar\s+-b)|\shydra\.restore\b",
            rf"{_TARGET}|\s-M\s+[a-z]|\s-b\s+(?:rdp|vnc|ssh|openvpn)|\s\w{{2,10}}_(?:login|fuzz)\s|hydra\.restore",
        ),
    ),
    rule(
        CYBER,
        "a network scanner",
        "nmap zmap zgrab zgrab2",
        line=(
            rf"{COMMAND}(?:nmap|zmap|zgrab2?)\s",
            r"^(?!.{0,500}\b(?:localhost|127\.0\.0\.1)\b)",
            rf"{_TARGET}|\s(?-i:-s[STUVACNPn]|-Pn|-T[0-5]|-iL|-o[NXGA])\s|\s--(?:script|top-ports|probe)|/\d\d?\b",
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
            rf"{_TARGET}|\s-(?:iL|[uhdlp]|host|p\d[\d,-]*)\s|\s--(?:(?:top-)?ports?|url|host|target|domain|include-?file)\b",
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
        "tries of passwords",
        "paramiko ftplib smtplib poplib imaplib telnetlib pymysql requests asyncssh",
        "passwords passwds passlist wordlist wordlists pwlist authenticationexception",
        "connect login post auth",
        line=r"\.(?:connect|login|post|auth)\(.{0,200}(?:pass|pwd|pw\b|\bp\b)",
    ),
    rule(
        CYBER,
        "a search for what has a hash",
        "itertools product permutations ascii",
        "hashlib md5 sha1 sha256",
        "hexdigest digest",
        "product",
        line=r"\bproduct\([^)\n]{0,80}(?:repeat|string\.|ascii|chars|alphabet|letters)",
    ),
    rule(
        CYBER,
        "an online password guesser by its arguments",
        "-l",
        "-p",
        "ssh ftp rdp smb telnet vnc mysql imap pop3 smtp mssql postgres",
        line=(
            r"\s(?-i:-L)\s+[^\s:]{1,200}\s",
            r"\s(?-i:-P)\s+[^\s:]{1,200}\s",
            r"(?:\s|://)(?:ssh|ftp|rdp|smb|telnet|vnc|mysql|imap|pop3|smtp|mssql|postgres)(?:://|\s*(?:$|[>|&;]))",
        ),
        weak=True,
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
            rf"--(?:rand-source|flood|syn-flood)\b|{_TARGET}|\smdk[34]\s|^mdk[34]\s|\$\{{?[1-9]",
        ),
    ),
    rule(
        CYBER,
        "a cracker",
        _CRACKERS,
        line=rf"{COMMAND}(?:python\d?\s+)?[\w./-]{{0,80}}?(?:hash|md5|sha\d{{1,3}}|pass(?:word|wd)?|ntlm|wpa)[-_]?(?:crack(?:er)?|brute(?:forcer?)?)"
        r"(?:\.(?:py|sh|pl|exe))?(?=\s|$)",
    ),
    rule(
        CYBER,
        "a cracker by its name",
        _CRACKERS,
        line=r"\b(?:\w{1,20}[-_])?(?:hash|md5|sha\d{0,3}|pass(?:word|wd)?|ntlm|wpa|rdp|ssh|brute)[-_]?(?:crack\w{0,8}|brute\w{0,8})\b",
        weak=True,
    ),
    rule(
        CYBER,
        "a program that is a cracker by its name",
        "cracker",
        line=rf"(?:{COMMAND}|\s-o\s+)cracker(?:\.\w{{1,4}})?[\"']?(?=\s|$|;)",
        weak=True,
    ),
    rule(
        CYBER,
        "a shell for somebody else",
        "tcp nc ncat socat",
        line=r"\bba?sh\s+-i\s{0,9}[0-9]?>[>&]\s{0,9}/dev/(?:tcp|udp)/|\bn(?:c|cat)\s+(?:-\w{1,9}\s+){0,4}-\w{0,4}e\s{0,9}/bin/\w{0,3}sh"
        r"|\bsocat\s.{0,80}exec:.{0,20}sh\b|0<&\d{1,3}-?.{0,20}/dev/tcp/",
    ),
)
