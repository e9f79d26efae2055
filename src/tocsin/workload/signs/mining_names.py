"""The names of mining: pools, miners, algorithms and protocols, in one place for all rules that look for names.

`WORDS` and `NAMES` are searched for in any spelling; the others, as regular expressions, in commands.
"""

import re

__all__ = ["ALGORITHMS", "MINERS", "NAMES", "OTHER_FORMS", "OTHER_MINERS", "POOLS", "WORDS"]

WORDS = (
    "xmrig", "stratum", "monero", "supportxmr", "minexmr", "hashvault", "moneroocean", "nanopool", "2miners", "ethermine", "herominers",
    "unmineable", "zergpool", "woolypooly", "cryptonight", "kawpow", "autolykos", "equihash", "ghostrider",
    "verushash", "cpuminer", "ethminer", "ccminer", "cgminer", "bfgminer", "lolminer", "nbminer", "phoenixminer",
    "miningpoolhub", "prohashing", "monerohash", "dwarfpool", "sushipool", "slushpool", "flexpool", "flypool", "luckpool", "braiins",
    "kryptex", "wildrig", "nanominer", "cryptodredge", "coinhive", "progpow", "cuckatoo", "poolbinance", "ravenminer",
    "srbminer", "c3pool", "f2pool", "antpool", "viabtc", "xmrpool", "monerominer", "teamredminer", "nicehash", "minergate",
)  # fmt: skip
"""Whole words of letters and digits: no script of jobspec contains one of them in any spelling."""
_AMBIGUOUS = frozenset(
    {"stratum", "monero", "2miners", "ccminer", "braiins", "equihash", "autolykos", "kryptex"}
)
"""Those that science, geology or a course may also write out."""
OTHER_FORMS = ("donate-level", "xmr-stak", "monero-miner", "mining.subscribe")
_SCHEME = r"stratum\d?\+(?:tcp|ssl|tls)"
NAMES = re.compile(
    "|".join([_SCHEME, *(word for word in WORDS if word not in _AMBIGUOUS), *map(re.escape, OTHER_FORMS)]),
    re.IGNORECASE,
)
"""Never an accident if it is written out."""

ALGORITHMS = (
    r"rx/\w+|randomx\w*|cn(?:-(?:heavy|lite|pico))?/\w+|cryptonight[\w/-]*|ethash\w*|etchash|kawpow|kheavyhash|autolykos2?|"
    r"equihash[\d_/]*|144_5|192_7|125_4|yescrypt\w*|yespower\w*|lyra2\w*|x16r\w*|verus(?:hash)?|ghostrider|neoscrypt|"
    r"beamhash\w*|cuckatoo\d*|cuckaroo\w*|progpow\w*|firopow|argon2/\w+|scrypt(?:n|:\d+)|sha256d|"
    r"minotaurx?|power2b|nexapow|karlsenhash\w*|pyrinhash|dynexsolve|zelhash|ubqhash|astrobwt\w*|xelishash\w*|"
    r"spectrex|fishhash|blake3_(?:alephium|ironfish|decred)|sha512_256d\w*|heavyhash|skydoge|evrprogpow|meowpow|"
    r"hoohash|walahash|cryptix\w*"
)
MINERS = (
    r"xmrig(?:-\w+)*|ethminer|cpuminer(?:-\w+)*|minerd|cgminer|bfgminer|sgminer|phoenixminer|nbminer|lolminer|"
    r"teamredminer|srbminer(?:-\w+)*|wildrig(?:-\w+)?|xmr-stak(?:-\w+)*|cryptodredge|nheqminer|kawpowminer|"
    r"claymore\w*miner|minergate(?:-cli)?|xmr-node-proxy|xmrig\w{1,12}|tnn-miner[\w-]*|dero-miner[\w-]*|dero_miner|"
    r"astrobwt-miner|xelis[-_]miner|monero-?miner|alephium-?miner|qubjetski[\w.]*|nsgpucnminer|ewbf-\w+|ckb-miner|tonminer"
)
OTHER_MINERS = (
    r"ccminer|nanominer|z-enemy|t-rex|bzminer|onezerominer|hellminer|gminer|bminer|miniz|tt-miner|progminer|astrominer|"
    r"nock-?miner|pearl-?miner|spectre-?miner[\w-]*|karlsen-?miner|hoosat-?miner|zano-?miner|iron-?miner|rigel-?miner|"
    r"hashwarp|golden-?miner[\w-]*|mdl-?miner|cortex-miner|beepminer|prospector-miner|dstm|zm_?miner|danila-miner"
)
"""Names that scientific programs may also have: cells are counted, graphs are mined, and a T. rex had a gait."""
POOLS = (
    r"nanopool\.org|ethermine\.org|flypool\.org|supportxmr\.com|minexmr\.com|nicehash\.com|2miners\.com|f2pool\.com|"
    r"hashvault\.pro|moneroocean\.stream|c3pool\.(?:com|org)|herominers\.com|unmineable\.com|dwarfpool\.com|zergpool\.com|"
    r"sushipool\.com|nimpool\.io|prohashing\.com|woolypooly\.com|k1pool\.com|kryptex\.network|antpool\.com|viabtc\.com|"
    r"slushpool\.com|braiins\.com|poolbinance\.com|hiveon\.(?:net|com)|zpool\.ca|mining-dutch\.nl|minergate\.com|"
    r"xmrpool\.(?:eu|net)|rplant\.xyz|luckpool\.net|miningpoolhub\.com|ss\.btc\.com|suprnova\.cc|aikapool\.com|"
    r"gulf\.moneroocean|monerohash\.com|skypool\.org|icemining\.ca|flexpool\.io|ezil\.me|sparkpool\.com|beepool\.org|"
    r"poolin\.(?:com|me)|zhash\.pro|crazypool\.org|cruxpool\.com|qubic\.(?:li|solutions)|qubicmine\.pro|apool\.(?:io|net)|jetskipool\.ai|minerlab\.io|cli\.nexus\.xyz|"
    r"kaspa-pool\.org|humpool\.com|baikalmine\.com|molepool\.com|vipor\.net|flockpool\.com|gtpool\.io|"
    r"solopool\.org|mining4people\.com|nockpool\.com|neuropool\.net|miningocean\.org|raptoreum\.zone|ironfish\.network|"
    r"dero-node-\w+\.mysrv\.cloud|xpool\.\w+|p2pool\.(?:io|observer)|coinfoundry\.org|mypool\.online|pool\.(?:xmr|monero)\.\w+"
)
