"""Node lists are read within bounds and are never anything but names; ClusterShell is the oracle."""

import pytest
from ClusterShell.NodeSet import NodeSet
from hypothesis import given
from hypothesis import strategies as st

from tocsin.core.errors import NodeListError
from tocsin.core.nodelist import MOST_NODES, count_nodes, expand_nodes, fold_nodes

heads = st.from_regex(r"[a-z]{1,4}(?:-[a-z])?", fullmatch=True)


@st.composite
def ranges(draw: st.DrawFn) -> str:
    first = draw(st.integers(0, 120))
    last = first + draw(st.integers(0, 12))
    width = draw(st.sampled_from([0, 0, 3, 4]))
    return f"{first:0{width}d}-{last:0{width}d}"


@st.composite
def node_lists(draw: st.DrawFn) -> str:
    entries = []
    for _ in range(draw(st.integers(1, 4))):
        entry = draw(heads)
        for _ in range(draw(st.integers(0, 2))):
            inner = ",".join(draw(st.lists(ranges() | st.integers(0, 99).map(str), min_size=1, max_size=3)))
            entry += f"[{inner}]" + draw(
                st.sampled_from(["x", "-n"])
            )  # ClusterShell refuses "][", Slurm prints it
        entries.append(entry)
    return ",".join(entries)


@given(node_lists())
def test_the_same_nodes_as_clustershell(text: str) -> None:
    assert set(expand_nodes(text)) == set(NodeSet(text, resolver=None))
    assert count_nodes(text) == len(expand_nodes(text))


@given(st.sets(st.from_regex(r"[a-c]-?(0{0,2}[0-9]{1,3})?", fullmatch=True), max_size=40))
def test_folded_nodes_unfold_to_the_same(names: set[str]) -> None:
    assert set(expand_nodes(fold_nodes(names))) == names


@pytest.mark.parametrize(
    "text",
    [
        "@x';id;'",
        "n[1-2",
        "n[[1-2]]",
        "n[1-2]]",
        "n[a-b]",
        "n[3-1]",
        "$(id)",
        "a b",
        "n[1-9999999999999]",
        "a,,b",
        "n[]",
        "`id`",
        "n[1-2/2]",
    ],
)
def test_what_is_no_list_of_names_is_refused(text: str) -> None:
    with pytest.raises(NodeListError):
        expand_nodes(text)


@pytest.mark.parametrize(
    "text", ["n[0-9999999]", "n[0-999][0-999][0-999][0-999]", ",".join(["a[0-99999]"] * 9)]
)
def test_a_vast_list_is_counted_but_never_expanded(text: str) -> None:
    assert count_nodes(text) > MOST_NODES
    with pytest.raises(NodeListError, match="the limit is"):
        expand_nodes(text)


@given(st.text(alphabet="n0123456789[]-,.@'; $x", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert len(expand_nodes(text, most=10_000)) == count_nodes(text)
    except NodeListError as error:
        assert str(error)


def test_a_megabyte_of_brackets_is_refused_at_once() -> None:
    with pytest.raises(NodeListError):
        expand_nodes("[" * 1_000_001)
