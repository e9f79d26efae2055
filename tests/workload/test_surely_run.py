"""Only what a script surely runs convicts; test data, arguments and documents of other programs do not."""

import pytest

from tocsin.workload.signs.surely_run import surely_run

MINER = "./x -o stratum+tcp://pool.example:3333 -u w"
DATA = {
    "JSON that a program reads": f'cat > rules.json <<E\n{{"banned": ["{MINER}"]}}\nE\npython lint.py --rules rules.json',
    "test data in Python": f"cat > test_x.py <<E\ndef test():\n    assert judge('{MINER}')\nE\npytest test_x.py",
    "test data in a table": f"cat > x.csv <<E\n{MINER},1\nE\npython fit.py x.csv",
    "printf -v": f"printf -v message '%s' '{MINER}'\necho \"$message\"",
    "a descriptor": f"exec 3<<E\n{MINER}\nE\npython label.py <&3",
    "bash -n": f"cat > x.sh <<E\n{MINER}\nE\nbash -n x.sh",
    "an argument": f"python score.py --text '{MINER}'",
    "an argument by a variable": f"text='{MINER}'\npython score.py --text \"$text\"",
    "a filter": f"echo '{MINER}' | tr a b | sort > tokens",
    "inline code that only searches": f"python -c \"print('{MINER}' in open('x').read())\"",
}
RUN = {
    "a command": MINER,
    "a file by its name": f"cat > x.txt <<E\n{MINER}\nE\nbash x.txt",
    "a file after a copy": f"echo '{MINER}' > x.csv\ncp x.csv y\nsh y",
    "a shell's input": f"bash <<E\n{MINER}\nE",
    "a pipe": f"echo '{MINER}' | sh",
    "a block": f"{{\necho '{MINER}'\n}} | bash",
    "a variable": f"go='{MINER}'\n$go",
    "a variable of a variable": f"a='{MINER}'\nb=$a\neval \"$b\"",
    "a document in a variable": f"read -r go <<E\n{MINER}\nE\n$go",
    "inline code": f"python3 -c 'import os; os.system(\"{MINER}\")'",
    "settings of a program": 'cat > config.json <<E\n{"pools": [{"url": "stratum+tcp://pool.example:3333"}]}\nE\n./x',
    "a service": f"cat > /etc/systemd/system/x.service <<E\nExecStart={MINER}\nE",
}


def ran(script: str) -> bool:
    return "stratum" in "\n".join(surely_run(tuple(script.split("\n"))))


@pytest.mark.parametrize("name", DATA)
def test_data_is_not_surely_run(name: str) -> None:
    assert not ran(DATA[name])


@pytest.mark.parametrize("name", RUN)
def test_what_a_shell_gets_is(name: str) -> None:
    assert ran(RUN[name])
