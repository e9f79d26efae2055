"""Signs of cryptomining: pools, wallets' options, algorithms, miners and the coins' own programs.

Measured over the 20,230 innocent scripts of the jobspec database: none of these matches any.
"""

import re

from tocsin.workload.signs.mining_names import ALGORITHMS, MINERS, OTHER_MINERS, POOLS
from tocsin.workload.signs.rule import COMMAND, CRYPTOMINING, rule

__all__ = ["ALGORITHM", "HOST_AND_USER", "MINER_NAME", "MINING_SIGNS", "POOL_NAME"]

HOST_AND_USER = "a server and a user name, as for a mining pool"
MINER_NAME = "a program with the name of a miner"
ALGORITHM = "a mining algorithm"
POOL_NAME = "the name of a mining pool"

_HOST = r"(?:[a-z][a-z0-9+]{0,15}://)?(?:[a-z0-9][\w-]{0,62}\.){1,6}[a-z]{2,24}:(?:\d{3,5}|80)\b"
_NUMBER = r"(?:[a-z][a-z0-9+]{0,15}://)?(?:\d{1,3}\.){3}\d{1,3}:\d{3,5}\b"
# Lookbehinds come after the dash of an option: searching for a dash is fast.
_OPTION = r"-(?<!\S-)"
_TO_SERVER = _OPTION + r"(?:(?-i:[oF])|-?url|-?pool|-?server|-?proxy)[ =]+[\"']?"
_TO_ANY_HOST = _OPTION + r"(?:(?-i:o)|-?pool)[ =]{0,9}[\"']?[\w.-]{1,80}:\d{3,5}\b"
_AS_USER = r"(?:^|\s)-(?:(?-i:[uO])|-?user|-?wal|-?wallet|-userpass)[ =]+[\"']?"
_SERVER = "-o -f --url --pool --server -server -pool -url --proxy"
_USER = "-u -o --user -user --wal -wal --wallet -wallet --userpass"
_STRATUM = r"(?<![a-z0-9])stratum\d?(?:\+(?:tcps?|ssl|tls|udp|http|tls12))?://|\+(?:eth)?stratum\w{0,3}://"

# A word of each pool and miner that is unlikely to occur elsewhere.
_COMMON = {
    "node",
    "cli",
    "pool",
    "proxy",
    "cortex",
    "prospector",
    "network",
    "iron",
    "golden",
    "xmr",
    "ckb",
    "enemy",
    "ss",
    "mining",
    "zm_",
}
_POOL_NAMES = " ".join(
    {*re.findall(r"(?<!\\)\b[a-z0-9]+(?=(?:-\w+)?\\)", POOLS), "dutch"} - _COMMON | {"xmr", "monero"}
)
_MORE_MINERS = (
    "miner enemy danila ckb xmrigdaemon xmrigminer xmrigcc nockminer pearlminer ironminer monerominer"
)
_MINER_NAMES = " ".join(
    {*re.findall(r"(?<![\\\w-])\w{3,}", f"{MINERS}|{OTHER_MINERS}"), "stak", "rex"} - _COMMON
    | set(_MORE_MINERS.split())
)

MINING_SIGNS = (
    rule(
        CRYPTOMINING,
        "a mining pool",
        "stratum stratum1 stratum2 ethstratum",
        line=rf"(?:{_STRATUM})[\"']?[\w$%{{<@]",
    ),
    rule(
        CRYPTOMINING,
        "the scheme of mining pools",
        "stratum stratum1 stratum2 ethstratum",
        line=_STRATUM,
        weak=True,
    ),
    rule(CRYPTOMINING, POOL_NAME, _POOL_NAMES, line=rf"(?<![\w-])(?:{POOLS})\b", weak=True),
    rule(
        CRYPTOMINING,
        ALGORITHM,
        "-a --algo --coin -algo -coin --algorithm algo algorithm coin",
        line=rf"(?:{_OPTION}(?:a|-?algo|-algorithm|-?coin)[ =]+[\"']?|\"(?:algo|algorithm|coin)\"\s{{0,9}}:\s{{0,9}}\")"
        rf"(?:{ALGORITHMS}|monero|xmr|ravencoin)(?![\w/.-])",
        weak=True,
    ),
    rule(
        CRYPTOMINING,
        "a mining algorithm and a host",
        "-a --algo --coin -algo -coin --algorithm",
        "-o -u --pool --url --user --wallet --server -pool -wallet",
        line=(
            _OPTION
            + r"(?:a|-?algo|-algorithm|-?coin)[ =]+[\"']?(?:x1[1367]r?\w{0,4}|octopus|scrypt|groestl|blake2s|skunk|phi2?|allium"
            r"|xhash|panthera|flex|mike|qubic|etc|kaspa|alph|zano|dero|xel|kls|ergo|beam|spr|iron|qtc|cfx|nexa|rxd|vtc|zeph|sal|xna|pearl|prl)(?![\w/.-])",
            r"(?:^|\s)-(?:(?:o|-?pool|-url|-server)[ =]+\S{0,80}(?::\d{2,5}\b|\$)|(?:u|-user|-?wallet)[ =])",
        ),
        weak=True,
    ),
    rule(
        CRYPTOMINING,
        "an option that only miners have",
        "--donate-level donate --randomx-mode --randomx-init --randomx-wrmsr --randomx-no-rdmsr --randomx-no-numa "
        "--randomx-1gb-pages --cpu-max-threads-hint --nicehash --farm-recheck --rig-id --cuda-parallel-hash "
        "--extra-dag-epoch --huge-pages-jit --coinbase-addr --dag-build-mode --zilpool --dualmode -epool -ewal "
        "--mining-pubkey --mining-pkh --mining-address -mining-address --mining-threads --start-mining --miner-address "
        "--astrobwt --daemon-rpc-address",
        line=r"(?:^|[\s\"'])(?:--(?:donate-level|randomx-[\w-]{1,20}|cpu-max-threads-hint|nicehash|farm-recheck|rig-id|"
        r"cuda-parallel-hash|extra-dag-epoch|huge-pages-jit|coinbase-addr|dag-build-mode|zilpool|dualmode|"
        r"mining-(?:pubkey|pkh|address|threads)|start-mining|miner-address|astrobwt|daemon-rpc-address)"
        r"(?=[\s=\"']|$)|-(?:epool|ewal|mining-address)\s|donate-level\"?\s{0,9}:)",
    ),
    rule(
        CRYPTOMINING,
        HOST_AND_USER,
        _SERVER,
        _USER,
        line=(rf"{_TO_SERVER}(?:{_HOST}|{_NUMBER})|{_TO_ANY_HOST}", rf"{_AS_USER}|\s(?-i:-u)\w"),
        weak=True,
        but_clients=True,
    ),
    rule(
        CRYPTOMINING,
        "a host to work for without a pause",
        "-o --url",
        "--tls",
        "-k --keepalive",
        line=(
            r"(?:^|\s)-(?:o|-url)[ =]+[\"']?[\w.$(){}+:/-]{1,80}:\d{3,5}\b",
            r"(?:^|\s)--tls(?=\s|$)",
            r"(?:^|\s)-(?:k|-keepalive)(?=\s|$)",
        ),
        weak=True,
    ),
    rule(
        CRYPTOMINING,
        "the settings of a miner",
        "pools",
        "url",
        "user",
        line=r"\"url\"\s{0,9}:\s{0,9}\"(?:(?:stratum\+)?(?:tcp|ssl|tls)://|daemon\+https?://)?[\w.${}\\-]{1,120}:(?:\d{2,5}|\$)",
        near=(
            r"\"pools\"\s{0,9}:\s{0,9}\[",
            r"\"user\"\s{0,9}:",
            r"\"(?:pass|keepalive|nicehash|rig-id|tls|algo|coin|donate-level)\"\s{0,9}:",
        ),
    ),
    rule(
        CRYPTOMINING,
        "what may be the settings of a miner",
        "pools",
        "url",
        "user",
        line=r"[\"']url[\"']\s{0,9}:\s{0,9}[\"'](?:(?:stratum\+)?(?:tcp|ssl|tls)://)?[\w.${}\\-]{1,120}:(?:\d{2,5}|\$)",
        near=(r"[\"']pools[\"']\s{0,9}:\s{0,9}\[", r"[\"']user[\"']\s{0,9}:"),
        weak=True,
    ),
    rule(
        CRYPTOMINING,
        "a search for a block",
        "nonce",
        "sha256",
        "target difficulty",
        line=r"sha256\(.{0,99}sha256\(",
        near=(r"\bnonce\b", r"\b(?:target|difficulty|bits)\b", r"\b(?:while|for)\b"),
    ),
    rule(
        CRYPTOMINING,
        "a pool and a wallet",
        _SERVER,
        "wallet --wallet -wallet -wal --wal",
        line=(_TO_SERVER + r"\S", _AS_USER + r"[$\w{:.-]{0,40}wallet|(?:^|\s)-?-wal(?:let)?[ =]"),
        weak=True,
    ),
    rule(
        CRYPTOMINING,
        "a miner",
        _MINER_NAMES,
        line=rf"{COMMAND}(?:{MINERS})[\d.]{{0,9}}(?:\.(?:exe|bin))?[\"']?(?=\s|$|;|&|\|)"
        rf"|(?:github\.com|docker\.io|releases|docker:/)/(?:[\w.-]{{1,60}}/){{0,5}}(?:{MINERS})\b",
    ),
    rule(
        CRYPTOMINING,
        MINER_NAME,
        _MINER_NAMES,
        line=rf"{COMMAND}(?:{OTHER_MINERS})[\d.]{{0,9}}(?:\.(?:exe|bin))?[\"']?(?=\s|$|;|&|\|)"
        rf"|(?:github\.com|docker\.io|releases|docker:/)/(?:[\w.-]{{1,60}}/){{0,5}}(?:{OTHER_MINERS})\b",
        weak=True,
    ),
    rule(
        CRYPTOMINING,
        "a miner by its name",
        "miner cpuminer gpuminer hashminer coinminer blockminer",
        line=rf"{COMMAND}[\w-]{{0,40}}?(?:cpu|gpu|cuda|hetero|btc|coin|block|hash)[-_]?miner(?=\s|$|;|&|\|)",
        weak=True,
    ),
    rule(
        CRYPTOMINING,
        "a program in the folder of a miner",
        "miner",
        # a folder of that name, or the variables that mining farms pass to their scripts
        line=r"(?:^|[;&|(]\s*|\bcd\s+)[\"']?(?:[\w.~/${}-]{0,99}/)?(?:\$\{?miner_\w{1,20}\}?|[\w.]{0,20}-?miner(?:-\w{1,20})?(?=/[\w.-]{1,60}\s+-))",
        weak=True,
    ),
    rule(
        CRYPTOMINING,
        "the protocol of a mining pool",
        "subscribe authorize submit getwork submitwork submitlogin submithashrate submitblock",
        "mining eth submitblock",
        line=r"\bmining\.(?:subscribe|authorize|submit|extranonce\.subscribe|configure)\b"
        r"|\beth_(?:getWork|submitWork|submitLogin|submitHashrate)\b|[\"']submitblock[\"']",
    ),
    rule(
        CRYPTOMINING,
        "a plotter of a coin by storage",
        "chia bladebit",
        line=rf"{COMMAND}chia\s+(?:plots|plotters|farm|start\s+farmer|init|keys)\b|\bchia_plot(?:_k\d\d)?\s|\bbladebit(?:_cuda)?\s+(?:-|\w)"
        r"|\bxch1[02-9ac-hj-np-z]{58}\b",
    ),
    rule(
        CRYPTOMINING,
        "a client of a coin",
        "qli qliclient qubic rqiner quilibrium qclient nockchain spacemesh postcli zkwork aleo tari dynexsolve ironfish kaspa "
        "ceremonyclient autorun nexus p2pool",
        line=rf"{COMMAND}(?:qli-?client|qubic-?(?:cli|miner|client)|rqiner[\w-]{{0,20}}|quilibrium[\w-]{{0,20}}|qclient|nockchain[\w-]{{0,20}}"
        r"|go-spacemesh|postcli|zkwork[\w-]{0,20}|aleo[\w-]{0,20}(?:miner|prover)|(?:minotari|tari)[\w-]{0,5}miner|dynexsolve"
        r"|ironfish[\w-]{0,10}miner|kaspa-?miner|release_autorun\.sh|ironfish\s+miners:start|nexus-(?:network|cli)\s+start|p2pool\s+--(?:host|wallet))(?=\s|$|;)"
        r"|\bceremonyclient/(?:node\b|\S{0,60}release_autorun)",
    ),
)
