"""The study of Cañamares, Castells and Moffat (2020) on a small world, its numbers against measuring by hand."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm, ttest_rel

from cranfield import SettingError, measure, recommend, simulate
from cranfield._figures import definition, svg
from cranfield.data.filters import sample
from cranfield.recommenders import recommender
from cranfield.splits import random
from cranfield.studies import replicate
from cranfield.studies.canamares2020.claims import claims_of
from cranfield.studies.canamares2020.work import (
    AGREEMENT,
    CUTOFFS,
    FILLS,
    GAINED,
    NEIGHBOURS,
    OVERLAPS,
    RATIOS,
    SplitNumbers,
    SplitWork,
    factors,
    neighbours,
)  # fmt: skip

NDCG = "nDCG(gain=binary)@10"
SEEDS = 2


@pytest.fixture(scope="module")
def world():
    return simulate.world(users=50, items=60, ratings=1_500, seed=1).ratings


@pytest.fixture(scope="module")
def found(world, tmp_path_factory):
    out = tmp_path_factory.mktemp("canamares") / "out"
    return replicate("canamares2020", world, out=out, seeds=SEEDS, curve_seeds=1, figures=False)


@pytest.fixture(scope="module")
def start(world):
    """Return the first split of 0.5 and the whole lists of both systems."""
    split = random(world, train=0.5, seed=0)
    systems = {"kNN": recommender(neighbours(100)), "MF": recommender(factors(0))}
    return split, recommend(split, systems, "all", min_ratings=1)


def _numbers(found, part):
    return pl.read_parquet(found.folder / "measured" / "panel-1" / f"{part}" / "split-0.parquet")


def test_every_table_and_figure_of_the_paper_is_written(found):
    for number in range(1, 5):
        for ending in ("csv", "md", "tex"):
            assert (found.folder / "tables" / f"table-{number}.{ending}").read_text().strip()
    for number in range(1, 9):
        assert (found.folder / "figures" / f"figure-{number:02}.csv").read_text().strip()
    page = (found.folder / "report.html").read_text()
    assert all(one.claim in page for one in found.claims)


def test_table_2_has_the_mean_over_splits_with_its_range_and_students_p(found, world, start):
    split, runs = start
    scores = measure(runs, split.test, ["P@10", NDCG], threshold=4)
    first = _numbers(found, "start").filter(part="average", setting="AM, unweighted")
    for m, metric in enumerate(("P@10", NDCG)):
        values = np.nan_to_num(scores.values[:, m])
        own = first.filter(metric=metric)
        assert own["value"].to_list() == pytest.approx(values.mean(axis=1).tolist())
        assert own["p"][0] == pytest.approx(ttest_rel(*values).pvalue)
    row = found.exhibit("table-2").frame.filter(dataset=world.name, metric="Prec@10", what="MF").row(0, named=True)
    assert row["lowest"] <= row["here"] <= row["highest"]
    assert row["splits"] == SEEDS
    assert row["printed"] is None  # the ratings are not those of the paper


def test_datasets_that_are_absent_stand_as_not_run_beside_what_is_printed(found):
    frame = found.exhibit("table-2").frame.filter(dataset="Netflix", metric="NDCG@10")
    assert frame.select("what", "here", "printed").rows() == [
        ("kNN", None, 0.416),
        ("MF", None, 0.442),
        ("p", None, 0.0),
    ]
    assert "not run" in found.exhibit("table-2").table.text()
    assert "not run: MovieLens; Netflix; Netflix, k = 100, split of 0.8" in found.exhibit("figure-06").caption


def test_both_readings_of_the_second_gain_stand_in_table_3(found, start):
    split, runs = start
    spelled = {"g2 as printed": "RBP(p=0.8, gain=expfull)@10", "g2 of decision C2": "RBP(p=0.8, gain=exp1full)@10"}
    scores = measure(runs, split.test, list(spelled.values()), threshold=4)
    first = _numbers(found, "start").filter(part="gain")
    for m, spelling in enumerate(spelled.values()):
        assert first.filter(metric=spelling)["value"].to_list() == pytest.approx(
            scores.values[:, m].mean(axis=1).tolist()
        )
    assert set(spelled) <= set(found.exhibit("table-3").frame["gain"])


def test_the_geometric_mean_of_table_4_has_the_p_of_logarithms(found, start):
    split, runs = start
    values = measure(runs, split.test, ["P@10"], threshold=4).values[:, 0]
    logs = np.log(np.nan_to_num(values) + 0.01)
    row = _numbers(found, "start").filter(part="average", setting="GM, unweighted", metric="P@10")
    assert row["value"].to_list() == pytest.approx((np.exp(logs.mean(axis=1)) - 0.01).tolist())
    assert row["p"][0] == pytest.approx(ttest_rel(*logs).pvalue)


def test_positions_of_condensed_items_are_those_in_the_whole_lists(found, start):
    split, runs = start
    rated = {user: set(items) for user, items in split.test.frame().group_by("user").agg("item").iter_rows()}
    places = []
    for run in runs:
        by_user = run.frame().group_by("user", maintain_order=True).agg("item")
        places.append(
            {u: [k for k, i in enumerate(items, 1) if i in rated.get(u, ())][:10] for u, items in by_user.rows()}
        )
    both = [u for u in rated if all(len(one.get(u, ())) == 10 for one in places)]
    expected = [np.mean([one[u] for u in both], axis=0) for one in places]
    depth = _numbers(found, "start").filter(part="depth").sort("x", maintain_order=True)
    for system, positions in zip(("kNN", "MF"), expected):
        assert depth.filter(system=system)["value"].to_list() == pytest.approx(positions.tolist())


def test_the_curves_over_ratios_have_full_and_condensed_lists_and_the_unrated_share(found, world):
    split = random(world, train=0.8, seed=0)
    systems = {"kNN": recommender(neighbours(100)), "MF": recommender(factors(0))}
    condensed = recommend(split, systems, "all", min_ratings=1, lists="condensed")
    full = recommend(split, systems, 10, min_ratings=1)
    served = split.test.keep(split.train.user_counts[split.test.users] > 0)
    own = _numbers(found, "ratio-0.8")
    for setting, metric, runs in (("condensed", NDCG, condensed), ("full", NDCG, full), ("full", "Unjudged@10", full)):
        expected = measure(runs, served, [metric], threshold=4).average()[:, 0]
        assert own.filter(setting=setting, metric=metric)["value"].to_list() == pytest.approx(expected.tolist())
    assert found.exhibit("figure-02").frame["x"].unique().sort().to_list() == list(RATIOS)


def test_gaps_are_filled_on_half_of_the_ratings_for_all_users(found, world):
    half = sample(world, share=0.5, of="ratings", seed=0)
    assert len(half) == len(world) // 2
    split = random(half, train=0.5, seed=0)
    own = _numbers(found, "gaps")
    for name, fill in FILLS.items():
        run = recommend(split, neighbours(3), 10, lists="condensed", fill=fill)
        scores = measure(run, split.test, [NDCG], threshold=4)
        part = own.filter(setting=name, x=3.0)
        assert part.filter(metric=NDCG)["value"].item() == pytest.approx(scores.average().item())
        assert part.filter(metric="Coverage@10")["value"].item() == pytest.approx(scores.filled.item())
    assert own["x"].unique().sort().to_list() == list(NEIGHBOURS)


def test_the_reduced_average_is_over_users_with_neighbours_of_enough_overlap(found, start):
    split, _ = start
    run = recommend(split, neighbours(10, binary=True, overlap=10), 10, min_ratings=1)
    scores = measure(run, split.test, ["P@10"], threshold=4)
    own = _numbers(found, "overlap").filter(setting="as printed", x=10.0)
    expected = [scores.average().item(), scores.average(coverage="reduced").item(), scores.user_coverage.item()]
    assert own["value"].to_list() == pytest.approx(expected)
    assert expected[2] < 1


def test_a_second_run_trains_nothing_and_gives_the_same(found, world):
    before = len((found.folder / "log.jsonl").read_text().splitlines())
    again = replicate("canamares2020", world, out=found.folder, seeds=SEEDS, curve_seeds=1, figures=False)
    entries = [json.loads(line) for line in (found.folder / "log.jsonl").read_text().splitlines()[before:]]
    assert {one["did"] for one in entries if "artifact" in one} == {"kept"}
    assert again.frame().equals(found.frame())


def test_several_sets_of_ratings_are_panels(found, world):
    # The same ratings again, so nothing is trained for the second panel.
    two = replicate("canamares2020", [world, world], out=found.folder, seeds=SEEDS, curve_seeds=1, figures=False)
    assert two.exhibit("figure-04").frame["panel"].unique().sort().to_list() == [world.name, f"{world.name} (2)"]
    assert len(two.claims) == 2 * len(found.claims)
    assert two.claims[-1].claim.startswith(f"{world.name} (2): ")


def test_every_figure_can_be_drawn(found):
    for number in range(1, 9):
        chart = found.exhibit(f"figure-{number:02}").draw()
        titles = [panel["title"] for panel in definition(chart)["hconcat"]]
        assert titles[:3] == [found.step.settings["data"], "MovieLens", "Netflix"]
    assert "not run" in svg(chart)


@pytest.mark.parametrize(
    ("study", "options", "said"),
    [
        ("canamares2020", {"folds": 2}, "canamares2020 takes no folds; leave it out (it takes seeds, curve_seeds)"),
        ("canamares2020", {"seeds": 1, "curve_seeds": 2}, "curve_seeds=2 is more than seeds=1"),
        ("canamares2020", {"seeds": 0}, "seeds=0"),
        ("valcarce2018", {"seeds": 2}, "valcarce2018 takes no seeds"),
    ],
)
def test_options_of_another_study_are_refused(study, options, said, world, tmp_path):
    with pytest.raises(SettingError) as error:
        replicate(study, world, out=tmp_path / "out", figures=False, **options)
    assert said in str(error.value)


def test_a_study_without_ratings_is_refused(world, tmp_path):
    with pytest.raises(SettingError, match="a study needs ratings"):
        replicate("canamares2020", [], out=tmp_path / "out", figures=False)


def _as_printed(kind, flipped=False):
    """Return numbers of five splits of which the claims of the paper are true, or with kNN and MF exchanged.

    ``kind="against"`` replaces every value x by 0.9 − x, so that what is above or rises is below or falls.
    """
    draw = np.random.default_rng(0)
    names = ("MF", "kNN") if flipped else ("kNN", "MF")
    rows = []

    def add(part, setting, x, metric, knn, mf, error=1e-4):
        for seed in range(5):
            both = [value + draw.normal(0, 1e-5) for value in (knn, mf)]
            both = [0.9 - value for value in both] if kind == "against" else both
            p = 2 * norm.sf(abs(both[0] - both[1]) / error)
            rows.extend((part, setting, x, metric, name, value, p, error, seed) for name, value in zip(names, both))

    for ratio in RATIOS:
        lead = 0.05 * (0.5 - ratio) - (0.001 if ratio == 0.5 else 0)
        add("ratio", "full", ratio, NDCG, 0.45 - (ratio - 0.5) ** 2 + lead, 0.45 - (ratio - 0.5) ** 2)
        add("ratio", "full", ratio, "P@10", 0.41, 0.42)
        add("ratio", "full", ratio, "Unjudged@10", 0.6, 0.6)
        add("ratio", "condensed", ratio, NDCG, 0.5 + ratio / 5 + lead, 0.5 + ratio / 5)
    add("average", "AM, unweighted", 0.5, "P@10", 0.41, 0.42)
    add("average", "AM, unweighted", 0.5, NDCG, 0.45, 0.46)
    for average in ("AM, Test weighted", "AM, Test relevant"):
        for metric in ("P@10", NDCG):
            add("average", average, 0.5, metric, 0.6, 0.59)
    for metric in ("P@10", NDCG):
        add("average", "GM, unweighted", 0.5, metric, 0.3, 0.31)
    for spelling in ("P@10", NDCG, *GAINED.values()):
        add("gain", "full", 0.5, spelling, 0.4, 0.39)
    for metric in AGREEMENT:
        add("agreement", "condensed", 0.5, metric, 0.6, 0.59)
    for place in range(1, 11):
        knn, mf = (3.0, 3.1) if place < 4 else (6.0, 8.0)
        add("depth", "full", float(place), "position", knn * place, mf * place)
    for cutoff in CUTOFFS:
        add("cutoff", "full", float(cutoff), "NDCG@d", 0.5 - cutoff / 1000, 0.49)
    for fill in FILLS:
        for k in NEIGHBOURS:
            value = {"None": 0.1 * k**0.3, "Random": 0.4 + 0.01 * k**0.3}.get(fill, 0.8 - 0.01 * k**0.3)
            add("gaps", fill, float(k), NDCG, value, value)
    for setting in ("as printed", "liked items"):
        for overlap in OVERLAPS:
            for what, value in (("full", 0.4 - overlap / 500), ("reduced", 0.4 + overlap / 400),
                                ("User-coverage", 1 - overlap / 100)):  # fmt: skip
                add("overlap", setting, float(overlap), what, value, value)
    schema = ["part", "setting", "x", "metric", "system", "value", "p", "error", "seed"]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    # The three comparisons that are not significant in the paper.
    unclear = (pl.col("part") == "gain") & pl.col("metric").is_in([NDCG, GAINED["RBP", "g1"]])
    unclear |= (pl.col("setting") == "AM, Test weighted") & (pl.col("metric") == "P@10")
    if kind == "significance":
        frame = frame.with_columns(p=pl.when(unclear).then(0.5).otherwise(pl.col("p")))
    return frame


def _claims(world, frame):
    panel = SplitNumbers("ratings", SplitWork(world, 100, 4.0), None, frame)
    return {found.claim: found for found in claims_of([panel])}


def test_every_claim_holds_of_numbers_that_are_as_the_paper_says(world):
    found = _claims(world, _as_printed("plain"))
    wrong = {claim: str(one) for claim, one in found.items() if one.verdict != "holds"}
    assert {one.key for claim, one in found.items() if claim in wrong} <= {"significance", "correlation"}, wrong
    (three,) = [one for one in _claims(world, _as_printed("significance")).values() if one.key == "significance"]
    assert three.verdict == "holds"


def test_claims_about_who_leads_are_turned_round_with_the_systems(world):
    about_leads = {"start", "ratios smallest", "ratios below", "ratios above", "condensed below", "condensed crossing",
                   "depth MF", "cutoffs", "gain", "agreement", "average judged", "average relevant",
                   "average geometric", "opposite"}  # fmt: skip
    found = _claims(world, _as_printed("plain", flipped=True)).values()
    turned = {one.key for one in found if one.verdict == "does not hold"}
    assert about_leads <= turned


def test_no_claim_holds_of_numbers_that_say_the_opposite(world):
    found = _claims(world, _as_printed("against"))
    # What is about the size of a difference stays, and so do the three comparisons without a winner.
    stays = {"depth third", "gaps reach", "significance"}
    assert {one.key for one in found.values() if one.verdict in ("holds", "holds in part")} == stays


def test_margins_are_those_of_their_definitions(world):
    margins = {one.key: one.deciding.margin for one in _claims(world, _as_printed("plain")).values()}
    assert margins["gaps reach"] == pytest.approx(0.09 * (100**0.3 - 1), abs=1e-3)
    counts, liked = (np.bincount(world.users[keep], minlength=world.n_users) for keep in (..., world.values >= 4))
    assert margins["correlation"] == pytest.approx(np.corrcoef(counts, liked)[0, 1] - 0.962)
