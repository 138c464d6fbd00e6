from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import cranfield as cf
from cranfield.reports import figures

SVG = "{http://www.w3.org/2000/svg}"


def texts(chart) -> list[str]:
    return [node.text for node in ET.fromstring(figures.svg(chart)).iter(f"{SVG}text") if node.text]


@pytest.fixture
def charts(scores, comparison, evil):
    values = {"first": dict(zip(evil, (4.0, 3.0, 2.0, 1.0))), "second": dict(zip(evil, (1.0, 2.0, 3.0, 4.0)))}
    return {
        "averages": lambda style: figures.averages(scores, "P@5", style=style),
        "distributions": lambda style: figures.distributions(scores, "P@5", style=style),
        "wins": lambda style: figures.wins(comparison, "P@5", style=style),
        "orders": lambda style: figures.orders(values, evil[:1], style=style),
        "truth": lambda style: figures.against_truth(values["first"], values["second"], "P@5", style=style),
    }


@pytest.mark.parametrize("style", ["screen", "paper"])
@pytest.mark.parametrize("name", ["averages", "distributions", "wins", "orders", "truth"])
def test_every_figure_is_drawn_with_names_as_text(charts, name, style, evil):
    shown = texts(charts[name](style))
    assert any(text.startswith("<script>") for text in shown)
    assert sum(any(text.startswith(one[:8]) for text in shown) for one in evil) >= 3


def test_names_that_break_a_line_or_mean_something_to_javascript_are_drawn(make_scores):
    named = make_scores(("two\nlines", "constructor", "__proto__", "a\0b", "turned\u202e"))
    for chart in (figures.averages(named, "P@5"), figures.wins(cf.compare(named), "P@5")):
        shown = {text.strip("\u2060") for text in texts(chart)}
        assert len(shown & {"two lines", "constructor", "__proto__", "a\ufffdb", "turned\ufffd"}) >= 4


def test_averages_stand_from_best_to_worst(scores, evil):
    shown = [text for text in texts(figures.averages(scores, "P@5")) if text in evil]
    means = dict(zip(scores.systems, scores.average()[:, 0]))
    assert [means[one] for one in shown] == sorted((means[one] for one in shown), reverse=True)


def test_the_shares_of_users_add_up_to_one(comparison):
    rows = figures.wins(comparison, "P@5").to_dict()["data"]["values"]
    by_system = {row["system"]: 0.0 for row in rows}
    for row in rows:
        by_system[row["system"]] += row["share"]
    assert len(by_system) == 3
    assert np.allclose(list(by_system.values()), 1.0)


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_figures_are_written_in_the_format_of_the_ending(scores, tmp_path, ending, start):
    path = tmp_path / f"figure.{ending}"
    figures.save(figures.averages(scores, "P@5", style="paper"), path)
    assert path.read_bytes().startswith(start)


def test_the_definition_can_be_kept(scores, tmp_path):
    figures.save(figures.averages(scores, "P@5"), tmp_path / "figure.json")
    assert "vega-lite" in json.loads((tmp_path / "figure.json").read_text())["$schema"]


def test_an_unknown_ending_or_style_is_refused(scores, tmp_path):
    with pytest.raises(cf.SettingError, match=r"\.svg, \.pdf, \.png or \.json"):
        figures.save(figures.averages(scores, "P@5"), tmp_path / "figure.gif")
    with pytest.raises(cf.SettingError, match="style"):
        figures.averages(scores, "P@5", style="poster")


def test_only_the_best_systems_of_very_many_are_drawn(make_scores):
    scores = make_scores(systems=tuple(f"s{k}" for k in range(60)))
    assert (
        len([text for text in texts(figures.averages(scores, "P@5")) if text.startswith("s")]) == figures.MOST_SYSTEMS
    )


def test_a_figure_is_the_same_whatever_was_drawn_before_and_shares_no_id_with_others(assessment):
    chart = assessment.plot("correlation")
    first = figures.svg(chart)
    assert figures.svg(chart) == first
    ids = re.findall(r' id="([^"]+)"', first)
    assert ids
    assert re.findall(r' id="([^"]+)"', figures.svg(chart, prefix="a-")) == [f"a-{one}" for one in ids]
    assert set(re.findall(r"url\(#([^)]+)\)", first)) <= set(ids)
