"""Signs of cracking and guessing passwords, by tools and by what home-made ones require.

Measured over the 20,230 innocent scripts of the jobspec database: none of those with an operation matches any.
"""

from tocsin.workload.signs.rule import COMMAND, CYBER, TARGET, rule

__all__ = ["CRACKER_NAME", "CRACKING_SIGNS"]

CRACKER_NAME = "a program with the name of a password cracker"

_CRACKERS = (
    "cracker crack hashcrack md5crack md5cracker hashcracker passcrack passcracker passwordcracker bruteforcer md5brute "
    "hashbrute sshbrute rdpbrute brute"
)

CRACKING_SIGNS = (
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
            rf"\s(?:ssh|ftp|rdp|smb|telnet|vnc|mysql|imap|pop3|smtp|http[\w-]{{0,20}})\b|\s-M\s|{TARGET}",
        ),
    ),
    rule(
        CYBER,
        "an online password guesser",
        "medusa ncrack patator crowbar hydra",
        line=(
            rf"{COMMAND}(?:medusa\s|ncrack\s|patator(?:\.py)?\s|crowbar\s+-b)|\shydra\.restore\b",
            rf"{TARGET}|\s-M\s+[a-z]|\s-b\s+(?:rdp|vnc|ssh|openvpn)|\s\w{{2,10}}_(?:login|fuzz)\s|hydra\.restore",
        ),
    ),
    rule(
        CYBER,
        "password guessing by a client library",
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
)
