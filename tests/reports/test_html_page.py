from __future__ import annotations

import base64
import hashlib
import html
import html.parser
import json
import re
import zlib
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield._figures import vega_library
from cranfield._table import csv_of
from cranfield.reports import html_page, report, write_report
from cranfield.reports.html_page import Section, page
from cranfield.reports.markup import json_text
from cranfield.reports.tables import leaderboard_frame

pytestmark = pytest.mark.usefixtures("undrawn")

VOID = {"meta", "input", "img", "br", "hr"}


class Reader(html.parser.HTMLParser):
    """Collects elements, their attributes, and whether every one is closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def read(page_text: str) -> Reader:
    reader = Reader()
    reader.feed(page_text)
    assert reader.open == []
    return reader


def embedded(page_text: str):
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page_text, re.S)[1])
    files = {name: zlib.decompress(base64.b64decode(one)).decode() for name, one in data["files"].items()}
    return {**data, "files": files}


@pytest.fixture(scope="module")
def made(scores, comparison, assessment):
    return report(scores, comparison, assessment)


def test_names_of_systems_appear_as_text_and_never_as_markup(made, evil):
    reader = read(made)
    tags = [tag for tag, _ in reader.elements]
    # The page's own script, Vega, the numbers, and the definitions of the figures.
    assert tags.count("script") == 3 + tags.count("figure")
    assert tags.count("style") == 1
    assert "img" not in tags
    assert not any(name.startswith("on") for _, attributes in reader.elements for name in attributes)
    shown = "".join(reader.texts)
    assert all(name in shown for name in evil)


def test_a_name_that_turns_writing_round_or_commands_a_terminal_stays_within_its_own(make_scores):
    named = make_scores(("turned\u202e", "red\x1b[31m", "plain"))
    page = report(named, cf.compare(named))
    assert not set(page) & {"\x1b", "\u202e"}
    told = embedded(page)
    assert told["pairs"]["systems"] == told["explorer"]["systems"] == ["turned\ufffd", "red\ufffd[31m", "plain"]
    assert "turned\ufffd" in page


def test_the_page_asks_nothing_of_a_network(made):
    reader = read(made)
    for _, attributes in reader.elements:
        for name in ("src", "href", "action", "poster", "data", "xlink:href"):
            assert attributes.get(name, "#").startswith("#")
    # Vega could load data, but the policy forbids it, and the tests in a browser see no request.
    own = made.replace(vega_library(), "")
    assert len(own) < len(made)
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", own))
    # Names of XML vocabularies look like addresses but are never fetched.
    assert {one for one in addresses if not one.startswith("https://vega.github.io/schema/")} <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    assert "@import" not in own
    # A figure may refer to its own colour gradient, and the style sheet to a font inside it.
    assert not re.search(r"url\((?!#|data:font/woff2;base64,)", own)


def test_the_policy_allows_only_the_pages_own_style_and_script(made):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', made)[1]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for element, directive in (("style", "style-src"), ("script", "script-src")):
        contents = re.findall(rf"<{element}>(.*?)</{element}>", made, re.S)
        digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in contents]
        allowed = " ".join(f"'sha256-{one}'" for one in digests)
        assert f"{directive} {allowed};" in policy
    assert not any("style" in attributes for _, attributes in read(made).elements)


def test_tables_to_download_hold_the_numbers_of_the_frames_and_no_formula(made, scores, comparison):
    tables = embedded(made)["files"]
    for name, frame in (
        ("leaderboard", leaderboard_frame(scores, comparison)),
        ("pairs", comparison.frame(detail=True)),
        ("per-user", scores.per_user()),
    ):
        back = pl.read_csv(tables[f"{name}.csv"].encode(), infer_schema_length=None)
        assert back.columns == frame.columns
        for column, kind in frame.schema.items():
            if kind in (pl.Float64, pl.Int64):
                given = frame[column].cast(pl.Float64).fill_nan(None)
                assert back[column].cast(pl.Float64, strict=False).fill_nan(None).to_list() == given.to_list()
    assert "'=SUM(A1)" in tables["leaderboard.csv"]
    assert not re.search(r"(^|,)=SUM", tables["leaderboard.csv"], re.M)


def test_the_advice_on_metrics_stands_on_the_page_with_its_numbers(made, assessment):
    text = "".join(read(made).texts)
    assert all(one in text for one in assessment.verdict)
    back = pl.read_csv(embedded(made)["files"]["trust-advice.csv"].encode())
    assert back["score"].to_list() == assessment.frame("advice")["score"].to_list()


def test_every_button_to_download_has_its_table_and_every_figure_its_drawing(made):
    reader, files = read(made), embedded(made)["files"]
    buttons = [a for tag, a in reader.elements if tag == "button"]
    assert {a["data-save-file"] for a in buttons if "data-save-file" in a} == set(files)
    drawings = {a.get("id") for tag, a in reader.elements if tag == "svg"}
    assert {f"figure-{a['data-save-figure']}" for a in buttons if "data-save-figure" in a} == drawings


def test_sections_are_named_once_and_the_page_says_what_was_compared(made):
    reader = read(made)
    ids = [a["id"] for _, a in reader.elements if "id" in a]
    assert len(ids) == len(set(ids))
    sections = [a["id"] for tag, a in reader.elements if tag == "section"]
    assert sections == ["answer", "leaderboard", "pairs", "users", "trust", "explorer", "card"]
    assert "<p class=lead>40 users · 4 systems · P@5</p>" in made


def test_tables_have_captions_and_headings_that_tell_their_order(made):
    reader = read(made)
    tags = [tag for tag, _ in reader.elements]
    assert tags.count("caption") == tags.count("table")
    headings = [a for tag, a in reader.elements if tag == "th" and a.get("scope") == "col"]
    assert headings
    assert all(a["aria-sort"] == "none" for a in headings)


def test_a_script_cannot_be_closed_from_within_data():
    text = json_text({"a": "</script><!-- \u2028"})
    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text) == {"a": "</script><!-- \u2028"}


def test_csv_keeps_all_digits_and_guards_text():
    frame = pl.DataFrame({"name": ["=1", "+a", "-b", "@c", "d"], "value": [0.1 + 0.2, -1.0, None, 1e-300, 5.0]})
    lines = csv_of(frame).splitlines()
    assert lines[1] == f"'=1,{0.1 + 0.2!r}"
    assert [line.split(",")[0] for line in lines[2:]] == ["'+a", "'-b", "'@c", "d"]


def test_a_page_without_figures_holds_no_library_to_draw_them():
    assert len(page("t", [Section("a", "A", "<p>x</p>")])) < len(vega_library())


def test_titles_are_escaped():
    made = page("<i>t</i>", [Section("a", "<b>", "<p>x</p>")], lead="<u>")
    assert "<i>" not in made
    assert "&lt;b&gt;" in made
    assert "&lt;u&gt;" in made


def test_a_single_system_has_a_page_that_says_so(make_scores, tmp_path):
    path = write_report(make_scores(systems=("only",)), tmp_path / "deep" / "one.html")
    made = path.read_text()
    assert "There is one system, only, and nothing to compare it with." in made
    assert 'id="explorer"' not in made


def test_equal_scores_have_a_page_that_says_so(tmp_path):
    test = cf.Ratings.of(["a", "b"], ["x", "y"], [5, 5])
    same = {"a": ["x", "z"], "b": ["z", "y"]}
    scores = cf.measure({"one": same, "two": same, "three": same}, test, ["P@2", "RR"], threshold=4)
    comparison = cf.compare(scores)
    made = report(scores, comparison)
    assert comparison.main.answer == "one, two and three have the same value for each of 2 users."
    assert comparison.main.answer in made
    assert "No pair of systems differs significantly" in made


def test_metrics_without_a_value_by_list_have_a_page(make_scores):
    scores = make_scores(metrics=("Gini@5",))
    made = report(scores)
    assert "has the highest average" in made
    assert 'id="users"' not in made


def test_no_lists_at_all_have_a_page_that_says_so():
    none = np.zeros(0, dtype=np.int64)
    scores = cf.Scores(
        ("a", "b"), ("P@1",), np.zeros((2, 1, 0)), np.zeros((2, 0), dtype=bool), none.astype(np.int32),
        cf.tables.Vocabulary.of([1]), none, none, (False,),
    )  # fmt: skip
    assert "nothing can be said" in report(scores)


def test_a_system_whose_values_are_all_undefined_stands_last(make_scores):
    scores = make_scores(systems=("a", "b"), metrics=("P@5",))
    scores = replace(scores, values=np.where([[[True]], [[False]]], np.nan, scores.values))
    made = report(scores)
    assert made.index('<th scope="row" data-key="b"') < made.index('<th scope="row" data-key="a"')


def test_further_sections_stand_before_the_card(scores):
    made = report(scores, sections=[Section("more", "More", "<p>of it</p>")])
    sections = [a["id"] for tag, a in read(made).elements if tag == "section"]
    assert sections[-2:] == ["more", "card"]


def test_the_leaderboard_shows_the_share_of_items_that_do_not_exist(scores):
    share = np.full((len(scores.systems), len(scores.metrics)), 0.125)
    page = report(replace(scores, nonexistent=share))
    assert "nonexistent" in page
    assert "12.5" in page


def test_the_leaderboard_averages_as_it_is_asked_to(scores):
    made = report(scores, average="median", coverage="reduced")
    back = pl.read_csv(embedded(made)["files"]["leaderboard.csv"].encode())
    assert back["mean"].to_list() == scores.frame("median", coverage="reduced")["mean"].to_list()
    assert f"average: median; over the {scores.served.sum()} of 40 users that all 4 systems serve" in made
    explorer = embedded(made)["explorer"]
    start, sizes = explorer["keys"][explorer["start"]], [len(one["options"]) for one in explorer["dimensions"]]
    average = start // int(np.prod(sizes[:6])) % sizes[6]
    assert explorer["dimensions"][6]["options"][average] == "median"


def test_the_explorer_offers_the_average_of_the_page_and_starts_there(scores):
    explorer = embedded(report(scores, average="trimmed(share=0.25)"))["explorer"]
    means = np.frombuffer(base64.b64decode(explorer["means"]), dtype="<f4").reshape(-1, len(scores.systems))
    assert means[explorer["start"]] == pytest.approx(scores.average("trimmed(share=0.25)")[:, 0], rel=1e-6)


def test_without_a_comparison_nothing_is_said_of_significance(scores):
    made = report(scores)
    assert "; nothing was tested." in made
    assert 'id="pairs"' not in made


def test_a_comparison_with_a_baseline_has_a_page(scores, evil):
    compared = cf.compare(scores, baseline=evil[0])
    texts = "".join(read(report(scores, compared)).texts)
    assert compared.main.answer in texts
    assert "Which systems differ" not in texts  # the answer says it
    assert f"Differences from {evil[0]}; significant ones in colour" in texts


def test_missing_libraries_are_named_with_the_remedy(scores, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(cf.errors.MissingExtraError, match=r"drawing needs altair.*cranfield\[report\]"):
        report(scores)


def test_the_page_opens_with_the_answer_and_folds_the_rest(make_scores):
    scores = make_scores(systems=("a", "b", "c"), metrics=tuple(f"P@{n}" for n in range(1, 8)))
    comparison = cf.compare(replace(scores, trained_once=("a",)), significance="student")
    made = report(scores, comparison)
    opening = made[made.index('<p class="answer">') : made.index('<section id="leaderboard"')]
    assert opening.startswith(f'<p class="answer">{comparison.main.answer}</p><figure>')
    folds = re.findall("<details><summary>(.*?)</summary>", opening)
    assert folds == ["By the other metrics", "How to write it", "What to doubt"]
    assert "<li>a was trained once</li></ul>" in opening
    assert html.escape(str(comparison.paragraph)) in opening
    assert all(f'data-key="P@{n}"' in opening for n in range(1, 8))
    assert len(re.sub("<.*?>", " ", opening[: opening.index("<figure>")]).split()) <= 25


def test_at_most_three_warnings_stand_on_the_first_screen(make_scores):
    from cranfield.reports.sections.comparison import warnings

    assert warnings([]) == ""
    assert warnings(["a < b", "2", "3", "4"]).count("<li>") == 3
    assert "a &lt; b" in warnings(["a < b"])


@pytest.mark.slow
def test_two_hundred_systems_and_fifty_metrics_stay_below_ten_megabytes(many_scores):
    comparison = cf.compare(many_scores, significance="student")
    made = report(many_scores, comparison)
    assert len(made.encode()) < 10_000_000
    assert "The matrix shows the best 40 of 200 systems." in made
    assert "the table to download holds those with the best system of each metric" in made


def test_metrics_that_no_system_has_a_value_of_are_named(make_scores):
    scores = make_scores(systems=("a", "b"), metrics=("P@5", "RR@10"))
    scores = replace(scores, values=np.where([[True], [False]], np.nan, scores.values))
    assert "P@5: nothing can be said, since it is undefined for every user." in report(scores, undefined="leave out")
    scores = replace(scores, values=np.full_like(scores.values, np.nan))
    assert "Nothing can be said: no system has a value by any metric." in report(scores, undefined="leave out")


def test_a_line_says_that_tests_are_paired_where_intervals_overlap_and_letters_differ(make_scores):
    scores = make_scores(systems=("a", "b"), metrics=("P@5",), users=200)
    values = np.broadcast_to(np.random.default_rng(0).random(200), (2, 1, 200)).copy()
    scores = replace(scores, values=values)
    line = "Tests are paired by user"
    assert line not in report(scores, cf.compare(scores))
    values[0] += 0.01 + 0.001 * np.arange(200) / 200
    assert line in report(scores, cf.compare(scores))
    values[0] += 5
    assert line not in report(scores, cf.compare(scores))


def test_no_significant_pair_is_said_so(make_scores):
    scores = make_scores(systems=("a", "b", "c"), metrics=("P@5",), users=6)
    comparison = cf.compare(scores)
    assert not comparison.rows["significant"].any()
    assert "No pair of systems differs significantly by P@5." in report(scores, comparison)


def test_a_registered_section_is_on_every_page_at_its_place(monkeypatch):
    monkeypatch.setattr(html_page, "SECTIONS", [*html_page.SECTIONS])

    @html_page.on_page(35)
    def _lists(reported):
        return Section("lists", "Lists", f"<p>{reported.scores.n_lists} lists</p>")

    @html_page.on_page(36)
    def _nothing(_):
        return None

    scores = cf.measure({"a": {"ann": ["x"]}, "b": {"ann": ["y", "x"]}}, cf.Ratings.of(["ann"], ["x"]), ["P@1"])
    made = report(scores, sections=[Section("mine", "Mine", "<p>mine</p>")])
    order = re.findall(r'<section id="([^"]+)"', made)
    assert order == ["answer", "leaderboard", "lists", "users", "explorer", "mine", "card"]
    assert "<p>1 lists</p>" in made
