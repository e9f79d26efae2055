"""Misuse takes one clear sign or two traits that do not depend on each other; one ordinary trait convicts nobody."""

import base64

import pytest

from tocsin.core.verdict import SEEN_FROM
from tocsin.workload.conviction import convict
from tocsin.workload.normal import commands
from tocsin.workload.screening import Screener, builtin
from tocsin.workload.signs.look import signs

TWO_TRAITS = [
    ("cyber", 0.0, "./solver -p$PORT $RANGE --rate=1000 -oL found.txt"),
    ("cyber", 0.0, "for iprange in $(cat ranges); do\n  ./s $iprange $port /save\ndone"),
    ("cyber", 0.0, "nmap -p 1-1024 10.0.0.0/24"),
    ("cyber", 0.0, "john --wordlist=rockyou.txt hashes.txt"),
    ("cyber", 0.0, "python3 Responder.py -I eth0 -w"),
    ("cyber", 0.0, "nvcc main.cu md5.cu sha1.cu -o cracker"),
    ("cryptomining", 0.6, "./solver -pool $POOL -wal $WALLET.$PASSWORD -tt 80"),
    ("cryptomining", 0.6, "cd $MINER_DIR/$MINER_VER\n./solver -c config.json"),
    ("cryptomining", 0.6, "~/miner-solver/solver -c ~/miner-solver/config.json"),
    ("cryptomining", 0.6, 'read -p "pool: " pool\nread -p "wallet: " wallet'),
    ("cryptomining", 0.6, "nicehash1=true\nnicehash2=false"),
]
ONE_TRAIT = [
    ("cyber", 0.6, "&NMAP"),
    ("cyber", 0.0, "./solver -oX out.xml --rate 5"),
    ("cyber", 0.0, "for subnet in $(cat subnets); do ./network $subnet $port; done"),
    ("cyber", 0.0, "./cracker --feed ethane.dat"),
    ("cyber", 0.6, "./nmap -s 10 -p 3 --out map.dat"),
    ("cyber", 0.6, "./zmap -p 12 -i density.cube"),
    ("cyber", 0.6, "./john --wordlist=terms.txt --format=csv corpus"),
    ("cyber", 0.0, "python responder.py -I items.csv -w weights.npy"),
    ("cryptomining", 0.0, "./solver -pool $POOL -wal $DEPTH"),
    ("cryptomining", 0.6, "python time_miner.py 2018-07-09"),
    ("cryptomining", 0.6, "export POOL=4 POOLS=8 HIVE=/data"),
    ("cryptomining", 0.0, "~/text-miner/run -c model.json"),
]


@pytest.fixture(scope="module")
def shipped() -> Screener:
    return builtin()


def probability(operation: str, by_model: float, text: str) -> float:
    return convict(commands(text), {operation: by_model}, signs(text))[operation].probability


@pytest.mark.parametrize(("operation", "by_model", "text"), TWO_TRAITS)
def test_two_traits_convict(operation: str, by_model: float, text: str) -> None:
    assert probability(operation, by_model, text) >= SEEN_FROM


@pytest.mark.parametrize(("operation", "by_model", "text"), ONE_TRAIT)
def test_one_trait_does_not(operation: str, by_model: float, text: str) -> None:
    assert probability(operation, by_model, text) < SEEN_FROM


def test_a_hidden_hash_is_searched_for_and_an_open_one_names_a_run(shipped: Screener) -> None:
    line = "./main 187ef4436122d1cc2f40dc2b92f0eba0"
    packed = f"echo {base64.b64encode(line.encode()).decode()} | base64 -d | bash"
    assert [found.operations["cyber"] >= SEEN_FROM for found in shipped.screen([line, packed])] == [
        False,
        True,
    ]
