"""Pictures are valid XML that anyone can read, whatever they are made of."""

import doctest
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.models import svg
from tocsin.models.pictures import bars, heat_map, histogram, line_chart
from tocsin.models.svg import labels, ticks

SVG = "{http://www.w3.org/2000/svg}"


def words(picture: str) -> list[str]:
    return ["".join(element.itertext()) for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def ways(picture: str, kind: str) -> list[str]:
    found = ElementTree.fromstring(picture).iter(f"{SVG}path")
    return [element.get("d", "") for element in found if element.get("class") == kind]


def test_a_line_chart_names_its_series_its_axes_and_its_marks() -> None:
    picture = line_chart(
        "Elbow",
        "profiles",
        "distortion",
        {"a": ([1, 2, 3], [9, 5, 4]), "b": ([1, 2, 3], [8, 6, 3])},
        marks={"chosen": (2, 5)},
        guides={"floor": ([1, 3], [2, 2])},
    )
    assert {"Elbow", "profiles", "distortion", "a", "b", "chosen", "floor"} <= set(words(picture))
    assert len(ways(picture, "tc-l0")) == 2  # the line and its sample in the legend


def test_every_picture_says_what_it_shows_to_a_screen_reader() -> None:
    root = ElementTree.fromstring(line_chart("Curve", "recall", "precision", {"ours": ([0, 1], [1, 0.2])}))
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert root.get("role") == "img"
    assert (root.get("aria-labelledby"), root.get("aria-describedby")) == (
        title.get("id"),
        description.get("id"),
    )
    assert title.text == "Curve"
    assert description.text is not None
    assert "precision" in description.text
    assert "ours" in description.text


def test_a_picture_turns_dark_with_its_reader() -> None:
    style = ElementTree.fromstring(line_chart("t", "x", "y", {})).find(f"{SVG}style")
    assert style is not None
    assert "prefers-color-scheme:dark" in str(style.text)


@given(st.text(max_size=40), st.lists(st.floats(), max_size=20))
def test_no_name_and_no_number_breaks_the_xml(name: str, values: list[float]) -> None:
    places = list(range(len(values)))
    for picture in (
        line_chart(name, name, name, {name: (places, values)}, marks={name: (0, 1)}, dots=True),
        line_chart(name, name, name, {name: (values, places)}),
        bars(name, name, {name: {f"{name}{n}": v for n, v in enumerate(values)}}),
        heat_map(
            name, [name] * len(values), np.array([values] * len(values)).reshape(len(values), len(values))
        ),
    ):
        root = ElementTree.fromstring(picture)
        assert not list(root.iter(f"{SVG}script"))
        drawn = [element.get(name, "") for element in root.iter() for name in ("d", "x", "width", "cx")]
        assert not any(word in way for way in drawn for word in ("nan", "inf"))


def test_markup_in_a_name_is_shown_not_obeyed() -> None:
    picture = bars("t", "jobs", {'<script>alert(1)</script>" onload="x': {"ok": 3.0}})
    assert "<script" not in picture
    assert '<script>alert(1)</script>" onload="x' in words(picture)


def test_a_line_is_broken_where_a_value_is_missing() -> None:
    way = ways(line_chart("t", "x", "y", {"a": ([0, 1, 2, 3], [1, float("nan"), 2, 3])}), "tc-l0")[0]
    assert way.count("M") == 2


def test_what_lies_outside_the_range_is_not_drawn() -> None:
    inside = ways(line_chart("t", "x", "y", {"a": ([0, 1], [0, 1])}, x_range=(0, 1)), "tc-l0")
    outside = ways(line_chart("t", "x", "y", {"a": ([0, 1, 5], [0, 1, 1])}, x_range=(0, 1)), "tc-l0")
    assert inside == outside


def test_a_histogram_draws_each_class_from_zero() -> None:
    picture = histogram(
        "t", "p", "share", [0, 0.5, 1], {"good": [0.9, 0.1], "bad": [0.2, 0.8]}, guides={"cut": 0.4}
    )
    assert {"good", "bad", "cut"} <= set(words(picture))
    assert len(ways(picture, "tc-f0")) == len(ways(picture, "tc-f1")) == 1


def test_the_bars_of_a_row_lie_end_to_end_in_the_same_order_of_colours() -> None:
    picture = bars("t", "share", {"first": {"ok": 0.75, "bad": 0.25}, "second": {"bad": 1.0}})
    boxes = [
        e for e in ElementTree.fromstring(picture).iter(f"{SVG}rect") if e.get("class", "").startswith("tc-f")
    ]
    assert [box.get("class") for box in boxes] == ["tc-f0", "tc-f1", "tc-f1"]
    x, width = float(boxes[0].get("x", 0)), float(boxes[0].get("width", 0))
    assert float(boxes[1].get("x", 0)) == pytest.approx(x + width)


def test_a_heat_map_prints_its_figures_and_shows_what_is_unknown() -> None:
    picture = heat_map("t", ["a", "b"], [[1, -0.33], [float("nan"), 1]])
    assert "−0.33" in words(picture)
    assert "a, b: -0.33" in picture
    assert "b, a: unknown" in picture


def test_ticks_are_round_numbers_inside_the_range() -> None:
    assert ticks(0, 1.02) == [0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert labels(ticks(0, 105_000)) == ["0", "20,000", "40,000", "60,000", "80,000", "100,000"]
    assert ticks(1, 1) == []


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e12))
def test_ticks_never_leave_the_range_nor_crowd(low: float, size: float) -> None:
    found = ticks(low, low + size)
    step = found[1] - found[0] if len(found) > 1 else size
    assert len(found) <= 8
    assert all(low - step * 0.02 <= tick <= low + size + step * 0.02 for tick in found)


def test_the_examples_of_the_drawing_hold() -> None:
    found = doctest.testmod(svg)
    assert found.attempted
    assert not found.failed
