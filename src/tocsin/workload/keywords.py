"""Keyword features: known names of software as columns beside the n-grams, since examples cover too few of them.

A keyword weighs the same in short and in long scripts, so innocent lines around it do not hide it.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.workload.applications import (
    DOMAINS,
    LANGUAGES,
    ai_phrases,
    ai_programs,
    ai_words,
    domains,
    language_of,
)
from tocsin.workload.normal import Commands
from tocsin.workload.signs.executed import executed_commands
from tocsin.workload.signs.surely_run import surely_run
from tocsin.workload.words import joined_words, parts_of, plain_words

__all__ = [
    "GIBBERISH",
    "GIBBERISH_SHARES",
    "HEADER",
    "KINDS",
    "SCIENCE",
    "Keywords",
    "MisuseWords",
    "columns",
    "find_keywords",
    "idle_lines",
    "misuse_words",
    "words_beside",
]

# Distinctive names, from the tools' own pages. The signs detect tools under other names.
_MINING = frozenset(
    """xmrig nicehash ethminer cpuminer minerd ccminer cgminer bfgminer sgminer phoenixminer nbminer lolminer teamredminer
    srbminer nanominer wildrig cryptodredge nheqminer bzminer gminer bminer miniz minergate miner cryptonight randomx ethash
    etchash kawpow autolykos equihash ghostrider yespower verushash progpow ethermine nanopool flypool dwarfpool f2pool
    minexmr supportxmr moneroocean c3pool unmineable zergpool hashvault herominers cryptomining poolpass cuckatoo cuckaroo
    lyra2 x16r scryptn beamhash dstm ewbf bzminer hellminer onezerominer""".split()  # noqa: SIM905  # a list of words reads best so
)
_COINS = frozenset(
    "bitcoin litecoin dogecoin ethereum monero xmr ravencoin raptoreum zcash btc ltc eth cryptocurrency blockchain".split()  # noqa: SIM905  # a list of words reads best so
)
_DIGGING = frozenset("miner miners mining hashrate nonce".split())  # noqa: SIM905  # a list of words reads best so
"""Coins alone may be economics, and data are mined, too: only both together indicate mining."""
_OTHER_MINER = re.compile(
    r"(?:--|data|text|coal|gold|ore|process|opinion|pattern|rule|gene|path|literature|log|event|graph|tool|sequence)[-_ ]?miner"
    r"|(?:data|text|process|opinion|pattern|rule|literature)[-_ ]?mining|miner[-_ ]?(?:detect|watch|scan|check)"
)
_CYBER = frozenset(
    """hashcat jtr ncrack masscan nmap zmap rustscan aircrack airodump aireplay airmon reaver rockyou bruteforce hping3 hping
    slowloris slowhttptest sqlmap metasploit msfconsole msfvenom nikto gobuster hccapx potfile rainbowcrack rcrack ophcrack synflood ddos
    loic hashlist hashlists hashtype hashfile cracker cracked md5crack deauth bssid wpscan bruteforcer wordlist wordlists
    crackmapexec patator thc pwned pwn exploit shodan nuclei ffuf keyspace passwords ntlm botnet""".split()  # noqa: SIM905  # a list of words reads best so
)
_AMBIGUOUS = frozenset(
    "miner nmap nuclei exploit passwords thc reaver btc eth cracked bruteforce keyspace".split()  # noqa: SIM905  # a list of words reads best so
)
"""Names with other meanings: a Fortran namelist, cells in an image, text mining."""
_REPEATED = frozenset({"wordlist", "wordlists"})
"""Clear if they occur in several lines; a lexicon's option is one."""
_BESIDE_MINING = frozenset("wallet wallets hashrate khs rig rigs hive stratum pool pools".split())  # noqa: SIM905
_BESIDE_CYBER = frozenset("hydra md5 sha1 ntlm".split())  # noqa: SIM905
_WORDS_OF = {"cryptomining": (_MINING, _BESIDE_MINING), "cyber": (_CYBER, _BESIDE_CYBER)}
"""By operation: names of tools, and words that support them."""
_ANY_MISUSE = _MINING | _CYBER | _COINS | _BESIDE_MINING | _BESIDE_CYBER
_LEARNING = frozenset(
    """train training trainer epoch epochs lr minibatch batchsize cudnn nccl wandb dataset datasets dataloader checkpoint
    checkpoints ckpt ckpts pretrained inference infer bert gpt cnn rnn lstm gan vae unet resnet vgg llm llms rl ppo dqn nn
    neural embedding embeddings tokenizer tokenize vocab optimizer adam sgd dropout backbone encoder decoder transformer
    coco logits augmentation classifier classification segmentation diffusion nlp reward hparams hyperparameters fp16 bf16
    amp ddp fsdp gpus tensorrt onnx momentum warmup learning autoencoder gnn""".split()  # noqa: SIM905  # a list of words reads best so
)
"""Each is common elsewhere; several together are not."""
_TRAINS = frozenset("train training trainer finetune finetuning pretrain pretraining".split())  # noqa: SIM905  # a list of words reads best so
_FILES = (".py", ".r", ".jl", ".m", ".lua", ".sh", ".ipynb")
"""Suffixes of programs, which may be named for what they do: train_net.py, random_forest.R."""
_SETUP = frozenset(
    "install clone wget curl spack create cmake make avail tar unzip build version available path pull".split()  # noqa: SIM905  # a list of words reads best so
)
"""A line with one of these installs or checks for software; it does not run it."""
_IDLE = frozenset(
    """echo printf mkdir cp mv rm date df du hostname trap rsync pwd ls sleep touch ulimit umask free printenv env tar exit chmod
    wait done fi do then else esac set which cat uname whoami lscpu uptime""".split()  # noqa: SIM905  # a list of words reads best so
)
"""Commands that occur in every kind of job."""
_LIBRARIES = (
    "torch", "pytorch", "tensor", "keras", "jax", "flax", "mxnet", "paddle", "mindspore", "caffe", "theano", "chainer",
    "horovod", "deepspeed", "transformers", "huggingface", "timm", "imagenet", "mnist", "cifar", "bert", "roberta", "gpt",
    "resnet", "sklearn", "xgboost", "lightgbm", "catboost", "cuml", "mlperf", "sentence", "word2vec", "fasttext", "faiss",
    "caret", "mllib", "spacy", "onnx", "safetensors", "gguf", "pretrain", "finetun", "deepmd",
)  # fmt: skip
"""AI libraries; all other AI names are programs."""
_MISUSE = (_MINING, _CYBER)
_SEVERAL = 3
"""Matching lines: one may be chance, three are not."""
_NAMES = (2, 4)
_WORDS = (1, 2, 4, 8)
"""Thresholds on the number of different AI names, and of words about learning."""
GIBBERISH_SHARES = (0.05, 0.2, 0.4, 0.6, 0.8)
"""Thresholds on the share of gibberish lines: such a script holds less information, but some."""

_FIRST_GIBBERISH = 3 + 2 * len(_MISUSE)
_FIRST_NAME = _FIRST_GIBBERISH + len(GIBBERISH_SHARES)
_FIRST_WORD = _FIRST_NAME + len(_NAMES) + 2
_FIRST_DOMAIN = _FIRST_WORD + len(_WORDS)
_FIRST_LANGUAGE = _FIRST_DOMAIN + len(DOMAINS)
GIBBERISH = slice(_FIRST_GIBBERISH, _FIRST_NAME)
"""The share of gibberish. Excluded from misuse models: disguising a script is not misuse in itself."""
SCIENCE = slice(_FIRST_DOMAIN + 1, _FIRST_LANGUAGE)
"""All domains except machine learning, the first."""
_FIRST_HEADER = _FIRST_LANGUAGE + len(LANGUAGES)
HEADER = slice(_FIRST_HEADER, _FIRST_HEADER + 2)
"""Whether the directives request GPUs. Excluded from misuse models: few of their scripts have directives."""
KINDS = slice(_FIRST_DOMAIN, HEADER.stop)
"""Domains, languages and the header."""


class Keywords(NamedTuple):
    """The keywords of a script."""

    lines: NDArray[np.bool_]
    """Which lines run AI software, set it up, and name tools of each kind of misuse."""
    names: int
    programs: bool
    """Whether an AI program is run, not only a library named."""
    learning: int
    joined: set[str]
    """The joined words; in a script that names tools of misuse, only those of executed commands."""
    named: bool
    """Whether a program has a name from AI."""
    gpus: bool | None
    """Whether GPUs are requested; None if unknown."""

    @property
    def names_ai(self) -> bool:
        """Whether a line of the script runs AI software."""
        return bool(self.lines[:, 0].any())

    @property
    def mentions_misuse(self) -> bool:
        """Whether any line names a tool of misuse."""
        return bool(self.lines[:, 2:].any())

    def features(self, gibberish: NDArray[np.bool_]) -> NDArray[np.float32]:
        """The feature row of the script; `gibberish` marks its lines with hardly any known n-gram."""
        running, setup, *misuse = np.count_nonzero(self.lines, axis=0).tolist()
        share = np.count_nonzero(gibberish) / max(len(gibberish), 1)
        found = np.zeros(columns(), dtype=np.float32)
        found[:_FIRST_DOMAIN] = [
            *(running > 0, setup > 0, running >= _SEVERAL),
            *(count >= least for count in misuse for least in (1, _SEVERAL)),
            *(share > least for least in GIBBERISH_SHARES),
            *(self.names >= least for least in _NAMES),
            *(self.programs, self.named),
            *(self.learning >= least for least in _WORDS),
        ]
        for domain in domains(self.joined).intersection(DOMAINS):
            found[_FIRST_DOMAIN + DOMAINS.index(domain)] = 1
        if (language := language_of(self.joined)) is not None:
            found[_FIRST_LANGUAGE + LANGUAGES.index(language)] = 1
        if self.gpus is not None:
            found[_FIRST_HEADER + (not self.gpus)] = 1
        return found

    def line_values(self, weights: NDArray[np.float32]) -> NDArray[np.float64]:
        """The weight of each line's keywords, given the weights of the columns of `features`."""
        own = weights[[0, 1, *range(3, _FIRST_GIBBERISH, 2)]].astype(np.float64)
        return np.asarray(self.lines @ own, dtype=np.float64)


def columns() -> int:
    return HEADER.stop


def find_keywords(script: Commands) -> Keywords:
    lines = script.lines
    found = np.zeros((len(lines), 2 + len(_MISUSE)), dtype=bool)
    files = script.words
    words = parts_of(files)
    ai, joined, phrases = ai_words(words), ai_programs(files), ai_phrases(script.text)
    names = ai | joined | phrases
    doing: Sequence[str] = lines
    acted, done = words, files
    if any(_named_tools(words, tools) for tools in _MISUSE):
        doing = [_OTHER_MINER.sub(" ", line) for line in executed_commands(script)]
        acted, done = plain_words("\n".join(doing)), joined_words("\n".join(doing))
    misuse = [(place, hits) for place, tools in enumerate(_MISUSE, 2) if (hits := _named_tools(acted, tools))]
    programs = {word for word in names if not word.startswith(_LIBRARIES)}
    runs = False
    if names or misuse:
        for number, line in enumerate(lines):
            here = plain_words(line)
            if joined and any(name in line.lower() for name in joined):
                here |= joined & joined_words(line)
            if phrases:
                here |= ai_phrases(line)
            if not names.isdisjoint(here):
                running = _SETUP.isdisjoint(here)
                found[number, 0 if running else 1] = True
                runs = runs or (running and not programs.isdisjoint(here))
            for place, known in misuse:
                found[number, place] = not known.isdisjoint(plain_words(doing[number]))
    named = bool(names or not _TRAINS.isdisjoint(words)) and any(
        word.endswith(_FILES) and _is_named_for_ai(word) for word in done
    )
    return Keywords(found, len(names), runs, len(words & _LEARNING), done, named, script.gpus)


def _named_tools(words: set[str], tools: frozenset[str]) -> set[str]:
    """The words that name a tool of misuse; for mining, coins and digging together count, too."""
    named = words & tools
    if tools is _MINING and not words.isdisjoint(_COINS) and not words.isdisjoint(_DIGGING):
        named |= words & (_COINS | _DIGGING)
    return named


class MisuseWords(NamedTuple):
    """The words of one kind of misuse in the commands that a script executes."""

    names: frozenset[str]
    """Names of tools and of their inputs."""
    clear: bool
    """A name that has no other meaning is among them."""
    repeated: bool
    """Such a name occurs in several lines."""
    beside: frozenset[str]
    """Words that support the names but mean nothing alone."""


def misuse_words(script: Commands, *, sure: bool) -> dict[str, MisuseWords]:
    """By operation, the words of misuse in the commands that the script executes; with `sure`, that it surely runs."""
    if _unnumbered(parts_of(script.words)).isdisjoint(_ANY_MISUSE):
        return {}
    acts = executed_commands(script, surely_run) if sure else executed_commands(script)
    lines = [_unnumbered(plain_words(_OTHER_MINER.sub(" ", line))) for line in acts]
    words = set[str]().union(*lines)
    found: dict[str, MisuseWords] = {}
    for operation, (tools, beside) in _WORDS_OF.items():
        names = frozenset(_named_tools(words, tools))
        rare = names & tools - _AMBIGUOUS
        repeated = sum(not rare.isdisjoint(line) for line in lines) > 1
        found[operation] = MisuseWords(
            names, bool(rare - _REPEATED), repeated, frozenset(words & beside - names)
        )
    return found


def words_beside(operation: str, lines: Sequence[str]) -> set[str]:
    """The words in these lines that support names of this misuse."""
    return _unnumbered(plain_words("\n".join(lines))) & _WORDS_OF[operation][1]


def _unnumbered(words: set[str]) -> set[str]:
    """The words, and those that end in a number without it, too: `$wallet2` is a wallet."""
    return words | {word.rstrip("0123456789") for word in words}


def idle_lines(lines: Sequence[str]) -> NDArray[np.bool_]:
    """Which lines are housekeeping without any keyword; their number carries no information."""
    return np.fromiter(map(_is_idle, lines), bool, len(lines))


@lru_cache(maxsize=4096)  # half of the lines of many scripts also occur in others
def _is_idle(line: str) -> bool:
    head = line.partition(" ")[0].rstrip(";")
    if head not in _IDLE or "&&" in line or "|" in line or "$(" in line or ";" in line[:-1]:
        return False
    words = plain_words(line)
    return all(words.isdisjoint(known) for known in (_LEARNING, *_MISUSE)) and not ai_words(words)


def _is_named_for_ai(file: str) -> bool:
    words = plain_words(file)
    return not _TRAINS.isdisjoint(words) or bool(ai_words(words) or ai_phrases(file))
