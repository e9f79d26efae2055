"""Command lines as a shell would see them: joined, and with simple variables filled in."""

import pytest

from tocsin.workload.commands import command_lines


@pytest.mark.parametrize(
    ("lines", "last"),
    [
        (["x=xm'rig'", "$x -o pool"], "xmrig -o pool"),
        (['x="/opt/bin"/solver', "srun $x"], "srun /opt/bin/solver"),
        (["x=${y:-'xm'}rig", "$x"], "xmrig"),
        (['x="${x:-"a b"}"', "run $x"], "run a b"),
        (["x='a'$(hostname)", "run $x"], "run a"),
        (["x=1; y=2", "run $x $y"], "run 1 2"),
        (["x=a", "x+=b", "run $x"], "run ab"),
    ],
)
def test_variables_get_the_values_that_a_shell_gives_them(lines: list[str], last: str) -> None:
    assert command_lines("\n".join(lines))[-1] == (len(lines), last)


@pytest.mark.parametrize("value", ["$(hostname)", "a`date`", '"a', "(a b)"])
def test_a_value_that_is_not_known_is_not_filled_in(value: str) -> None:
    assert command_lines(f"x={value}\nrun $x")[-1] == (2, "run $x")
