"""The study of biases on a small world, against recommending and measuring by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield import SettingError
from cranfield._errors import ImpossibleSplitError
from cranfield._figures import definition
from cranfield.studies import replicate
from cranfield.studies.bellogin2017 import dataset_of, prepared, work
from cranfield.studies.bellogin2017.claims import claims_of
from cranfield.studies.bellogin2017.work import SYSTEMS, WHOLE, BiasNumbers, coin_folds, lemma_bounds

SPELLED = {
    "pLSA": "plsa(topics=3, iterations=5)", "MF (svd)": "svd(factors=3, epochs=3)",
    "MF (wrmf)": "wrmf(factors=3, iterations=2)", "kNN": "knn(k=5)", "Popularity": "popularity", "Random": "random",
    "kNN, normalised": "knn(k=5, normalised=true, min_neighbours=2)",
}  # fmt: skip


@pytest.fixture(scope="module")
def world():
    return cf.simulate.world(users=90, items=125, ratings=2_700, seed=1).ratings


@pytest.fixture(scope="module")
def plays(world):
    """Return play counts: most of them three and more."""
    counts = np.random.default_rng(3).geometric(0.2, len(world)).astype(np.float32)
    return replace(world, values=counts, name="plays")


@pytest.fixture(scope="module")
def found(world, plays, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "systems_of", lambda *_: dict(SPELLED))
        patch.setattr(work, "ALPHAS", (0.0, 2.0))
        patch.setattr(work, "SHARES", (1.0, 0.5))
        out = tmp_path_factory.mktemp("bellogin") / "out"
        both = [world, cf.filters.positives(plays, threshold=3)]
        return replicate("bellogin2017", both, out=out, folds=2, targets=12, threshold=3, figures=False)


def _numbers(found, unit, **wanted):
    frame = pl.read_parquet(found.folder / "measured" / "panel-1" / f"{unit}.parquet")
    rows = frame.filter(pl.col(name) == value for name, value in wanted.items())
    return dict(zip(rows["system"], rows["value"]))


def _by_hand(split, metric, lists, averaging):
    runs = [
        cf.recommend(split, {name: system}, "all", threshold=3, fill="random" if name in WHOLE else "none", **lists)[0]
        for name, system in SPELLED.items()
    ]
    scores = cf.measure(runs, split.test, metric, threshold=3, train=split.train)
    return dict(zip(scores.systems, scores.average("mean", undefined="zero", by="list", **averaging)[:, 0]))


@pytest.mark.parametrize(
    ("design", "lists", "averaging"),
    [
        ("AR AI-AN", {}, {}),
        ("AR TI-AN", {"candidates": "test"}, {}),
        ("1R", {"candidates": "test", "relevant": "one", "nonrelevant": 11}, {}),
        ("P1R", {"candidates": "group", "relevant": "one", "nonrelevant": 11}, {"groups": "equal"}),
    ],
)
@pytest.mark.parametrize("metric", ["P@10", "infAP", "nDCG(gain=relevant)@10"])
def test_a_design_of_a_fold_is_what_recommending_and_measuring_gives(found, world, design, lists, averaging, metric):
    split = coin_folds(world, 2, 0)[1]
    split = replace(split, item_groups=cf.splits.popularity_groups(world, 10))
    own = _numbers(found, "fold-2", part="design", setting=design, metric=metric, x=3.0)
    assert own == pytest.approx(_by_hand(split, metric, lists, averaging))


def test_the_head_leaves_the_test_part_and_the_candidates(found, world):
    split = coin_folds(world, 2, 0)[1]
    dropped = set(world.item_ids.all) - set(cf.filters.drop_head(world, share=0.1).item_ids.all)
    head = np.isin(world.item_ids.all.to_numpy(), list(dropped))
    split = replace(split, test=split.test.keep(~head[split.test.items]))
    own = _numbers(found, "fold-2", part="design", setting="1R -10% head", metric="P@10", x=3.0)
    lists = {"candidates": "test", "relevant": "one", "nonrelevant": 11}
    assert own == pytest.approx(_by_hand(split, "P@10", lists, {}))


@pytest.mark.parametrize(
    ("design", "lists"),
    [
        ("UAR", {"candidates": "test"}),
        ("AI-UAR", {}),
        ("U1R", {"candidates": "test", "relevant": "one", "nonrelevant": 11}),
    ],
)
def test_a_uniform_design_is_what_recommending_and_measuring_gives(found, world, design, lists):
    split = cf.splits.uniform_test(world, sigma=0.2, epsilon=0.2, seed=1)
    own = _numbers(found, "uniform-2", part="design", setting=design, metric="P@10", x=3.0)
    assert own == pytest.approx(_by_hand(split, "P@10", lists, {}))


def test_test_ratings_are_removed_before_target_sets_are_made(found, world):
    whole = _numbers(found, "fold-1", part="density", setting="AR", metric="P@10", x=1.0)
    assert whole == pytest.approx(_numbers(found, "fold-1", part="design", setting="AR TI-AN", metric="P@10", x=3.0))
    half = _numbers(found, "fold-1", part="density", setting="AR", metric="P@10", x=0.5)
    assert sum(half.values()) < sum(whole.values())


@given(seed=st.integers(0, 50), n=st.integers(1, 6))
def test_the_bounds_of_the_lemma_are_those_of_lists_made_by_hand_and_hold_1r_precision(seed, n):
    draw = np.random.default_rng(seed)
    users, ranks, lower, upper, one = [], [], 0, 0, 0
    for user in range(4):
        relevant, others = draw.random(draw.integers(1, 6)), draw.random(draw.integers(1, 8))
        everything = np.sort(np.concatenate([relevant, others]))[::-1]
        deepest = n + len(relevant) - 1
        lower += np.isin(everything[:n], relevant).sum()
        upper += np.isin(everything[:deepest], relevant).sum()
        own = [1 + int((others > score).sum()) for score in relevant]
        one += sum(rank <= n for rank in own)
        users += [user] * len(own)
        ranks += own
    found = lemma_bounds(np.array(users), np.array(ranks), n)
    expected = {"lower": lower, "1R": one, "upper": upper}
    assert found == pytest.approx({name: hits / (n * len(ranks)) for name, hits in expected.items()})
    assert found["lower"] <= found["1R"] <= found["upper"]


def test_measured_precision_with_one_relevant_item_lies_within_its_bounds(found):
    frame = found.exhibit("figure-03").frame.pivot(on="setting", index=["panel", "part", "x", "system"], values="value")
    assert len(frame) == 2 * 2 * (2 + 10)
    assert (frame["lower"] <= frame["1R"]).all()
    assert (frame["1R"] <= frame["upper"]).all()
    size = found.exhibit("figure-04").frame.filter(part="size", system="kNN").select("panel", "x", "value")
    bound = found.exhibit("figure-03").frame.filter(part="size", setting="1R", system="kNN")
    assert size["value"].to_list() == pytest.approx(bound["value"].to_list())


def test_every_table_and_figure_of_the_paper_is_there_and_can_be_drawn(found):
    names = {exhibit.name for exhibit in found.exhibits}
    assert {f"figure-{number:02}" for number in range(1, 10)} <= names
    assert (found.folder / "tables" / "figure-01.csv").read_text().startswith("design,set,relevant,non-relevant")
    for number in range(2, 10):
        exhibit = found.exhibit(f"figure-{number:02}")
        assert definition(exhibit.draw())["vconcat"]
        assert (found.folder / "figures" / f"{exhibit.name}.csv").read_text().strip()
    designs = found.exhibit("figure-08").frame
    assert set(designs["system"]) == set(SYSTEMS)
    assert designs["design"].n_unique() == 7
    assert set(found.exhibit("figure-02-significance").frame["design"]) == {"AR TI-AN", "AR AI-AN", "1R"}
    assert not found.exhibit("figure-09").frame.filter(metric="bpref", design="1R").height


def test_the_toy_example_has_the_sets_of_figure_1(found):
    sets = {tuple(row) for row in found.exhibit("figure-01").frame.rows()}
    assert ("AI-AR-AN", "T_u", "d e", "a b c") in sets
    assert ("TI-1R-AN", "T_u^2", "e", "b c") in sets


def test_claims_are_those_of_the_paper_each_with_its_numbers(found):
    claims = found.frame()
    own = claims.filter(pl.col("claim").str.starts_with("simulated world: "))
    assert len(own) == 37
    assert (claims["evidence"].str.count_matches(r"\d") > 0).all()
    assert set(claims["verdict"]) <= {"holds", "holds in part", "does not hold", "cannot tell"}
    positive = claims.filter(pl.col("claim").str.starts_with("plays: "))["claim"].str.slice(7).to_list()
    assert "bpref of random is high where nothing is negative: above kNN and MF" in positive
    assert "Where all ratings are positive, popularity drops to random in U1R" in positive
    assert not any("drags" in claim or "skewness" in claim for claim in positive)


def test_what_cannot_be_said_of_the_data_is_noted(found):
    notes = found.exhibit("numbers").table.notes
    assert any("lastfm-1k" in note and note.startswith("not run") for note in notes)
    assert any(note.startswith("plays: there are no non-positive ratings") for note in notes)
    assert json.loads((found.folder / "claims.json").read_text())["claims"]


def test_play_counts_are_kept_from_the_threshold_and_graded(plays):
    made = prepared(plays, threshold=3, play_counts=True, targets=12, folds=2, seed=0)
    assert len(made.data) == int((plays.values >= 3).sum())
    assert set(made.data.values.tolist()) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    assert made.positive
    assert (made.threshold, made.other) == (1.0, None)


@pytest.fixture
def play_split(tmp_path, monkeypatch):
    """Return the split of a small copy of Last.fm 1K: 40 listeners, 150 artists, 60,000 plays."""
    draw = np.random.default_rng(1)
    listeners, days = draw.integers(0, 40, 60_000), np.sort(draw.integers(0, 1_000, 60_000))
    order = np.argsort(draw.random((40, 150)), axis=1)  # in which a listener discovers artists
    artists = order[listeners, np.minimum(days // 8 + draw.geometric(0.2, 60_000), 149)]
    start = np.datetime64("2006-01-01T00:00:00")
    times = np.datetime_as_string(start + days.astype("timedelta64[D]"), unit="s")
    rows = zip(listeners.tolist(), times.tolist(), artists.tolist())
    name = "userid-timestamp-artid-artname-traid-traname.tsv"
    (tmp_path / name).write_text("".join(f"u{who}\t{when}Z\t\tartist {what}\t\tx\n" for who, when, what in rows))
    monkeypatch.setenv("CRANFIELD_CACHE", str(tmp_path / "cache"))
    train, test = cf.datasets.load_pair("lastfm-1k-temporal", from_path=tmp_path, verify=False)
    return cf.splits.predefined(train, test, overlap="train")


def test_the_extract_of_the_paper_is_divided_by_time_and_has_the_papers_settings(play_split):
    asked = {"threshold": None, "play_counts": None, "targets": 12, "folds": 2, "seed": 0}
    made = prepared(play_split, **asked)
    assert dataset_of(play_split) == "Last.fm (lastfm-1k)"
    assert made.positive
    assert (made.drawn, made.plain) == (2_500, "AR TI-NN")
    divided = made.divided
    assert len(divided.train) == int((play_split.train.values > 2).sum())
    assert not np.isin(_pair_names(divided.test), _pair_names(divided.train)).any()


@pytest.mark.slow
def test_the_extract_of_the_paper_is_ranked_among_drawn_items(play_split, tmp_path, monkeypatch):
    monkeypatch.setattr(work, "systems_of", lambda *_: dict(SPELLED))
    monkeypatch.setattr(work, "SHARES", (1.0, 0.5))
    found = replicate("bellogin2017", play_split, out=tmp_path / "out", folds=2, targets=12, figures=False)
    assert set(found.exhibit("figure-02").frame["design"]) == {"AR TI-NN", "1R"}
    assert not any("not run" in note for note in found.exhibit("numbers").table.notes)
    assert "not run" not in found.exhibit("figure-02").caption


def _pair_names(ratings):
    return np.char.add(ratings.users.astype(str), np.char.add(" ", ratings.items.astype(str)))


def test_curves_change_no_number_of_a_design(plays, monkeypatch):
    cheap = {
        **SPELLED,
        "pLSA": "popularity",
        "MF (svd)": "average",
        "MF (wrmf)": "average",
        "kNN": "popularity",
        "kNN, normalised": "average",
    }
    monkeypatch.setattr(work, "systems_of", lambda *_: cheap)
    monkeypatch.setattr(work, "SHARES", (1.0, 0.5))
    of_plays = prepared(plays, threshold=3, play_counts=True, targets=12, folds=2, seed=0)
    of_plays = replace(of_plays, nonrelevant=20)
    plain, curved = ([row for row in of_plays.fold(0, curves) if row[0] == "design"] for curves in (False, True))
    assert plain == curved  # if everything is positive, the threshold is 1, and so is the share of all test ratings


def test_folds_by_coins_are_parts_of_the_ratings(world):
    folds = list(coin_folds(world, 3, 7))
    assert sum(len(fold.test) for fold in folds) == len(world)
    assert len({len(fold.test) for fold in folds}) > 1


def test_rare_items_are_left_out_of_uniform_tests_only_where_there_is_no_solution(world):
    rare = [(f"u{place % 90}", f"rare{place}", 5.0) for place in range(900)]
    users, items, values = (list(column) for column in zip(*rare))
    frame = world.frame()
    more = cf.Ratings.of(
        [*map(str, frame["user"]), *users], [*map(str, frame["item"]), *items], [*frame["rating"], *values]
    )
    asked = {"threshold": 4, "play_counts": None, "targets": 12, "folds": 2, "seed": 0}
    assert prepared(world, **asked).dropped == 0
    made = prepared(more, **asked)
    assert made.dropped >= 900
    assert len(made.data) == len(more)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"targets": 13}, SettingError, "more than the 12 items of the smallest of 10 popularity percentiles; give"),
        ({"targets": 10}, SettingError, "targets=10 is not a whole number of at least 11"),
        ({"threshold": 6}, SettingError, "no rating reaches threshold=6, the highest is 5"),
        ({"folds": 1}, SettingError, "folds=1 is not"),
        ({"systems": ["kmm"], "targets": 12}, SettingError, "kmm"),
        ({"samples": 3}, SettingError, "takes no samples"),
    ],
)  # fmt: skip
def test_what_the_study_cannot_do_is_refused_before_anything_is_trained(world, tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        replicate("bellogin2017", world, out=tmp_path / "out", **options)


def test_ratings_without_a_uniform_test_are_refused(tmp_path):
    once = cf.Ratings.of([place % 40 for place in range(400)], list(range(400)), [5.0] * 400)
    with pytest.raises(ImpossibleSplitError, match="leaves no whole rating for each part"):
        replicate("bellogin2017", once, out=tmp_path / "out", targets=12)


# Numbers of five splits of which the claims of the paper are true, as it prints or describes them.
_P = {"pLSA": 0.20, "Popularity": 0.17, "MF (svd)": 0.15, "MF (wrmf)": 0.16, "kNN, normalised": 0.05, "kNN": 0.10,
      "Random": 0.01}  # fmt: skip
_UNIFORM = {**_P, "Popularity": 0.11}


def _numbers_as_printed(own, flip=1.0):
    """Return the numbers of a panel; with ``flip=-1`` every system is as far below .1 as it should be above."""
    draw, rows, error = np.random.default_rng(0), [], 1e-5

    def add(part, setting, x, metric, system, value):
        for seed in range(5):
            noisy = 0.1 + flip * (value - 0.1) + draw.normal(0, 1e-6)
            rows.append((part, setting, float(x), metric, system, noisy, None, error, seed))

    designs = {
        **dict.fromkeys((work.TI, work.AI, work.ONE, work.HEAD, work.AR), _P), work.UAR: _UNIFORM,
        work.PERCENTILE: {**_P, "Popularity": 0.0101}, work.U1R: {**_P, "Popularity": 0.0103},
        work.AI_UAR: {**_UNIFORM, "Random": 0.005},
    }  # fmt: skip
    designs[work.HEAD] = {**_P, "Popularity": 0.05}
    low = {"pLSA": 0.05, "Popularity": 0.04}
    for design, systems in designs.items():
        for system, value in systems.items():
            for at in own.thresholds:
                add("design", design, at, work.PRECISION, system, value)
            for metric in (work.BPREF, work.INFAP):
                add("design", design, own.threshold, metric, system, low.get(system, 0.3))
        for a, b in combinations(sorted(systems), 2):
            for at, metric in product(own.thresholds, (work.PRECISION, work.BPREF, work.INFAP)):
                rows.extend(("pair", design, at, metric, f"{a} | {b}", None, None, error, seed) for seed in range(5))
    add("expected", own.plain, own.threshold, work.PRECISION, "Random", _P["Random"])
    for system, value in _P.items():
        for share in (0.1, 0.5, 1.0):
            add("density", "AR", share, work.PRECISION, system, value * share)
            add("density", "AR", share, work.RECALL, system, value)
            add("density", "AR", share, work.MRR, system, value * share**0.5)
            add("density", "AR", share, work.NDCG, system, value * share**0.5)
            add("density", "1R", share, work.PRECISION, system, value)
        for size in (100, 500, 1_000):
            add("size", "1R", size, work.PRECISION, system, (1.0 if system == "Random" else 100 * value) / size)
        for alpha in (0.0, 1.0, 2.0):
            popular = {"Popularity": 0.0098 + 0.02 * alpha, "pLSA": 0.0098 + 0.02 * alpha}
            add("skew", "1R", alpha, work.PRECISION, system, popular.get(system, 0.01))
    for system in work.BOUNDED:
        for part, x, width in (("size", 100, 0.2), ("size", 1_000, 0.1), ("density", 0.1, 0.1), ("density", 1.0, 0.2)):
            add(f"bounds-{part}", "lower", x, work.PRECISION, system, 0.1)
            add(f"bounds-{part}", "upper", x, work.PRECISION, system, 0.1 + width)
    schema = {"part": pl.String, "setting": pl.String, "x": pl.Float64, "metric": pl.String, "system": pl.String,
              "value": pl.Float64, "p": pl.Float64, "error": pl.Float64, "seed": pl.Int64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


@pytest.fixture(scope="module")
def panel(world):
    return prepared(world, threshold=5, play_counts=False, targets=12, folds=5, seed=0)


def _verdicts(panel, frame):
    return {(one.key, one.claim): one.verdict for one in claims_of([BiasNumbers("ratings", panel, None, frame)])}


def test_every_claim_holds_of_numbers_that_are_as_the_paper_says(panel):
    wrong = {
        key: verdict for key, verdict in _verdicts(panel, _numbers_as_printed(panel)).items() if verdict != "holds"
    }
    assert {key for key, _ in wrong} == {"level"}  # popularity is a little above random in P1R and U1R, as printed
    assert set(wrong.values()) == {"does not hold"}


def test_claims_about_who_is_above_whom_fail_if_the_order_is_turned_round(panel):
    found = _verdicts(panel, _numbers_as_printed(panel, flip=-1.0))
    turned = {key for (key, _), verdict in found.items() if verdict == "does not hold"}
    assert {
        "best", "second", "MF svd", "MF wrmf", "MF normalised", "second normalised", "first", "UAR kNN",
        "UAR normalised", "uniform", "drag", "limits", "follows MRR", "follows nDCG", "bounds size", "bounds density",
    } <= turned  # fmt: skip
    # Ratios of leads stay as they are, and so do equalities and orders that are compared with themselves.
    stays = {"order", "head", "more left", "like popularity", "threshold", "expected", "like random"}
    assert {key for (key, _), verdict in found.items() if verdict == "holds"} == stays


def test_margins_are_those_of_their_definitions(panel):
    claims = claims_of([BiasNumbers("ratings", panel, None, _numbers_as_printed(panel))])
    margins = {one.key: one.deciding.margin for one in claims}
    expected = {"limits": 0.16 - 0.10, "head": (0.04 - 0.0003) / 0.16, "more left": 0.0002 / 0.16,
                "flatter": 0.1**0.5 - 0.1, "order": 0.1 * 0.01}  # fmt: skip
    assert {key: margins[key] for key in expected} == pytest.approx(expected, rel=1e-2)
