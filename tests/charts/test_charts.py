"""Charts are valid specifications, drawn as valid SVG whatever their data are."""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin.charts import profiles, traces
from tocsin.charts.curves import curve_charts
from tocsin.charts.render import to_svg, write_charts
from tocsin.charts.spec import Spec
from tocsin.charts.waterfall import waterfall
from tocsin.core.errors import TocsinError
from tocsin.models.curves import curves

SVG = "{http://www.w3.org/2000/svg}"


def predictions(rows: int = 2000) -> dict[str, Any]:
    random = np.random.default_rng(0)
    p = random.beta(1, 4, rows)
    return curves((random.random(rows) < p).astype(np.int64), p, threshold=0.4)


SAMPLING: dict[str, Any] = {
    "kinds": [
        {
            "kind": kind,
            "segment": 64,
            "frequency": frequency,
            "period": frequency and 1 / frequency,
            "spectrum": {"frequency": [0.01, 0.1, 0.5], "power": [0.0, 0.1, 0.01]},
        }
        for kind, frequency in (("fit", 0.1), ("idle", None))
    ],
    "separation": {
        "length": 100,
        "draws": 30,
        "explained": [0.8, 0.1],
        "points": [{"kind": f"kind {n}", "x": n * 1.0, "y": 0.5} for n in range(10)],
        "silhouette": [
            {"interval": seconds, "way": way, "mean": 0.5, "deviation": 0.1}
            for seconds in (1, 30)
            for way in ("pick", "mean")
        ],
    },
}


DIAGNOSIS: dict[str, Any] = {
    "threshold": 0.01,
    "kinds": [
        {"kind": kind, "bad": bad, "low": 0.0, "lower": 0.001, "median": 0.002, "upper": 0.003, "high": high}
        for kind, bad, high in (("fit", False, 0.004), ("bad_io", True, 0.4))
    ],
    "plane": {"explained": [0.95, 0.004], "points": [{"kind": "fit", "x": 1.0, "y": 0.5}]},
    "shown_decay": {
        "bad": "bad_io",
        "kind": "fit",
        "correlation": -0.5,
        "points": [{"distance": 3.0, "iowait": 0.2}],
    },
    "reconstructions": [
        {
            "kind": kind,
            "node": "n1",
            "cpu": 3,
            "channel": "iowait",
            "error": 0.25,
            "original": [0.9, 0.8],
            "reconstruction": [0.0, 0.1],
        }
        for kind in ("fit", "bad_io")
    ],
}


def every_chart() -> dict[str, Spec]:
    numbers = [1, 2, 3, 4]
    return {
        **curve_charts(predictions(), "failed at submit"),
        "distortion": profiles.distortion(numbers, [1.0, 0.4, 0.3, 0.25], 2),
        "bic": profiles.bic(numbers, [900.0, 500.0, 450.0, 440.0], 3),
        "outcomes": profiles.outcomes({"1: short jobs": {"completed": 30, "out_of_memory": 10}}),
        "waterfall": waterfall(
            "Risk", 0.6, [("short of memory", 0.5), ("a careful user", -0.2)], threshold=0.5
        ),
        "correlations": profiles.correlations(["CPUs", "wait"], [[1.0, -0.25], [-0.25, 1.0]]),
        **traces.sampling_charts(SAMPLING),
        **traces.diagnosis_charts(DIAGNOSIS),
    }


def words(svg: str) -> set[str]:
    return {"".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(f"{SVG}text")}


def fills(svg: str) -> set[str]:
    return {str(element.get("fill")) for element in ElementTree.fromstring(svg).iter(f"{SVG}path")}


@pytest.mark.parametrize("name", every_chart())
def test_a_chart_is_plain_json_and_fetches_nothing(name: str) -> None:
    spec = every_chart()[name]
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    assert "url" not in json.dumps(spec)
    svg = to_svg(spec)
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label", "").startswith(str(spec["description"]))
    assert not list(root.iter(f"{SVG}script"))


def test_text_is_set_in_the_font_that_the_renderer_carries() -> None:
    svg = to_svg(every_chart()["outcomes"])
    fonts = {str(text.get("font-family")) for text in ElementTree.fromstring(svg).iter(f"{SVG}text")}
    assert all(font.startswith("Liberation Sans") for font in fonts)
    assert svg == to_svg(every_chart()["outcomes"])


def test_curves_are_drawn_with_their_figures_and_threshold() -> None:
    found = predictions()
    drawn = {name: words(to_svg(spec)) for name, spec in curve_charts(found, "failed at submit").items()}
    assert all("failed at submit" in text for text in drawn.values())
    assert "threshold 0.4" in drawn["precision-recall"] & drawn["roc"] & drawn["scores"]
    assert f"ROC: area under the curve {found['roc']['auc']:.3f}" in drawn["roc"]
    assert f"failing jobs ({found['positive']:,})" in drawn["scores"]


@pytest.mark.parametrize(
    ("y", "p"), [([], []), ([0, 0, 0], [0.1, 0.2, 0.2]), ([1, 1], [0.3, 1.0]), ([1, 0], [0.5, 0.5])]
)
def test_predictions_of_one_class_or_of_no_row_are_still_drawn(y: list[int], p: list[float]) -> None:
    found = curves(np.array(y), np.array(p), threshold=0.5)
    for spec in curve_charts(found, "few").values():
        ElementTree.fromstring(to_svg(spec))


def test_an_outcome_has_the_same_colour_in_every_chart() -> None:
    few, more = ({"failed": 3}, {"completed": 1, "failed": 3, "timeout": 2})
    assert fills(to_svg(profiles.outcomes({"a": few}))) & fills(to_svg(profiles.outcomes({"a": more})))


def test_an_unknown_correlation_is_grey_and_has_no_figure() -> None:
    svg = to_svg(profiles.correlations(["a", "b"], [[1.0, None], [None, 1.0]]))
    assert "#c9d1d9" in fills(svg)
    assert "null" not in svg
    assert "1.00" in words(svg)


def test_markup_control_characters_and_infinities_do_no_harm() -> None:
    name = '<script>alert(1)</script>"\x00\x1b&'
    svg = to_svg(profiles.correlations([name, "b"], [[1.0, float("nan")], [float("inf"), 1.0]]))
    assert "<script" not in svg
    assert any("alert(1)" in text for text in words(svg))


def test_nothing_is_written_without_the_renderer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(TocsinError, match=r"pip install 'tocsin\[charts\]'"):
        write_charts(tmp_path / "out", every_chart())
    assert not (tmp_path / "out").exists()


def test_a_spectrum_is_headed_by_its_period_and_more_kinds_than_colours_have_shapes() -> None:
    drawn = {name: to_svg(spec) for name, spec in traces.sampling_charts(SAMPLING).items()}
    assert {"fit: 10 s", "idle: no peak"} <= words(drawn["spectra"])
    assert "30" in words(drawn["silhouette"])
    scale = traces.sampling_charts(SAMPLING)["waveforms"]["encoding"]
    pairs = list(zip(scale["color"]["scale"]["range"], scale["shape"]["scale"]["range"], strict=True))
    assert len(set(pairs)) == 10


def test_a_diagnosis_is_drawn_with_its_figures() -> None:
    drawn = {name: words(to_svg(spec)) for name, spec in traces.diagnosis_charts(DIAGNOSIS).items()}
    assert any("rank correlation -0.50" in text for text in drawn["iowait"])
    assert "component 2: 0.4% of the variance" in drawn["embeddings"]
    assert "fit: iowait of n1 CPU 3 (error 0.25)" in drawn["reconstructions"]
    bare = {**DIAGNOSIS, "threshold": None, "plane": None, "shown_decay": None, "reconstructions": []}
    assert list(traces.diagnosis_charts(bare)) == ["errors"]


def test_the_texts_of_a_waterfall_have_room_for_a_wider_font() -> None:
    text = "39 of the last 40 jobs of this user with this name were unsuccessful"
    svg = to_svg(waterfall("Risk", 0.9, [(text, 0.2)]))
    [left] = re.findall(r'<g fill="none" stroke-miterlimit="10" transform="translate\((\d+),', svg)
    assert text in svg
    assert int(left) > 5.5 * len(text), "DejaVu Sans needs 5.5 pixels for a letter of 11 pixels"
