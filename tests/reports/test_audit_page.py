"""The page of an audit, and the files beside it."""

from __future__ import annotations

import base64
import html
import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from cranfield.audits import Audit, Grid, VariedDecision
from cranfield.audits.pair import PairView
from cranfield.reports import sections
from cranfield.reports.audit_page import audit_page, write_audit
from cranfield.reports.sections.audit import audit_section

OPENED = (
    VariedDecision("split", "question", ("random(train=0.2)", "random(train=0.8)")),
    VariedDecision("metrics", "equivalent", ("P", "</script><script>alert(4)</script>")),
    VariedDecision("split_seed", "chance", ("0", "1", "2", "3", "4")),
)


def audit_of(grid, systems, shift=0.0):
    """Return an audit in which the first system gains on the others by ``shift`` with the first decision."""
    values = np.random.default_rng(3).normal(0.4, 0.2, (len(systems), grid.n_cells, 50))
    values[0] += shift * (0.5 - grid.cells[:, [0]])
    return Audit.of(grid, systems, values.mean(axis=2), values, draws=250, resamples=20)


@pytest.fixture(scope="module")
def audit(evil):
    return audit_of(Grid.product(OPENED), evil, shift=0.6)


@pytest.fixture(scope="module")
def page(audit):
    return audit_page(audit)


@pytest.fixture
def undrawn(monkeypatch):
    """Leave the figures out, which take most of the time."""
    for name in ("still", "figure"):
        monkeypatch.setattr(sections.audit, name, lambda *_: "")


def data_of(html):
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])["audit"]


def numbers(text, kind):
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def visible(made):
    """Return the markup of a page without scripts and their data."""
    return re.sub(r"<script.*?</script>", "", made, flags=re.DOTALL)


def test_names_of_systems_and_options_are_escaped(page, audit):
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in visible(page)
    assert data_of(page)["decisions"][1]["options"][1] == "</script><script>alert(4)</script>"


def test_the_verdict_on_the_winner_and_the_runner_up_comes_first(page, audit):
    first = re.search(r'<p class="answer" id="audit-large"[^>]*>(.*?)</p>', page)[1]
    assert html.unescape(first) == audit.pair_facts()[0].sentence
    assert page.index('id="audit-large"') < page.index('id="audit-root"')
    assert data_of(page)["systems"] == list(audit.systems_at_start)
    assert data_of(page)["pairs"][0]["systems"] == [0, 1]


def test_the_page_says_what_each_answer_means_and_does_not(page):
    text = visible(page)
    for words in (
        "A share of set-ups is not a probability",
        "one of two equally good systems",
        "not who leads",
        "noise floor",
        "Influence shows which decisions move the result, not which option is right",
        "predicts nothing about options that were not opened",
        "takes the trained models as given",
    ):
        assert words in text, words


@pytest.mark.parametrize("name", ["shares", "joint", "joint-by-question", "influence", "flips", "rule"])
def test_every_answer_about_a_pair_has_its_table(page, audit, name):
    part = re.search(rf'data-table="{name}">(.*?)</table>', page, re.DOTALL)[1]
    rows = data_of(page)["pairs"][0]["tables"][name]["rows"]
    assert rows
    assert part.count("<tr>") == 1 + len(rows)


def test_the_joint_test_has_four_statistics_with_the_spread_of_seeds_first(page):
    own = data_of(page)["pairs"][0]["tables"]["joint"]
    assert len(own["rows"]) == 4
    assert own["header"][3:] == ["p, retrained", "p, Holm", "p"]
    assert all(row[3] != "–" for row in own["rows"])


def test_the_script_has_the_numbers_of_every_pair_and_cell(page, audit):
    data = data_of(page)
    frame = audit.frame()
    assert numbers(data["cells"], "<u2").reshape(-1, 3).tolist() == audit.grid.cells.tolist()
    for pair in data["pairs"]:
        first, second = (data["systems"][number] for number in pair["systems"])
        view = PairView.of(audit, first, second)
        own = frame.filter(system_a=view.pair.systems[0], system_b=view.pair.systems[1])
        assert numbers(pair["d_z"], "<f4") == pytest.approx(view.sign * own["d_z"].to_numpy(), rel=1e-6)
        assert numbers(pair["p"], "<f4") == pytest.approx(own["p"].to_numpy(), rel=1e-6)
        leaders = [[second, None, first][number % 3] for number in numbers(pair["result"], "u1")]
        assert leaders == own["leader"].to_list()
        assert (numbers(pair["result"], "u1") > 2).tolist() == own["significant"].to_list()


def test_a_page_of_many_systems_has_the_best_and_says_so(audit, monkeypatch, undrawn):
    monkeypatch.setattr(sections.audit, "_MOST_BYTES", 1)
    section = audit_section(audit)
    assert section.data["systems"] == list(audit.systems_at_start[:2])
    assert "The page has the best 2 of 4 systems." in section.html
    monkeypatch.setattr(sections.audit, "_MOST_BYTES", 3 * len(json.dumps(section.data["pairs"][0])) + 4000)
    section = audit_section(audit)
    assert len(section.data["systems"]) == 3
    assert "The page has the best 3 of 4 systems." in section.html


def test_a_long_table_says_how_many_rows_it_has(audit, monkeypatch, undrawn):
    monkeypatch.setattr(sections.audit, "MOST_ROWS", 1)
    assert "The first 1 of 3 rows." in audit_section(audit).more


def test_one_cell_has_a_page_with_all_figures():
    made = audit_page(audit_of(Grid.product([VariedDecision("cutoff", "equivalent", ("10",))]), ("a", "b")))
    assert "There is one set-up, so nothing can be said about other decisions." in made
    assert "2 systems · 1 set-up · varied: cutoff" in made
    assert made.count('role="img"') == 4


def test_systems_that_are_always_equal_have_a_page(undrawn):
    grid = Grid.product([VariedDecision("cutoff", "equivalent", ("5", "10"))])
    values = np.ones((2, 2, 9))
    made = audit_page(Audit.of(grid, ("a", "b"), values.mean(axis=2), values, draws=250, resamples=5))
    assert "a and b are equal as set up; a leads in 0 % of 2 set-ups." in made
    assert "under the starting point they are equal" in made


def test_equal_shares_name_no_leader(undrawn):
    grid = Grid.product([VariedDecision("cutoff", "equivalent", ("5", "10"))])
    values = np.random.default_rng(0).normal(size=(2, 2, 30))
    values[0] += np.array([[3.0], [-3.0]])
    section = audit_section(Audit.of(grid, ("a", "b"), values.mean(axis=2), values, draws=250, resamples=5))
    assert section.data["pairs"][0]["tables"]["shares"]["rows"][0][2].startswith("50 %")
    assert section.data["pairs"][0]["facts"][0][0] == "50 %"


def test_combinations_that_failed_are_shown_with_their_reason(undrawn):
    opened = [
        VariedDecision("cutoff", "equivalent", ("5", "10")),
        VariedDecision("lists", "question", ("full", "condensed")),
    ]
    cells = np.array([[0, 0], [0, 1], [1, 0]])
    grid = Grid(tuple(opened), cells, np.arange(3), invalid=(((1, 1), "nothing is <relevant>"),))
    row = re.search(r"<tr><th[^>]*>nothing is &lt;relevant&gt;</th>(.*?)</tr>", audit_page(audit_of(grid, ("a", "b"))))[
        1
    ]
    assert ">1<" in row
    assert "cutoff 10, lists condensed" in row


def test_what_is_known_of_the_truth_and_of_metrics_has_a_part_of_its_own(evil, undrawn):
    values = np.random.default_rng(0).normal(size=(2, 2, 30))
    grid = Grid.product([VariedDecision("cutoff", "equivalent", ("5", "10"))])
    plain = Audit.of(grid, evil[:2], values.mean(axis=2), values, draws=250, resamples=5)
    assert "audit-truth" not in audit_section(plain).more
    true = dict.fromkeys(evil[:1], 0.3) | dict.fromkeys(evil[1:2], 0.2)
    known = Audit.of(grid, evil[:2], values.mean(axis=2), values, draws=250, resamples=5, truth=true)
    advised = ("AP@10", "P@10")
    rows = [
        {"setup": metric, "metric": metric, "average": "mean", "rank": 1, "score": 0.5, "lower": 0.4, "upper": 0.6,
         "first": 0.6, "tau": 0.2, "clear": False, "reason": None}
        for metric in advised
    ]  # fmt: skip
    section = audit_section(replace(known, advised=tuple(rows)))
    assert 'id="audit-truth"' in section.more
    assert 'id="audit-advice"' in section.more
    assert section.more.count("The advice on metrics depends on the set-up") == 1
    assert section.more.count("Under the starting point ") == 1
    assert {"audit-truth", "audit-advice"} <= set(section.tables)


def test_headings_do_not_skip_a_level(page):
    levels = [int(level) for level in re.findall(r"<h(\d)[ >]", page)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_figures_and_tables_stand_beside_the_page(audit, page, tmp_path, monkeypatch):
    monkeypatch.setattr("cranfield.reports.audit_page.audit_page", lambda *_, **__: page)
    paths = {path.relative_to(tmp_path).as_posix(): path for path in write_audit(audit, tmp_path, data="films")}
    for kind in ("curve", "map", "influence", "ranks"):
        assert paths[f"figures/{kind}.svg"].read_bytes().startswith(b"<svg")
        assert paths[f"figures/{kind}.pdf"].read_bytes().startswith(b"%PDF")
    for name in ("shares", "joint", "influence", "flips", "ranks", "pairs", "opened"):
        latex = paths[f"tables/{name}.tex"].read_text()
        assert rf"\caption{{Audit {name} on films: " in latex
        assert rf"\label{{tab:films-audit-{name}}}" in latex
    assert paths["report.html"].read_text() == page
