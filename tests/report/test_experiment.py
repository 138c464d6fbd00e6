from __future__ import annotations

import pytest

from cranfield.experiment import read_experiment, run
from cranfield.report import report_experiment

_WORLD = 'simulate = "world(users=40, items=30, ratings=400)"\n'


@pytest.mark.parametrize(
    ("sets", "split", "pages", "varied"),
    [
        ("[data.tiny]\n" + _WORLD, "random", ["report.html"], True),
        (f"[data.one]\n{_WORLD}[data.two]\n{_WORLD}", "k_fold(k=2)", ["report-one.html", "report-two.html"], False),
    ],
    ids=["one set", "two sets in folds"],
)
def test_every_set_of_ratings_has_a_page_and_figures_and_folds_no_other_decisions(tmp_path, sets, split, pages, varied):
    file = tmp_path / "e.toml"
    file.write_text(f'systems = ["popularity", "random"]\n{sets}[decisions]\nsplit = "{split}"\n')
    results = run(read_experiment(file), tmp_path / "out")
    paths = report_experiment(results)
    assert [path.name for path in paths if path.suffix == ".html"] == pages
    for path in paths:
        text = path.read_text()
        if path.suffix == ".html":
            assert ('"options":["full","condensed"]' in text) == varied
        else:
            assert text.startswith("<svg")
    for data in results.data:
        assert results.path / "figures" / f"{data}-averages.svg" in paths
