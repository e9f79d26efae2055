"""Open signs: what people should see but proves nothing, by words and patterns."""

from tocsin.workload.signs.rule import COMMAND, rule
from tocsin.workload.signs.top_level_domains import OF_FILES, SURE

__all__ = ["FETCHED_AT_ONCE", "MAY_MINE", "OPEN_SIGNS"]

SETTINGS = "an address and a user as settings of a program"
ADDRESS_AS_OUTPUT = "an address where an output file is usually named"

_NAME = rf"[\"']?(?:[\w-]{{1,40}}\.){{1,4}}(?:{'|'.join(sorted(SURE | OF_FILES))})[\"']?(?=[\s,}}]|$)"
"""A name that may be a host's, although its end is also one of files."""

FETCHED_AT_ONCE = rule(
    None,
    "fetched and run at once",
    "curl wget",
    "sh bash zsh dash ksh python python2 python3 perl ruby eval source",
    line=r"(?=[cwbzse.])(?:"  # a check of one letter: most positions have another
    r"\b(?:curl|wget)\s[^|;&\n]{1,300}\|\s{0,9}(?:sudo\s+)?(?:[\w./]{0,40}/)?(?:(?:ba|z|da|k)?sh|(?:python|perl|ruby)\d?)\b"
    r"|\b(?:ba|z)?sh\s+(?:-c\s+[\"']?\$\(|<\()\s{0,9}(?:curl|wget)\b"
    r"|(?:\beval\s+[\"']?[$`(]{1,2}|\bsource\s+<\()\s{0,9}(?:curl|wget)\b)",
)

OPEN_SIGNS = (
    FETCHED_AT_ONCE,
    rule(
        None,
        "a connection that the script opens itself",
        "tcp",
        "dev",
        "exec",
        line=r"\bexec\s+(?:\d{1,3}|\{\w{1,20}\})<>\s{0,9}[\"']?/dev/tcp/",
    ),
    rule(
        None,
        "a request that asks a server for work",
        "nc ncat telnet socat",
        "method",
        line=r"[\"']method\\?[\"']\s{0,9}:",
        near=(r"(?<![\w.-])(?:nc|ncat|telnet|socat)\s",),
    ),
    rule(
        None,
        "a request that asks a server for work",
        "login submit getjob keepalived",
        "method",
        "params",
        line=r"[\"']method\\?[\"']\s{0,9}:\s{0,9}\\?[\"'](?:login|submit|getjob|keepalived)\\?[\"']",
        near=(r"[\"']params\\?[\"']\s{0,9}:",),
    ),
    rule(
        None,
        "a request that asks a server for work",
        "getwork getblocktemplate submitblock handshake",
        line=r"[\"'](?:getwork|getblocktemplate|submitblock)\\?[\"']|\bidentifier\W{1,5}handshake\b",
    ),
    rule(
        None,
        "a pool as a setting of a program",
        "pool pools",
        line=r"pool\w{0,20}=[\"']?(?:[\w+]{1,12}://)?(?:[\w-]{1,40}\.){1,4}[a-z]{2,6}:\d{3,5}(?![\w/])",
    ),
    rule(
        None,
        "a host and a wallet",
        "wallet wallets",
        line=(r"wallet", r"(?<!//)(?<![\w.])(?:[\w-]{1,40}\.){1,4}[a-z]{2,6}:\d{3,5}(?!\w)"),
    ),
    rule(
        None,
        SETTINGS,
        "url pool host server",
        "user wallet pools",
        line=r"(?<![\w-])(?:url|pool|pool_address)(?:\\?[\"']\s{0,9}:|:\s)\s{0,9}\\?[\"']?(?!\d+\W|true|false|null)[\w$(]"
        rf"|(?<![\w-])(?:url|pool|host|server)\s?=\s?{_NAME}|--arg\s+url\s",
        near=(
            r"(?<![\w-])(?:user|wallet|wallet_address)(?:\\?[\"']\s{0,9}:|:\s|\s?=)|--arg\s+user\s"
            r"|(?<![\w-])pools\\?[\"']\s{0,9}:\s{0,9}\[",
        ),
    ),
    rule(
        None,
        SETTINGS,
        "-pool --pool",
        "-wal --wal -wallet --wallet",
        line=r"(?<!\S)--?pool[ =]\S",
        near=(r"(?<!\S)--?wal(?:let)?[ =]\S",),
    ),
    rule(
        None,
        "a host without a port as an option",
        "--url -url --pool -pool --uri -uri --server -server",
        line=rf"-(?<![\w-]-)-?(?:url|pool|uri|server)[ =]\s?{_NAME}",
        but_clients=True,
    ),
    rule(
        None,
        "a name that the resolver completes",
        "localdomain hostaliases",
        line=r"\b(?:LOCALDOMAIN|HOSTALIASES)=[\"']?[\w.$~/{-]",
    ),
    rule(
        None,
        "code that answers for the resolver",
        "getaddrinfo gethostbyname",
        line=r"\b(?:getaddrinfo|gethostbyname(?:_r)?)\s{0,3}\([^;{}]{0,300}\)\s{0,3}\{",
    ),
    rule(
        None,
        "the shell's trace with text of its own, in a file",
        "ps4",
        "xtracefd",
        line=r"\bPS4=[\"']?[^\"'$\n]{0,200}\w{2}",
    ),
    rule(
        None,
        "an address without a protocol as an option",
        "--url --pool",
        "--tls --rig --rig-id --keepalive -k --coin --algo --cuda --opencl --no-cpu --nicehash --worker --pass",
        line=(
            r"--(?:url|pool)[ =]\s{0,3}[\"']?(?:[\w-]{1,40}\.){1,4}[a-z]{2,6}:\d{3,5}(?![\w/])",
            r"\s(?:--(?:tls|rig|rig-id|keepalive|coin|algo|cuda|opencl|no-cpu|nicehash|worker|pass)|-k)(?=[\s=]|$)",
        ),
    ),
    rule(
        None,
        "a host and the user there, as miners get them",
        "-o --url --pool -pool",
        "-u --user --wallet -wallet",
        line=(
            r"\s-(?:(?-i:o)|-url|-?pool)[ =]\s{0,3}[\"']?(?:[\w-]{1,40}\.){1,4}(?:com|org|net|io|pro|stream|eu|de|ru|cn|xyz|me|cc|to|nl|pl|li"
            r"|network|online|info|biz|dev|app|pw|top|site|cloud|uk|fr|us|ca)[\"']?(?=\s|$)",
            r"\s-(?:(?-i:u)|-user|-?wallet)[ =]\s{0,3}[\"']?[\w$]",
        ),
        but_clients=True,
    ),
    rule(
        None,
        "a server, its port and the user there",
        "--server --host --pool --url -server -host -pool",
        "--port -port",
        "--user --wallet --worker -user -wallet",
        line=(
            r"\s--?(?:server|host|pool|url)[ =]\s{0,3}[\"']?(?!localhost|127\.)[a-z\d$]",
            r"\s--?port[ =]\s{0,3}[\"']?[\d$]",
            r"\s--?(?:user|wallet|worker)[ =]\s{0,3}[\"']?[\w$]",
            r"^(?!.{0,500}\b(?:mysql\w*|psql|pg_\w+|mongo\w*|redis\w*|influx\w*|cassandra|clickhouse\w*|ldap\w*|curl|wget|http|smb\w*|sqoop|db\w*)\b)",
        ),
        but_clients=True,
    ),
    rule(
        None,
        "a user at a host and its port",
        "-p",
        line=r"(?-i:-P)(?<=\s-P)\s+[\"']?(?!https?:|ftps?:|socks|postgres|mysql|redis|amqp|ssh:|mongodb)[a-z][a-z0-9+]{1,20}://[^\s/@]{1,120}@[\w.-]{3,80}:\d{3,5}",
    ),
    rule(
        None,
        ADDRESS_AS_OUTPUT,
        "-o",
        line=r"-o(?<=\s-o)[ =]\s{0,3}(?:(?:\d{1,3}\.){3}\d{1,3}:\d{2,5}\b|(?:[\w-]{1,40}\.){1,4}[a-z]{2,6}:\d{3,5}(?![\w/])"
        r"|(?:unix|tcp|ssl|tls|daemon)(?:\+\w{1,9})?:/{0,2}[\w/])",
    ),
    rule(None, "a file that the script decodes from its own text", "uudecode", line=r"\buudecode\b"),
    rule(
        None,
        "a value that the script turns around",
        "rev",
        line=r"[$<]\(\s{0,9}(?:rev\b\s{0,9}<|(?:echo|printf)\s[^|)]{1,200}\|\s{0,9}rev\s{0,9}\))",
    ),
    rule(
        None,
        FETCHED_AT_ONCE.why,
        "curl wget",
        line=r"(?:^|[;&|]\s{0,9})\.\s+<\(\s{0,9}(?:curl|wget)\b",
    ),
    rule(
        None,
        "a host that the script puts together, and the user there",
        "-o --url",
        "-u --user",
        line=(
            r"\s-(?:(?-i:o)|-url)[ =]+[\"']?[\w+:/.-]{0,60}(?:\$\(|`|\$\{!|\$\{?\w{1,40}\}?[\"']?(?=\s|$))",
            r"\s-(?:(?-i:u)|-user)[ =]+[\"']?[a-z$]",
        ),
        unless=(r"\bsudo\s",),
        but_clients=True,
    ),
    rule(
        None,
        "very many requests to another host",
        "ab wrk wrk2 siege hey bombardier vegeta",
        line=(
            rf"{COMMAND}(?:ab|wrk2?|siege|hey|bombardier|vegeta)\s.{{0,200}}-\w{{1,12}}[ =]?\d{{2}}",
            r"^(?!.{0,500}(?:\blocalhost\b|127\.0\.0\.1|\[::1\]|\$\{?HOSTNAME|\$\(hostname))",
            r"https?://",
        ),
    ),
    rule(
        None,
        "requests without an end",
        "curl wget requests urlopen urllib",
        "while",
        line=r"\b(?:curl|wget)\s.{0,200}https?://|\b(?:requests\.(?:get|post)|urlopen)\(",
        near=(
            r"\bwhile\s{0,9}(?:true|:|\(?1\b)",
            r"&\s{0,9}(?:done|$)|\bThread\(|\bPool\(",
        ),
        unless=(r"sleep|localhost|127\.0\.0\.1|HOSTNAME|hostname",),
    ),
    rule(
        None,
        "a look for machines in a network",
        "ping fping arping arp",
        line=r"\bping\s[^|;&]{0,60}\s(?:\d{1,3}\.){3}\$|\bfping\s[^|;&]{0,60}-g\b|\barp-scan\s",
    ),
)
"""What people should see but proves nothing."""
MAY_MINE = frozenset(
    {
        ADDRESS_AS_OUTPUT,
        SETTINGS,
        "a host without a port as an option",
        "a pool as a setting of a program",
        "a host and a wallet",
        "an address without a protocol as an option",
        "a user at a host and its port",
        "a server, its port and the user there",
        "a host and the user there, as miners get them",
    }
)
"""Those of them that only show that a script may mine."""
