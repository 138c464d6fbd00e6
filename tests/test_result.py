"""Every result offers the same: a verdict, a frame, a table, a figure, LaTeX, markup for a notebook, and files."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import assessments, audits, biases, comparisons, data, experiments, measures, splits
from cranfield._figures import definition
from cranfield._result import Result
from cranfield.experiments import Decisions, Source, System

EVIL = "<script>alert(1)</script> & $x_1$"


class World:
    """A small world with three systems, one of them with a name that means harm, and what is needed to judge them."""

    def __init__(self, folder: Any) -> None:
        self.folder = folder
        self.ratings = cf.simulate.world(60, 40, 1_200, seed=1).ratings
        self.split = cf.splits.random(self.ratings, seed=1)
        named = ("popularity", "random", "knn(k=5)")
        self.runs = cf.recommend(self.split, {EVIL: named[0], "chance": named[1], "near": named[2]})
        of_all: dict[str, Any] = {"train": self.split.train, "threshold": 4}
        self.scores = cf.measure(self.runs, self.split.test, ["P@5", "nDCG@5"], **of_all)
        self.comparison = cf.compare(self.scores, significance="student")
        self.of_all = of_all

    def experiment(self, name: str, threshold: float) -> Any:
        tiny = Source("tiny", simulate="world(users=60, items=40, ratings=900)")
        decided = Decisions(metrics=("P@10", "nDCG@10"), significance="student", threshold=threshold)
        systems = (System("popularity", "popularity"), System("random", "random"))
        made = experiments.Experiment(data=(tiny,), systems=systems, decisions=decided)
        experiments.run(made, self.folder / name)
        return self.folder / name


RESULTS: dict[type[Result], Callable[[World], Result]] = {
    assessments.Advice: lambda w: w_assessed(w).advice(),
    assessments.Assessment: lambda w: w_assessed(w),
    assessments.DiscriminativePower: lambda w: cf.discriminative_power(w.scores, significance="student"),
    audits.Audit: lambda w: cf.audit(w.runs, test=w.split.test, **w.of_all),
    biases.Bias: lambda w: cf.bias(w.ratings, {EVIL: "random", "mean": "average"}, groups=3, nonrelevant=10),
    biases.CorrectedMetrics: lambda _: cf.correct_sampled(np.arange(1, 101), sampled=99, candidates=1_000),
    biases.Density: lambda w: cf.density(w.split, threshold=4),
    biases.Estimates: lambda w: cf.estimate(w.runs, w.split.test, resamples=10, **w.of_all),
    biases.RatioToRandom: lambda w: cf.ratio_to_random(w.runs, w.split.test, ["P@5", "RR"], **w.of_all),
    comparisons.Comparison: lambda w: w.comparison,
    comparisons.Gate: lambda w: w.comparison.no_worse(than="near", by="5%"),
    comparisons.Labelling: lambda w: cf.suggest_judgments(w.runs[:2], w.split.test, budget=5, threshold=4),
    comparisons.SegmentComparison: lambda w: cf.compare_segments(w_segments(w), significance="student"),
    comparisons.TippingPoints: lambda w: cf.tipping_points(w.runs, w.split.test, "P@5", threshold=4, draws=2),
    data.Description: lambda w: cf.describe(w.ratings),
    experiments.Difference: lambda w: experiments.diff(w.experiment("one", 4), w.experiment("other", 3)),
    measures.PredictedRatings: lambda w: cf.examine_predictions([w_predictions(w)], w.split.test, train=w.split.train),
    measures.Scores: lambda w: w.scores,
    measures.Segments: lambda w: w_segments(w),
    splits.SplitCheck: lambda w: cf.check_split(w.split, name=EVIL),
}


def w_assessed(w: World) -> Any:
    how: dict[str, Any] = {
        "scenarios": "ratings",
        "cutoffs": [3, 5],
        "averages": ["mean", "geometric"],
        "sizes": [1, 0.5],
        "samples": 2,
    }
    return cf.assess(w.runs, w.split.test, ["P@5", "nDCG@5"], significance="student", **how, **w.of_all)


def w_predictions(w: World) -> Any:
    test = w.split.test
    users, items = test.user_ids.ids(test.users), test.item_ids.ids(test.items)
    return cf.read_run(pl.DataFrame({"user": users, "item": items, "prediction": test.values - 0.4}), name=EVIL)


def w_segments(w: World) -> Any:
    return w.scores.segments("activity", train=w.split.train)


def _kinds(kind: type[Result] = Result) -> Iterator[type[Result]]:
    for child in kind.__subclasses__():
        yield from (child, *_kinds(child))


class _Markup(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def result_of(tmp_path_factory):
    """Return a function that makes the result of a class, once."""
    world = World(tmp_path_factory.mktemp("results"))
    made: dict[type[Result], Result] = {}

    def make(kind: type[Result]) -> Result:
        if kind not in made:
            made[kind] = RESULTS[kind](world)
        return made[kind]

    return make


def test_every_result_of_the_package_is_tested_here():
    assert {kind for kind in _kinds() if kind.__module__.startswith("cranfield.")} == set(RESULTS)


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_a_result_has_a_verdict_a_frame_and_a_table(result_of, kind):
    result = result_of(kind)
    assert isinstance(result, kind)
    assert result.verdict
    assert all(isinstance(sentence, str) and sentence for sentence in result.verdict)
    assert result.verdict == [str(fact) for fact in result.facts()]
    assert isinstance(result.frame(), pl.DataFrame)
    assert result.frame().width > 1
    assert type(result).__name__ in repr(result) or kind is data.Description
    assert str(result).strip()


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_a_notebook_shows_the_answer_and_a_small_table_and_runs_nothing(result_of, kind):
    markup, reader = result_of(kind)._repr_html_(), _Markup()
    reader.feed(markup)
    assert reader.open == []
    assert "script" not in reader.tags
    assert reader.tags[0] == "p"
    assert {"table", "figure"} & set(reader.tags)
    assert reader.tags.count("tr") <= 25


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_a_result_is_a_table_in_latex_with_all_its_text_escaped(result_of, kind):
    latex = result_of(kind).to_latex()
    assert r"\toprule" in latex
    assert "$x_1$" not in latex


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_a_result_is_drawn_in_both_styles_and_each_of_its_figures(result_of, kind):
    result = result_of(kind)
    for style in ("screen", "paper"):
        assert definition(result.plot(style=style))
    for name in result.figures:
        assert definition(result.plot(name))
    assert definition(result.plot()) == definition(result.plot(next(iter(result.figures))))
    with pytest.raises(cf.SettingError, match="kind='drawing' is not one of"):
        result.plot("drawing")


@pytest.mark.parametrize("kind", RESULTS, ids=lambda kind: kind.__name__)
def test_a_result_is_saved_in_the_format_of_the_ending(result_of, kind, tmp_path):
    result = result_of(kind)
    assert result.save(tmp_path / "rows.parquet") == [tmp_path / "rows.parquet"]
    assert pl.read_parquet(tmp_path / "rows.parquet").equals(result.frame())
    result.save(tmp_path / "rows.json")
    assert len(json.loads((tmp_path / "rows.json").read_text())) == result.frame().height
    result.save(tmp_path / "table.tex")
    assert (tmp_path / "table.tex").read_text().rstrip() == result.to_latex().rstrip()
    result.save(tmp_path / "shown.html")
    assert result._repr_html_() in (tmp_path / "shown.html").read_text()
    result.save(tmp_path / "figure.svg", style="paper")
    assert (tmp_path / "figure.svg").read_text().startswith("<svg")


def test_a_result_without_files_of_its_own_is_saved_to_a_folder_as_words_rows_a_table_and_a_figure(result_of, tmp_path):
    result = result_of(measures.Scores)
    names = {path.name for path in result.save(tmp_path / "scores")}
    assert names == {path.name for path in (tmp_path / "scores").iterdir()}
    assert names == {"verdict.txt", "frame.csv", "table.tex", "figure.svg"}


def test_results_are_methods_of_the_same_names_with_nothing_required():
    for kind in RESULTS:
        for name in ("frame", "table", "facts", "plot", "save", "to_latex", "overview"):
            signature = inspect.signature(getattr(kind, name))
            required = [p for p in signature.parameters.values() if p.default is p.empty and p.kind < p.VAR_POSITIONAL]
            assert len(required) == (2 if name == "save" else 1), (kind, name)
