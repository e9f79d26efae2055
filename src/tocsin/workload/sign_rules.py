"""The table of signs: which words and shapes in a command line speak for which operation.

Measured over the 20,230 innocent scripts of the jobspec database: none of the rules with an operation matches any.
"""

import re
from typing import NamedTuple

__all__ = ["CRYPTOMINING", "CYBER", "RULES", "Rule"]

CRYPTOMINING = "cryptomining"
CYBER = "cyber"


class Rule(NamedTuple):
    operation: str | None
    why: str
    hooks: tuple[frozenset[str], ...]
    """The patterns can match only in a script that has a word of each group; a look at its words is fast."""
    patterns: tuple[re.Pattern[str], ...]
    """All must be found in one line. Each takes time linear in the line, whatever somebody writes in it."""


def _rule(operation: str | None, why: str, *hooks: str, line: str | tuple[str, ...]) -> Rule:
    patterns = (line,) if isinstance(line, str) else line
    return Rule(
        operation,
        why,
        tuple(frozenset(group.split()) for group in hooks),
        tuple(re.compile(pattern, re.IGNORECASE) for pattern in patterns),
    )


# Where a command begins: at the start of a line, after ; | & ( ` or a program that runs another.
_COMMAND = (
    r"(?:^|[;&|(`{]\s*|\b(?:sudo|exec|nohup|time|nice|srun|mpirun|mpiexec|then|do|else|timeout|xargs|proxychains4?|"
    r"singularity|apptainer|parallel|env|screen|bash -c|sh -c)\s+(?:[-\w=./:]{1,60}\s+){0,4}?)[\"']?(?:[\w./~${}-]{0,200}/)?"
)
_HOST = r"(?:[a-z][a-z0-9+]{0,15}://)?(?:[a-z0-9][\w-]{0,62}\.){1,6}[a-z]{2,24}:\d{2,5}\b"
_NETWORK = r"\b(?:\d{1,3}\.){3}(?:\d{1,3}/(?:[0-9]|[12][0-9]|3[01])\b|\d{1,3}-\d{1,3}\b|\*)"
_TO_SERVER = r"(?:^|\s)-(?:(?-i:[oF])|-?url|-?pool|-?server|-?proxy)[ =]+[\"']?"
_AS_USER = r"(?:^|\s)-(?:(?-i:[uO])|-?user|-?wal|-?wallet|-userpass)[ =]+[\"']?"
_SERVER = "-o -f --url --pool --server -server -pool -url --proxy"
_USER = "-u -o --user -user --wal -wal --wallet -wallet --userpass"
_CRACKERS = (
    "cracker crack hashcrack md5crack md5cracker hashcracker passcrack passcracker passwordcracker bruteforcer md5brute "
    "hashbrute sshbrute rdpbrute brute"
)
_ALGORITHMS = (
    r"rx/\w+|randomx\w*|cn(?:-(?:heavy|lite|pico))?/\w+|cryptonight[\w/-]*|ethash\w*|etchash|kawpow|kheavyhash|autolykos2?|"
    r"equihash[\d_/]*|144_5|192_7|125_4|yescrypt\w*|yespower\w*|lyra2\w*|x1[1367]r?\w*|verus(?:hash)?|ghostrider|neoscrypt|"
    r"beamhash\w*|cuckatoo\d*|cuckaroo\w*|progpow\w*|firopow|octopus|argon2/\w+|scrypt(?:n|:\d+)?|sha256d|groestl|"
    r"blake2s|skunk|phi2?|minotaurx?|power2b|allium|nexapow|karlsenhash|pyrinhash|dynexsolve|zelhash|ubqhash"
)
_MINERS = (
    r"xmrig(?:-\w+)*|ethminer|cpuminer(?:-\w+)*|minerd|ccminer|cgminer|bfgminer|sgminer|phoenixminer|nbminer|lolminer|"
    r"teamredminer|srbminer(?:-\w+)*|nanominer|wildrig(?:-\w+)?|xmr-stak(?:-\w+)*|cryptodredge|nheqminer|kawpowminer|"
    r"z-enemy|t-rex|bzminer|onezerominer|hellminer|gminer|claymore\w*miner|bminer|miniz|minergate(?:-cli)?|xmr-node-proxy|"
    r"cortex-miner|beepminer|nsgpucnminer|prospector-miner|ewbf-\w+|dstm|zm_?miner|ckb-miner|danila-miner|tonminer"
)
_POOLS = (
    r"nanopool\.org|ethermine\.org|flypool\.org|supportxmr\.com|minexmr\.com|nicehash\.com|2miners\.com|f2pool\.com|"
    r"hashvault\.pro|moneroocean\.stream|c3pool\.(?:com|org)|herominers\.com|unmineable\.com|dwarfpool\.com|zergpool\.com|"
    r"sushipool\.com|nimpool\.io|prohashing\.com|woolypooly\.com|k1pool\.com|kryptex\.network|antpool\.com|viabtc\.com|"
    r"slushpool\.com|braiins\.com|poolbinance\.com|hiveon\.(?:net|com)|zpool\.ca|mining-dutch\.nl|minergate\.com|"
    r"xmrpool\.(?:eu|net)|rplant\.xyz|luckpool\.net|miningpoolhub\.com|ss\.btc\.com|suprnova\.cc|aikapool\.com|"
    r"gulf\.moneroocean|monerohash\.com|skypool\.org|icemining\.ca|flexpool\.io|ezil\.me|sparkpool\.com|beepool\.org|"
    r"poolin\.(?:com|me)|zhash\.pro|crazypool\.org|cruxpool\.com|coinfoundry\.org|mypool\.online|pool\.(?:xmr|monero)\.\w+"
)

# The word of each pool and miner that nothing else is likely to have.
_COMMON = {
    "node",
    "cli",
    "pool",
    "proxy",
    "cortex",
    "prospector",
    "miner",
    "xmr",
    "ckb",
    "enemy",
    "ss",
    "mining",
    "zm_",
}
_POOL_NAMES = " ".join(
    {*re.findall(r"(?<!\\)\b[a-z0-9]+(?=(?:-\w+)?\\)", _POOLS), "dutch"} - _COMMON | {"xmr", "monero"}
)
_MINER_NAMES = " ".join(
    {*re.findall(r"(?<![\\\w-])\w{3,}", _MINERS), "stak", "rex"} - _COMMON | {"enemy", "danila", "ckb"}
)

RULES = (
    _rule(
        CRYPTOMINING,
        "a mining pool",
        "stratum stratum1 stratum2 ethstratum",
        line=r"\bstratum\d?(?:\+(?:tcps?|ssl|tls|udp|http|tls12))?://|\+(?:eth)?stratum\w{0,3}://",
    ),
    _rule(CRYPTOMINING, "a mining pool", _POOL_NAMES, line=rf"(?<![\w-])(?:{_POOLS})\b"),
    _rule(
        CRYPTOMINING,
        "a mining algorithm",
        "-a --algo --coin -algo -coin --algorithm algo algorithm coin",
        line=r"(?:(?:^|\s)-(?:a|-?algo|-algorithm|-?coin)[ =]+[\"']?|\"(?:algo|algorithm|coin)\"\s{0,9}:\s{0,9}\")"
        rf"(?:{_ALGORITHMS}|monero|xmr|ravencoin|etc)(?![\w/.-])",
    ),
    _rule(
        CRYPTOMINING,
        "an option that only miners have",
        "--donate-level donate --randomx-mode --randomx-init --randomx-wrmsr --randomx-no-rdmsr --randomx-no-numa "
        "--randomx-1gb-pages --cpu-max-threads-hint --nicehash --farm-recheck --rig-id --cuda-parallel-hash "
        "--extra-dag-epoch --huge-pages-jit --coinbase-addr --dag-build-mode --zilpool --dualmode -epool -ewal",
        line=r"(?:^|[\s\"'])(?:--(?:donate-level|randomx-[\w-]{1,20}|cpu-max-threads-hint|nicehash|farm-recheck|rig-id|"
        r"cuda-parallel-hash|extra-dag-epoch|huge-pages-jit|coinbase-addr|dag-build-mode|zilpool|dualmode)"
        r"(?=[\s=\"']|$)|-(?:epool|ewal)\s|donate-level\"?\s{0,9}:)",
    ),
    _rule(
        CRYPTOMINING,
        "a host to work for and the user there",
        _SERVER,
        _USER,
        line=(_TO_SERVER + _HOST, _AS_USER),
    ),
    _rule(
        CRYPTOMINING,
        "a pool and a wallet",
        _SERVER,
        "wallet --wallet -wallet -wal --wal",
        line=(_TO_SERVER + r"\S", _AS_USER + r"[$\w{:.-]{0,40}wallet|(?:^|\s)-?-wal(?:let)?[ =]"),
    ),
    _rule(
        CRYPTOMINING,
        "a miner",
        _MINER_NAMES,
        line=rf"{_COMMAND}(?:{_MINERS})[\d.]{{0,9}}(?:\.(?:exe|bin))?[\"']?(?=\s|$|;|&|\|)"
        rf"|(?:github\.com|docker\.io|releases)/(?:[\w.-]{{1,60}}/){{0,5}}(?:{_MINERS})\b",
    ),
    _rule(
        CRYPTOMINING,
        "a plotter of a coin by storage",
        "chia bladebit",
        line=rf"{_COMMAND}chia\s+(?:plots|plotters|farm|start\s+farmer|init|keys)\b|\bchia_plot(?:_k\d\d)?\s|\bbladebit(?:_cuda)?\s+(?:-|\w)"
        r"|\bxch1[02-9ac-hj-np-z]{58}\b",
    ),
    _rule(
        CRYPTOMINING,
        "a client of a coin",
        "qli qliclient qubic rqiner quilibrium qclient nockchain spacemesh postcli zkwork aleo tari dynexsolve ironfish kaspa",
        line=rf"{_COMMAND}(?:qli-?client|qubic-?(?:cli|miner|client)|rqiner[\w-]{{0,20}}|quilibrium[\w-]{{0,20}}|qclient|nockchain[\w-]{{0,20}}"
        r"|go-spacemesh|postcli|zkwork[\w-]{0,20}|aleo[\w-]{0,20}(?:miner|prover)|(?:minotari|tari)[\w-]{0,5}miner|dynexsolve"
        r"|ironfish[\w-]{0,10}miner|kaspa-?miner)(?=\s|$)",
    ),
    _rule(
        CYBER,
        "a password cracker",
        "hashcat hashcat64 hashcat32 zip2john ssh2john rar2john pdf2john office2john keepass2john gpg2john 7z2john "
        "bitlocker2john bitcoin2john unshadow hcxpcapngtool hcxpcaptool hcxdumptool aircrack aireplay airodump airmon "
        "airbase cowpatty pyrit rcrack ophcrack cap2hccapx fcrackzip pdfcrack",
        line=rf"{_COMMAND}(?:hashcat(?:\d\d)?(?:-?cli\d{{0,2}})?(?:\.(?:bin|exe))?(?=\s|$|[\"'])(?!\s+--?(?:version|help))"
        r"|(?:zip|ssh|rar|pdf|office|keepass|gpg|7z|bitlocker|bitcoin)2john(?:\.p[ly])?\b|unshadow\s|hcxpcap(?:ng)?tool"
        r"|hcxdumptool|air(?:crack|eplay|odump|mon|base)-ng|cowpatty\s|pyrit\s+-|rcrack\w{0,9}\s|ophcrack|cap2hccapx"
        r"|fcrackzip\s|pdfcrack\s)",
    ),
    _rule(
        CYBER,
        "a password cracker",
        "john",
        line=(
            rf"{_COMMAND}john(?:\.exe)?\s",
            r"\s--?(?:wordlist|format|incremental|fork|rules|show|single|session|restore|mask|pot|loopback|users)\b",
        ),
    ),
    _rule(
        CYBER,
        "the arguments of a password cracker",
        "-m -m0 -m1000 -m1400 -m1800 -m2500 -m22000 -m3200 -m500 --hash-type",
        line=(
            r"(?:^|\s)(?:-m ?|--hash-type[ =])\d{1,5}(?=\s|$)",
            r"(?:^|\s)(?:-a ?|--attack-mode[ =])[0-9](?=\s|$)",
            r"hash|wordlist|dict|\.rule|crack|passw|\.lst\b|rockyou|\?[ludsahb]\?[ludsahb]",
        ),
    ),
    _rule(
        CYBER,
        "the arguments of a password cracker",
        "--potfile-path --potfile-disable hccapx 22000 --format",
        line=r"(?:^|\s)--potfile-(?:path|disable)\b|\.(?:hccapx|22000)(?=\s|$|[\"'])|--format[ =](?:raw-(?:md5|sha\d{1,3})"
        r"|nt(?:lm)?|lm|md5crypt|sha(?:256|512)crypt|bcrypt|descrypt|krb5\w{1,20}|netntlm\w{0,4}|wpapsk|mscash2?)\b",
    ),
    _rule(
        CYBER,
        "a wordlist of passwords",
        "rockyou seclists wordlists crackstation hashesorg weakpass",
        line=r"\b(?:rockyou|crackstation|hashesorg|weakpass)|\b(?:seclists|usr/share/wordlists)/",
    ),
    _rule(
        CYBER,
        "an online password guesser",
        "hydra xhydra",
        line=(
            rf"{_COMMAND}x?hydra\s",
            r"\s-[lLpPCM]\s",
            r"://|\s(?:ssh|ftp|rdp|smb|telnet|vnc|mysql|imap|pop3|smtp|http[\w-]{0,20})\b|\s-[sMt]\s",
        ),
    ),
    _rule(
        CYBER,
        "an online password guesser",
        "medusa ncrack patator crowbar hydra",
        line=rf"{_COMMAND}(?:medusa\s(?:-\w \S{{1,99}}\s){{0,4}}-[uUM]\s|ncrack\s|patator(?:\.py)?\s|crowbar\s+-b)|\shydra\.restore\b",
    ),
    _rule(
        CYBER,
        "a network scanner",
        "nmap zmap zgrab zgrab2",
        line=(
            rf"{_COMMAND}(?:nmap|zmap|zgrab2?)\s",
            r"^(?!.{0,500}\b(?:localhost|127\.0\.0\.1)\b)",
            r"\s-(?:s[STUVACNPn]|p|A|O|Pn|T[0-5]|iL|o[NXGA]|F|r)|\s--(?:script|top-ports|probe)|/\d\d?\b",
        ),
    ),
    _rule(
        CYBER,
        "a network scanner",
        "masscan rustscan naabu unicornscan nikto gobuster wfuzz ffuf wpscan feroxbuster enum4linux theharvester subfinder "
        "nuclei amass dnsrecon",
        line=rf"{_COMMAND}(?:masscan\s(?!--version)|rustscan\s|naabu\s|unicornscan\s|nikto(?:\.pl)?\s+-|gobuster\s+\w|wfuzz\s+-"
        r"|ffuf\s+-|wpscan\s+-|feroxbuster\s+-|enum4linux\s|theharvester\s|subfinder\s+-|nuclei\s+-|amass\s+(?:enum|intel)"
        r"|dnsrecon\s+-)",
    ),
    _rule(
        CYBER,
        "an attack tool",
        "sqlmap crackmapexec netexec nxc msfconsole msfvenom ettercap arpspoof bettercap responder kerbrute bloodhound evil "
        "impacket secretsdump",
        line=rf"{_COMMAND}(?:(?:python\d?\s+)?(?:[\w./-]{{0,99}}/)?(?:sqlmap|responder|secretsdump)(?:\.py)?\s+-|crackmapexec\s"
        r"|(?:netexec|nxc)\s+(?:smb|ssh|ldap|winrm|mssql|rdp)\s|msf(?:console|venom)\b|ettercap\s|arpspoof\s|bettercap\s+-"
        r"|kerbrute\s+\w|bloodhound-python\s|evil-winrm\s|impacket-\w)",
    ),
    _rule(
        CYBER,
        "a scan of ports by the shell",
        "tcp udp",
        "dev",
        line=r"/dev/(?:tcp|udp)/[\w.${}]{0,60}\.\$\{?\w{1,30}\}?/",
    ),
    _rule(
        CYBER,
        "tries of passwords",
        "paramiko ftplib smtplib poplib imaplib telnetlib pymysql requests asyncssh",
        "passwords passwds passlist wordlist wordlists pwlist authenticationexception",
        "connect login post auth",
        line=r"\.(?:connect|login|post|auth)\(.{0,200}(?:pass|pwd|pw\b|\bp\b)",
    ),
    _rule(
        CYBER,
        "a search for what has a hash",
        "itertools product permutations ascii",
        "hashlib md5 sha1 sha256",
        "hexdigest digest",
        "product",
        line=r"\bproduct\([^)\n]{0,80}(?:repeat|string\.|ascii|chars|alphabet|letters)",
    ),
    _rule(
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
    ),
    _rule(
        CYBER,
        "packets with false senders",
        "scapy sock randip",
        "send sendp sendpfast sr1 srloop raw randip",
        line=r"\bsend(?:p|pfast)?\(\s{0,9}(?:IP|Ether|IPv6|p(?:ac)?ke?t)\b|\bRandIP\(|\bSOCK_RAW\b.{0,80}IPPROTO_(?:TCP|UDP|RAW)",
    ),
    _rule(
        CYBER,
        "a flood",
        "flood flooder udpflood synflood httpflood icmpflood tcpflood dnsamp mhddos ripper",
        line=r"\b(?:udp|syn|http|icmp|tcp|ack|dns)[-_]?flood(?:er|ing)?\b|\bdns[-_]?amp(?:lif\w{0,8})?\b|\bmhddos\b|\bddos-ripper\b",
    ),
    _rule(
        CYBER,
        "a flood",
        "start",
        "py",
        "tcp udp syn get post stress slow bypass ovh cfb null",
        line=r"\bstart\.py\s+\w{2,10}\s+(?:https?://|(?:\d{1,3}\.){3}\d)",
    ),
    _rule(
        CYBER,
        "the arguments of a network scanner",
        "--rate --max-rate --min-rate -ss -su -pn --banners --top-ports -p",
        line=(
            _NETWORK,
            r"(?:^|\s)(?:--(?:max-|min-)?rate[ =]\d|-s[SU]\b|-Pn\b|--banners|--top-ports|-p ?\d{1,5}[-,]\d)",
        ),
    ),
    _rule(
        CYBER,
        "the arguments of a network scanner",
        "-ol -og -oa -on -ox -oj",
        line=(
            r"\s(?-i:-o[LGANXJ])\s+\S",
            r"\s(?:--(?:max-|min-)?rate[ =]\d|(?-i:-T[0-5]|-iL|-Pn|-s[STUV])\s|--script[ =]|--top-ports|-p-\s)",
        ),
    ),
    _rule(
        CYBER,
        "a flood",
        "hping hping3 slowloris goldeneye --flood --rand-source t50 hulk torshammer xerxes ddos mdk3 mdk4 --syn-flood ufonet",
        line=r"(?:^|\s)--(?:flood|rand-source|syn-flood)\b|\bddos[\w-]{0,30}\.(?:py|sh|pl)\b"
        rf"|{_COMMAND}(?:(?:python\d?\s+)?(?:[\w./-]{{0,99}}/)?(?:slowloris|goldeneye|torshammer|hulk|ufonet)(?:\.p[yl])?\s"
        r"|hping3?\s|t50\s|xerxes\s|mdk[34]\s)",
    ),
    _rule(
        CYBER,
        "a cracker by its name",
        _CRACKERS,
        line=rf"{_COMMAND}(?:\w{{1,20}}[-_])?cracker(?:\.\w{{1,4}})?[\"']?(?=\s|$|;)"
        r"|\b(?:hash|md5|sha\d{0,3}|pass(?:word|wd)?|ntlm|wpa|rdp|ssh|brute)[-_]?(?:crack\w{0,8}|brute\w{0,8})\b",
    ),
    _rule(
        CYBER,
        "a shell for somebody else",
        "tcp nc ncat socat",
        line=r"\bba?sh\s+-i\s{0,9}[0-9]?>[>&]\s{0,9}/dev/(?:tcp|udp)/|\bn(?:c|cat)\s+(?:-\w{1,9}\s+){0,4}-\w{0,4}e\s{0,9}/bin/\w{0,3}sh"
        r"|\bsocat\s.{0,80}exec:.{0,20}sh\b|0<&\d{1,3}-?.{0,20}/dev/tcp/",
    ),
    _rule(
        None,
        "fetched and run at once",
        "curl wget",
        "sh bash zsh dash ksh python python2 python3 perl ruby eval source",
        line=r"\b(?:curl|wget)\s[^|;&\n]{1,300}\|\s{0,9}(?:sudo\s+)?(?:[\w./]{0,40}/)?(?:(?:ba|z|da|k)?sh|(?:python|perl|ruby)\d?)\b"
        r"|\b(?:ba|z)?sh\s+(?:-c\s+[\"']?\$\(|<\()\s{0,9}(?:curl|wget)\b"
        r"|(?:\beval\s+[\"']?[$`(]{1,2}|\bsource\s+<\(|^\.\s+<\()\s{0,9}(?:curl|wget)\b",
    ),
)
