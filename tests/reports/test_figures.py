from __future__ import annotations

import itertools
import json
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from concurrent.futures import Future
from pathlib import Path

import altair
import numpy as np
import pytest

import cranfield as cf
from cranfield import _figures, _fonts
from cranfield._figures import MOST_SYSTEMS, look
from cranfield.facts.scores import ScoredFirst
from cranfield.reports import figures

SVG = "{http://www.w3.org/2000/svg}"
pytestmark = pytest.mark.usefixtures("checked_charts")


def texts(chart) -> list[str]:
    return [node.text for node in ET.fromstring(_figures.svg(chart)).iter(f"{SVG}text") if node.text]


@pytest.fixture
def charts(scores, comparison, evil):
    values = {"first": dict(zip(evil, (4.0, 3.0, 2.0, 1.0))), "second": dict(zip(evil, (1.0, 2.0, 3.0, 4.0)))}
    return {
        "averages": lambda style: scores.plot(metric="P@5", style=style),
        "distributions": lambda style: scores.plot("distributions", metric="P@5", style=style),
        "wins": lambda style: comparison.plot("wins", metric="P@5", style=style),
        "orders": lambda style: figures.orders(values, evil[:1], style=style),
        "truth": lambda style: figures.against_truth(values["first"], values["second"], "P@5", style=style),
    }


@pytest.mark.parametrize("style", ["screen", "paper"])
@pytest.mark.parametrize("name", ["averages", "distributions", "wins", "orders", "truth"])
def test_every_figure_is_drawn_with_names_as_text(charts, name, style, evil):
    shown = texts(charts[name](style))
    # If the best system is compared with the others, its name begins the title of the legend.
    assert [one for one in evil if not {one, f"{one} is"} & set(shown)] == []


@pytest.mark.parametrize("style", ["screen", "paper"])
def test_the_choices_with_which_a_system_is_first_least_and_most_often_are_named(style, evil):
    counts = ScoredFirst(evil[0], 5, 9, (("Lists", "full", 3, 3), ("Lists", evil[1], 0, 3), ("Lists", "other", 2, 3)))
    shown = texts(figures.stays_first(counts, style=style))
    assert {"Lists", "full", evil[1], f"{evil[0]} is first"} <= set(shown)
    assert "other" not in shown


@pytest.mark.parametrize("style", ["screen", pytest.param("paper", marks=pytest.mark.slow)])
def test_names_of_usual_length_are_whole_and_very_long_ones_bounded(style):
    long = "knn(k=100)+" * 30
    values = {"nncosngbr-ub": 3.0, long: 2.0, "</style><img src=x onerror=alert(2)>": 1.0}
    for chart in (
        figures.orders({"a": values, "b": values}, style=style),
        figures.against_truth(values, values, "P@5", style=style),
    ):
        shown = texts(chart)
        assert {"nncosngbr-ub", "</style><img src=x onerror=alert(2)>"} <= set(shown)
        assert any(text.startswith("knn(k=100)+knn(k=100)+") and text.endswith("…") for text in shown)
        assert float(ET.fromstring(_figures.svg(chart)).get("width")) < 1600


@pytest.mark.parametrize("style", ["screen", "paper"])
@pytest.mark.parametrize("top", [0.4, 0.02, 0.12, 0.0123, 1.0, 2500.0])
def test_labels_of_an_axis_stand_under_their_ticks_and_apart(style, top):
    chart = altair.Chart(altair.Data(values=[{"value": 0}, {"value": top}])).mark_point().encode(x="value:Q")
    chart = _figures.themed(chart.properties(width=look(style)["width"]), style)
    labels = [
        (float(re.match(r"translate\(([^,]+),", node.get("transform"))[1]), len(node.text), node.get("text-anchor"))
        for group in ET.fromstring(_figures.svg(chart)).iter(f"{SVG}g")
        if "role-axis-label" in group.get("class", "")
        for node in group.iter(f"{SVG}text")
        if node.get("text-anchor") != "end" and node.get("opacity") != "0"
    ]
    digit = 0.5 * (look(style)["size"] - 1)
    assert len(labels) >= 3
    assert {anchor for _, _, anchor in labels} == {"middle"}
    for (x, n, _), (after, m, _) in itertools.pairwise(sorted(labels)):
        assert after - x >= digit * (n + m) / 2


def test_names_beside_points_cover_neither_each_other_nor_the_axis():
    rng = np.random.default_rng(0)
    for _ in range(50):
        points = [(float(x), float(y)) for x, y in rng.uniform((5, 8), (160, 107), (6, 2))]
        placed = figures._beside(points, [40.0] * 6, 10, 115)
        boxes = [
            (x - 49 if left else x + 9, x - 9 if left else x + 49, level - 5.75, level + 5.75)
            for (x, _), (left, level) in zip(points, placed)
        ]
        assert min(box[0] for box in boxes) >= 0
        assert sum(figures._overlap(a, b) for a, b in itertools.combinations(boxes, 2)) < 100


def test_names_that_break_a_line_or_mean_something_to_javascript_are_drawn(make_scores):
    named = make_scores(("two\nlines", "constructor", "__proto__", "a\0b", "turned\u202e"))
    for chart in (named.plot(metric="P@5"), cf.compare(named).plot("wins", metric="P@5")):
        shown = {text.strip("\u2060") for text in texts(chart)}
        assert len(shown & {"two lines", "constructor", "__proto__", "a\ufffdb", "turned\ufffd"}) >= 4


def test_averages_stand_from_best_to_worst(scores, evil):
    shown = [text for text in texts(scores.plot(metric="P@5")) if text in evil]
    means = dict(zip(scores.systems, scores.average()[:, 0]))
    assert [means[one] for one in shown] == sorted((means[one] for one in shown), reverse=True)


def test_the_shares_of_users_add_up_to_one(comparison):
    rows = comparison.plot("wins", metric="P@5").to_dict()["data"]["values"]
    by_system = {row["system"]: 0.0 for row in rows}
    for row in rows:
        by_system[row["system"]] += row["share"]
    assert len(by_system) == 3
    assert np.allclose(list(by_system.values()), 1.0)


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_figures_are_written_in_the_format_of_the_ending(scores, tmp_path, ending, start):
    path = tmp_path / f"figure.{ending}"
    figures.save(scores.plot(metric="P@5", style="paper"), path)
    assert path.read_bytes().startswith(start)


def test_the_same_figure_is_the_same_pdf(scores, tmp_path):
    # Overlapping semi-transparent points are separate objects, with names in a dictionary.
    chart = altair.Chart(altair.Data(values=[{"x": x, "y": x} for x in range(20)])).mark_point(opacity=0.5, filled=True)
    chart = _figures.themed(chart.encode(x="x:Q", y="y:Q").properties(title="points"))
    written = [tmp_path / f"{number}.pdf" for number in range(4)]
    for path in written:
        figures.save(chart, path)
    assert len({path.read_bytes() for path in written}) == 1


def test_the_definition_can_be_kept(scores, tmp_path):
    figures.save(scores.plot(metric="P@5"), tmp_path / "figure.json")
    assert "vega-lite" in json.loads((tmp_path / "figure.json").read_text())["$schema"]


def test_an_unknown_ending_or_style_is_refused(scores, tmp_path):
    with pytest.raises(cf.SettingError, match=r"\.svg, \.pdf, \.png or \.json"):
        figures.save(scores.plot(metric="P@5"), tmp_path / "figure.gif")
    with pytest.raises(cf.SettingError, match="style"):
        scores.plot(metric="P@5", style="poster")


def test_only_the_best_systems_of_very_many_are_drawn(make_scores):
    scores = make_scores(systems=tuple(f"s{k}" for k in range(60)))
    assert len([text for text in texts(scores.plot(metric="P@5")) if text.startswith("s")]) == MOST_SYSTEMS


def test_a_figure_is_the_same_whatever_was_drawn_before_and_shares_no_id_with_others(assessment):
    chart = assessment.plot("correlation")
    first = _figures.svg(chart)
    assert _figures.svg(chart) == first
    ids = re.findall(r' id="([^"]+)"', first)
    assert ids
    named = _figures.svg_later(_figures.definition(chart), "a")()
    assert re.findall(r' id="([^"]+)"', named) == ["figure-a", *(f"a-{part}" for part in ids)]
    assert set(re.findall(r"url\(#([^)]+)\)", first)) <= set(ids)


DRAWING = """
import sys
from pathlib import Path
from test_figures import draw
draw(Path(sys.argv[1]))
"""


def draw(folder: Path) -> None:
    """Draw figures with many kinds of letters into a folder."""
    values = {"=SUM(A1)": 3.0, "nncosngbr-ub": 2.0, "<script>alert(1)</script>": 1.0, "constructor": 0.0}
    values |= {f"{name} 推薦 👍🏽": value + 0.5 for name, value in values.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cranfield._figures.PNG_SCALE", 1.0)
        for style in ("screen", "paper"):
            orders = figures.orders({"a": values, "b": values}, style=style)
            for k, chart in enumerate((orders, figures.against_truth(values, values, "P@5", style=style))):
                figures.save(chart, *(folder / f"{style}-{k}.{ending}" for ending in ("svg", "png")))


def _wide_fonts(folder: Path) -> None:
    """Write fonts of usual names whose letters are twice as wide as theirs are."""
    font = bytearray((Path(_fonts.__file__).parent / "CranfieldSerif-Regular.ttf").read_bytes())
    tables = struct.iter_unpack(">4sIII", font[12 : 12 + 16 * struct.unpack_from(">H", font, 4)[0]])
    head = next(start for tag, _, start, _ in tables if tag == b"head")
    struct.pack_into(">H", font, head + 18, 1024)  # units per em, which were 2,048
    for usual in ("Times New Roman", "Liberation Sans"):  # same length as the name they replace
        renamed = font.replace("Cranfield Serif".encode("utf-16-be"), usual.encode("utf-16-be"))
        (folder / f"{usual}.ttf").write_bytes(renamed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wide", "none"])
def test_a_figure_has_the_same_bytes_whatever_fonts_a_machine_has(tmp_path, kind):
    own, other = tmp_path / "own", tmp_path / kind
    for folder in (own, other / "fonts", other / "drawn"):
        folder.mkdir(parents=True)
    (other / "fonts.conf").write_text(f"<fontconfig><dir>{other / 'fonts'}</dir></fontconfig>")
    if kind == "wide":
        _wide_fonts(other / "fonts")
    setting = {"FONTCONFIG_FILE": str(other / "fonts.conf"), "PYTHONPATH": str(Path(__file__).parent)}
    subprocess.run([sys.executable, "-c", DRAWING, other / "drawn"], env=os.environ | setting, check=True, timeout=300)
    draw(own)
    drawn = {path.name: path.read_bytes() for path in own.iterdir()}
    assert len(drawn) == 2 * 2 * 2
    assert [name for name in drawn if (other / "drawn" / name).read_bytes() != drawn[name]] == []


def _done(result):
    future = Future()
    future.set_result(result)
    return future


def test_the_vega_libraries_are_kept_and_a_damaged_copy_is_made_anew(tmp_path, monkeypatch):
    bundles = []
    monkeypatch.setattr(_figures, "_begin_script", lambda: bundles.append(1) or _done(b"script"))
    monkeypatch.setenv("CRANFIELD_CACHE", str(tmp_path / "cache"))
    make = _figures.vega_library.__wrapped__
    assert [make(), make()] == ["script", "script"]
    assert len(bundles) == 1
    (kept,) = (tmp_path / "cache" / "vega").iterdir()
    kept.write_bytes(kept.read_bytes()[:-3])
    assert make() == "script"
    assert len(bundles) == 2


def test_the_vega_libraries_need_no_cache(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(_figures, "_begin_script", lambda: _done(b"script"))
    monkeypatch.setenv("CRANFIELD_CACHE", str(tmp_path / "file"))
    assert _figures.vega_library.__wrapped__() == "script"
