"""`compare_datasets`: both claims in the first sentence, what few datasets tell, and what is refused."""

import json

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield._errors import CranfieldError
from cranfield.across import known_families
from cranfield.facts import Fact


def users(seed, lead=0.1, n=300, systems=("ours", "theirs", "popularity")):
    """Return users' values in which the first system leads the second by a factor."""
    draws = np.random.default_rng(seed)
    base = draws.beta(1, 4, n)
    factors = dict(zip(systems, (1 + lead, 1.0, 0.4)))
    return {name: np.clip(base * factor + draws.normal(0, 0.02, n), 0, 1) for name, factor in factors.items()}


def several(*leads, **options):
    return cf.compare_datasets({f"d{k}": users(k, lead) for k, lead in enumerate(leads)}, **options)


@pytest.fixture(scope="module")
def five():
    return several(0.1, 0.4, -0.1, 0.3, 0.05)


def test_the_answer_makes_both_claims_in_at_most_25_words(five):
    answer = five.verdict[0]
    assert answer.startswith("On these five datasets ours is ")
    assert "for datasets like these it is not settled (" in answer
    assert len(answer.split()) <= 25


def test_a_lead_that_is_alike_everywhere_is_settled():
    result = several(0.3, 0.32, 0.28, 0.3, 0.31)
    assert "for datasets like these, too (" in result.verdict[0]
    assert len(result.verdict[0].split()) <= 25
    assert result.frame()["better"].to_list() == ["ours", "ours", "theirs"]


@pytest.mark.parametrize(
    ("leads", "said"),
    [
        ((0.1, 0.2), "ahead on both, and two say nothing of others"),
        ((0.3, -0.1), "ahead on one, and two say nothing of others"),
        ((0.1, 0.4, -0.2), "for datasets like these it is not settled"),
    ],
)
def test_what_few_datasets_tell(leads, said):
    result = several(*leads)
    assert said in result.verdict[0]
    row = result.frame().row(0, named=True)
    assert np.isnan(row["lower"]) == (len(leads) < 3)
    assert np.isnan(row["new_lower"])
    assert len(result.verdict[0].split()) <= 25


def test_the_verdict_says_what_would_settle_it_and_which_dataset_moves_it(five):
    said = " ".join(five.verdict)
    for part in ("such datasets would settle", "On a new dataset", "Without d", "Mean ranks over five datasets"):
        assert part in said


def test_every_fact_comes_back_from_json(five):
    for fact in five.facts():
        assert Fact.read(json.loads(json.dumps(fact.as_dict()))).sentence == fact.sentence


def test_frames_have_one_row_per_pair_and_per_dataset(five):
    assert len(five.frame()) == 3
    effects = five.effects()
    assert len(effects) == 15
    first = effects.filter(system_a="ours", system_b="theirs")
    assert first["effect"].mean() == pytest.approx(five.frame()["effect"][0])
    without = first.filter(pl.col("dataset") != "d1")["effect"].mean()
    assert first.filter(dataset="d1")["without"].item() == pytest.approx(without)
    assert five.ranks().columns == ["system", "mean_rank", "d0", "d1", "d2", "d3", "d4"]
    assert set(five.rules()["rule"]) == {"mean", "geometric", "rank", "wins", "copeland"}


def test_holm_corrects_over_all_pairs_or_over_those_with_the_baseline():
    result, with_baseline = several(0.1, 0.4, -0.1, 0.3), several(0.1, 0.4, -0.1, 0.3, baseline="popularity")
    assert result.frame()["p_corrected"].min() == pytest.approx(3 * result.frame()["p"].min())
    assert len(with_baseline.frame()) == 2
    assert with_baseline.frame()["p_corrected"].min() == pytest.approx(2 * with_baseline.frame()["p"].min())
    assert "popularity" in with_baseline.verdict[0]


def test_tables_name_the_reference_and_mark_what_is_settled():
    result = several(0.3, 0.32, 0.28, 0.3, 0.31)
    text = str(result)
    assert "value against ours" in text
    assert "theirs ‡" in text
    latex = result.to_latex()
    assert latex.count(r"\toprule") == 1
    assert r"\textbf{" in latex
    assert "theirs" in result.markdown()
    assert "<table>" in result._repr_html_()
    assert json.loads(json.dumps(result.as_dict()))["verdict"] == result.verdict


def test_a_family_counts_as_one_dataset():
    data = {
        name: users(k, lead)
        for k, (name, lead) in enumerate({"ml-1m": 0.1, "ml-100k": 0.2, "yelp": 0.3, "mine": 0.0}.items())
    }
    alone, joined = cf.compare_datasets(data), cf.compare_datasets(data, families={"ml-1m": "ml", "ml-100k": "ml"})
    assert joined.datasets == ("ml", "yelp", "mine")
    assert joined.frame()["datasets"].to_list() == [3, 3, 3]
    effects = alone.effects().filter(system_a="ours", system_b="theirs")["effect"].to_list()
    assert joined.frame()["effect"][0] == pytest.approx(np.mean([np.mean(effects[:2]), effects[2], effects[3]]))
    assert any("Warning: ml-1m and ml-100k come from one source (MovieLens)" in said for said in alone.verdict)
    assert any("counted as one dataset." in said for said in joined.verdict)
    apart = cf.compare_datasets(data, families={"ml-1m": "a", "ml-100k": "b"})
    assert not any("one source" in said for said in apart.verdict)


def test_known_families_are_recognised_by_name():
    names = ("ml-100k", "MovieLens 1M", "ml_20m", "amazon-books", "hetrec2011-lastfm", "movietweetings", "html")
    families = ["MovieLens", "MovieLens", "MovieLens", "Amazon", "Last.fm"]
    assert known_families({name: name for name in names}) == dict(zip(names, families))


def test_a_missing_cell_is_said_and_a_pair_uses_the_datasets_that_both_have():
    data = {f"d{k}": users(k, 0.1 * k) for k in range(5)}
    del data["d2"]["popularity"]
    result = cf.compare_datasets(data)
    assert result.frame()["datasets"].to_list() == [5, 4, 4]
    (said,) = [said for said in result.verdict if "no result" in said]
    assert "popularity on d2" in said
    assert "over the 4 of 5 that all have" in said
    assert "with a missing result as last, ours is first by mean rank" in said
    assert result.ranks().columns == ["system", "mean_rank", "d0", "d1", "d3", "d4"]


def test_an_average_of_zero_is_compared_by_differences_and_said():
    data = {f"d{k}": users(k, 0.1) for k in range(4)}
    data["d3"]["popularity"] = 0 * data["d3"]["popularity"]
    result = cf.compare_datasets(data)
    assert result.frame()["scale"].to_list() == ["ratio", "difference", "difference"]
    assert any("they are compared by differences" in said for said in result.verdict)
    assert any("fewer than 20 users have a value other than 0" in said for said in result.verdict)


@pytest.mark.parametrize("scale", ["difference", "effect"])
def test_other_scales_are_shown_as_numbers(scale):
    result = several(0.1, 0.4, -0.1, 0.3, 0.05, scale=scale)
    assert "%" not in result.verdict[0]
    assert result.frame()["scale"].unique().to_list() == [scale]


def test_if_the_weightings_disagree_both_are_said():
    means = pl.DataFrame(
        {
            "dataset": list("vwxyz"),
            "a": ["0.120 ± 0.0001", "0.105 ± 0.01", "0.098 ± 0.02", "0.122 ± 0.03", "0.109 ± 0.03"],
            "b": ["0.1 ± 0.0001"] * 5,
        }
    )
    equal, precise = (cf.compare_datasets(means, weights=weights) for weights in ("equal", "precision"))
    differs = [result.frame()["significant"][0] for result in (equal, precise)]
    said = [any("the answer differs" in part for part in result.verdict) for result in (equal, precise)]
    assert said == [differs[0] != differs[1]] * 2


def test_a_margin_adds_the_chances_of_a_lead_that_matters():
    result = several(0.1, 0.4, -0.1, 0.3, 0.05, margin="2%")
    row = result.frame().row(0, named=True)
    assert row["new_better"] + row["new_equal"] + row["new_worse"] == pytest.approx(1)
    assert any("By more than 2.0 %" in said for said in result.verdict)


def test_several_metrics_are_each_answered_and_descriptions_are_left_out():
    world = cf.simulate.world(users=120, items=60, ratings=2500, seed=1)
    data = {}
    for seed in range(3):
        split = cf.splits.random(world.ratings, train=0.7, seed=seed)
        runs = cf.recommend(split, ["popularity", "knn(k=5)"], length=10)
        data[f"s{seed}"] = cf.measure(runs, split.test, ["P@5", "nDCG@10", "EPC@10"], train=split.train)
    result = cf.compare_datasets(data)
    assert result.metrics == ("P@5", "nDCG@10")
    assert any(" by nDCG@10;" in said or " by nDCG@10 (" in said for said in result.verdict)
    assert cf.compare_datasets(data, metrics=["EPC@10"]).metrics == ("EPC@10",)


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        ({"x": users(0)}, {}, "there is 1 dataset, and one verdict is over several"),
        ({}, {}, "there are no datasets"),
        ({"x": users(0), "y": users(1, systems=("a", "b", "c"))}, {}, "no two systems have results by value on two of"),
        ({"x": users(0), "y": {"ours": ["a", "b"]}}, {}, "y: the values of 'ours' are not numbers"),
        ({"x": users(0), "y": users(1)}, {"scale": "log"}, "scale='log' is not one of"),
        ({"x": users(0), "y": users(1)}, {"metrics": "P@5"}, "there is no metric 'P@5' on x"),
        ({"x": users(0), "y": users(1)}, {"metrics": []}, "no metric was given"),
        ({"x": users(0), "y": users(1)}, {"baseline": "our"}, "there is no system 'our'"),
        ({"x": users(0), "y": users(1)}, {"families": {"z": "f"}}, "families: there is no dataset 'z'"),
        ({"x": users(0), "y": users(1)}, {"margin": "2%", "scale": "difference"}, "is a share"),
        ({"x": users(0), "y": users(1)}, {"average": "median"}, "datasets cannot be compared by average='median'"),
        (3, {}, "a int holds no datasets"),
    ],
)
def test_bad_input_is_refused_in_one_line(data, options, said):
    with pytest.raises(CranfieldError) as error:
        cf.compare_datasets(data, **options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_metrics_of_other_directions_are_refused():
    from dataclasses import replace

    from cranfield.comparisons import as_scores

    lower = replace(as_scores(users(1)), lower_is_better=(True,))
    with pytest.raises(CranfieldError, match="lower values of value are better on some datasets and worse on others"):
        cf.compare_datasets({"x": users(0), "y": lower})


def test_datasets_without_a_common_metric_are_refused():
    from dataclasses import replace

    from cranfield.comparisons import as_scores

    other = replace(as_scores(users(1)), metrics=("P@5",))
    with pytest.raises(CranfieldError, match="no metric in common"):
        cf.compare_datasets({"x": users(0), "y": other})


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(8))
def test_odd_tables_have_a_verdict_or_one_line_and_no_warning(seed):
    """Zeros, ties, negative values, missing cells and errors of 0, with every option."""
    draws = np.random.default_rng(seed)
    for _ in range(5):
        k, m = int(draws.integers(2, 6)), int(draws.integers(2, 5))
        values = draws.choice([0.1, 0.2, 0.3, 0.0, -0.1, 1e-9, 5.0], (k, m), p=[0.3, 0.2, 0.2, 0.1, 0.05, 0.05, 0.1])
        missing = draws.random((k, m)) < draws.choice([0, 0.3])
        error = draws.choice(["", " ± 0", " ± 0.01"])
        cells = [["-" if none else f"{value:g}{error}" for value, none in zip(*row)] for row in zip(values, missing)]
        columns = {f"s{j}": [row[j] for row in cells] for j in range(m)}
        options = {"weights": str(draws.choice(["equal", "precision"])), "margin": "2%"}
        options |= {"baseline": "s0"} if draws.random() < 0.5 else {}
        try:
            result = cf.compare_datasets(pl.DataFrame({"dataset": [f"ml-{i}" for i in range(k)], **columns}), **options)
        except CranfieldError:  # in one line: see below
            continue
        assert len(result.verdict[0].split()) <= 25
        assert "nan" not in " ".join(result.verdict)
        json.dumps(result.as_dict(), allow_nan=False)
        for kind in ("forest", "ranks", "rules"):
            assert result.plot(kind).to_dict(validate=False)


def test_a_system_without_any_result_comes_last():
    table = pl.DataFrame({"dataset": ["x", "y", "z"], "none": ["-"] * 3, "a": [0.1, 0.2, 0.3], "b": [0.2, 0.3, 0.5]})
    standing = cf.compare_datasets(table).standings[0]
    assert [standing.table.systems[place] for place in standing.order] == ["b", "a", "none"]
    assert standing.main == ("b", "a")


def test_the_answer_is_about_these_datasets_whatever_the_weights():
    a = ["0.150 ± 0.03", "0.155 ± 0.03", "0.145 ± 0.03", "0.099 ± 0.00001", "0.098 ± 0.00001"]
    table = pl.DataFrame({"dataset": list("vwxyz"), "a": a, "b": ["0.1 ± 0.00001"] * 5})
    equal, precise = (cf.compare_datasets(table, weights=weights) for weights in ("equal", "precision"))
    for result in (equal, precise):
        assert result.standings[0].answer.systems == ("a", "b")
        assert result.standings[0].answer.gain == pytest.approx(equal.frame()["effect"][0])
    differ = (equal.frame()["effect"][0] > 0) != (precise.frame()["effect"][0] > 0)
    assert any("the answer differs" in said for said in equal.verdict) == differ
