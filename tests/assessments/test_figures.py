from __future__ import annotations

import sys

import pytest

from cranfield import SettingError
from cranfield._errors import MissingExtraError
from cranfield._figures import PALETTE
from cranfield.assessments import assess

pytestmark = pytest.mark.usefixtures("checked_charts")


@pytest.mark.parametrize("study", ["robustness", "values", "power", "correlation", "aggregation"])
def test_every_study_is_a_chart_of_its_frame(assessed, study):
    chart = assessed.plot(study).to_dict()
    assert "https://vega.github.io/schema/vega-lite" in chart["$schema"]


def test_metrics_are_told_apart_by_the_colours_of_all_figures_and_beyond_seven_by_dashes(assessed):
    chart = assessed.plot("power").to_dict()["encoding"]
    colours, dashes = chart["color"]["scale"]["range"], chart["strokeDash"]["scale"]["range"]
    assert set(colours) == set(PALETTE)
    assert len(set(zip(colours, map(tuple, dashes)))) == len(assessed.metrics) == 9


def test_a_figure_for_a_paper_is_smaller_and_in_its_font(assessed):
    paper, screen = (assessed.plot("power", style=style).to_dict() for style in ("paper", "screen"))
    assert paper["width"] < screen["width"]
    assert "Times" in paper["config"]["font"]
    with pytest.raises(SettingError, match="style"):
        assessed.plot("power", style="poster")


def test_one_scenario_and_average_can_be_asked_for(assessed):
    chart = assessed.plot("robustness", scenario="popular", average="geometric").to_dict()
    assert len(chart["data"]["values"]) == 3 * 9
    assert chart["title"] == "most popular items missing"
    with pytest.raises(SettingError, match="scenario"):
        assessed.plot("robustness", scenario="popularity")
    with pytest.raises(SettingError, match="kind"):
        assessed.plot("robust")


def test_a_few_lines_have_bands_and_many_have_none(assessed):
    few = assessed.only(["P@10", "nDCG@10"]) if hasattr(assessed, "only") else None
    assert "layer" not in assessed.plot("robustness", scenario="popular").to_dict()
    assert few is None or "layer" in few.plot("robustness", scenario="popular").to_dict()


def test_the_advice_has_a_point_and_an_interval_for_each_metric(assessed):
    chart = assessed.plot("advice").to_dict()
    rows = chart["data"]["values"] if "data" in chart else chart["layer"][0]["data"]["values"]
    advised = assessed.frame("advice").filter(average="mean")
    assert [row["metric"] for row in rows] == advised["metric"].to_list()
    assert [row["score"] for row in rows] == pytest.approx(advised["score"].to_list(), rel=1e-6)


def test_cutoffs_are_in_shades_of_one_colour():
    from cranfield._figures import series

    scale = series("metric", ["P@5", "P@10", "P@20"], ordered=True)["color"].to_dict()["scale"]
    light = [sum(int(shade[k : k + 2], 16) for k in (1, 3, 5)) for shade in scale["range"]]
    assert light == sorted(light, reverse=True)
    assert len(set(light)) == 3


def test_cutoffs_have_their_own_figures(world):
    runs, test = world
    found = assess(runs, test, ["nDCG@10"], threshold=4, scenarios="ratings", sizes=[0.5], samples=3, cutoffs=[5, 20])
    assert len(found.plot("cutoffs").to_dict()["concat"]) == 3
    rows = found.plot("correlation", family="nDCG").to_dict()["layer"][0]
    assert rows["encoding"]["x"]["sort"] == ["nDCG@5", "nDCG@10", "nDCG@20"]
    curves = found.plot("power", family="nDCG").to_dict()
    assert {row["metric"] for row in curves["data"]["values"]} == {"nDCG@5", "nDCG@10", "nDCG@20"}
    with pytest.raises(SettingError, match="nDCG"):
        found.plot("robustness", family="nDGC")


def test_studies_that_were_not_made_have_no_figure(world):
    runs, test = world
    found = assess(runs, test, ["nDCG@10"], threshold=4, scenarios="ratings", sizes=[0.5], samples=3)
    for study in ("cutoffs", "aggregation"):
        with pytest.raises(SettingError, match="ask for"):
            found.plot(study)


def test_frames_and_figures_are_saved_in_three_formats(world, tmp_path):
    few = {"scenarios": "ratings", "sizes": [1, 0.5], "samples": 2}
    found = assess(*world, ["P@10"], threshold=4, averages=["mean", "median"], **few)
    files = found.save(tmp_path)
    names = {str(path.relative_to(tmp_path)) for path in files}
    for study in ("robustness", "values", "power", "correlation", "aggregation"):
        assert {f"figures/{study}.svg", f"figures/{study}.pdf", f"figures/{study}.png", f"frames/{study}.csv"} <= names
    assert (tmp_path / "figures/power.svg").read_text().startswith("<svg")
    assert (tmp_path / "figures/power.pdf").read_bytes()[:4] == b"%PDF"
    assert (tmp_path / "figures/power.png").read_bytes()[1:4] == b"PNG"
    assert all(path.stat().st_size > 0 for path in files)


def test_without_altair_the_extra_is_named(assessed, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingExtraError, match=r"cranfield\[report\]"):
        assessed.plot("power")
