"""Splits of events: what repeats is divided, and each part is merged by itself."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf
from cranfield.experiments import search
from cranfield.rankings import measured_ratings
from cranfield.splits import apply, for_validation

DAY = 86_400
LOG = """a x 1 click, a x 1 purchase, a y 2 click, a x 5 click, a z 6 purchase, b x 2 click, b y 3 purchase,
b y 7 click, c z 4 click, c x 8 purchase, d y 9 click"""
WEIGHTS = {"click": 1, "purchase": 5}
METHODS = [
    "temporal(train=0.6)",
    "temporal(train=0.6, target=first)",
    "temporal(train=0.6, new_users=drop, new_items=drop)",
    "rolling(windows=2, horizon=8d)",
    "per_user(train=0.7, which=last)",
    "leave_out(l=2, which=last, short=train)",
    "per_user(train=0.7)",
    "random(train=0.7)",
    "random(train=0.7, exact=true, unit=event)",
    "k_fold(k=3)",
    "cold_users(users=0.3)",
    "cold_items(items=0.3)",
    "strong_generalisation(users=0.3)",
]
BY_TIME = METHODS[:4]


def toy(**reading):
    rows = [row.split() for row in LOG.split(",")]
    frame = pl.DataFrame(rows, schema=["user", "item", "day", "type"], orient="row")
    frame = frame.with_columns(time=pl.col("day").cast(pl.Int64) * DAY)
    return cf.read(frame, type="type", weights=WEIGHTS, **reading)


def log(seed, users=12, items=8, events=300, baskets=False):
    random = np.random.default_rng(seed)
    frame = {"user": random.integers(0, users, events), "item": random.integers(0, items, events)}
    frame |= {"rating": random.integers(1, 4, events), "time": random.integers(0, 30, events) * DAY}
    if baskets:
        frame["basket"] = frame["time"] // (3 * DAY)
    return pl.DataFrame(frame)


def rows(part):
    return sorted(part.rows().frame().rows())


def pairs(part):
    return dict(zip(part.frame().select("user", "item").rows(), part.values.tolist()))


def test_the_log_of_the_note_is_divided_and_merged_as_it_says():
    split = cf.splits.temporal(toy(), at=5 * DAY)
    assert pairs(split.train) == {("a", "x"): 6, ("a", "y"): 1, ("b", "x"): 1, ("b", "y"): 5, ("c", "z"): 1}
    test = {("a", "x"): 1, ("a", "z"): 5, ("b", "y"): 1, ("c", "x"): 5, ("d", "y"): 1}
    assert pairs(split.test) == test
    for rule, value in {"count": 2, "last": 5, "max": 5, "binary": 1}.items():
        assert pairs(cf.splits.temporal(toy(repeated=rule), at=5 * DAY).train)["a", "x"] == value


@pytest.mark.parametrize(
    ("repeats", "relevant"),
    [("exclude", "az cx dy"), ("allow", "ax az by cx dy"), ("only", "ax by"), ("hide", "ax az by cx dy")],
)
def test_repeats_decide_what_counts_and_what_is_recommended(repeats, relevant):
    split = cf.splits.temporal(toy(), at=5 * DAY)
    test = measured_ratings(split, repeats=repeats)
    assert {"".join(pair) for pair in pairs(test)} == set(relevant.split())
    (run,) = cf.recommend(split, "popularity", repeats=repeats)
    had = set(pairs(split.train))
    offered = {(user, item) in had for user, item in run.frame().select("user", "item").rows()}
    assert offered == {"exclude": {False}, "hide": {False}, "only": {True}, "allow": {False, True}}[repeats]


def test_the_threshold_of_events_is_the_smallest_that_counts():
    split = cf.splits.temporal(toy(), at=5 * DAY)
    scores = cf.measure(cf.recommend(split, "popularity", repeats="allow"), split.test, "P@2")
    assert scores.step.settings["threshold"] == 1


def test_what_repeats_measure_must_exist():
    split = cf.splits.random(toy(), train=0.5, exact=True)  # pairs are not divided
    with pytest.raises(cf.SettingError, match="no test item is a repeat, so repeats='only' measures nothing"):
        measured_ratings(split, repeats="only")
    with pytest.raises(cf.SettingError, match="repeats='exclude' recommends new items only, and keep_seen=True"):
        cf.recommend(cf.splits.temporal(toy(), at=5 * DAY), "popularity", keep_seen=True)


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 10**6), baskets=st.booleans())
def test_every_event_is_in_one_part_or_counted_as_unused(method, seed, baskets):
    frame = log(seed, baskets=baskets)
    ratings = cf.read(frame, repeated="sum/max", basket="basket" if baskets else None)
    everything = Counter(frame.select("user", "item", "rating", "time").rows())
    for split in apply(ratings, method, seed=1):
        parts = Counter(event for part in split.parts.values() for event in rows(part))
        unused = sum(split.step.effect.get(name, 0) for name in ("unused", "dropped", "outside_window"))
        assert parts <= everything
        assert parts.total() + unused == everything.total()
        assert split.step.effect["events"] == {name: len(part.events) for name, part in split.parts.items()}


@pytest.mark.parametrize("method", BY_TIME)
@given(seed=st.integers(0, 10**6), baskets=st.booleans())
def test_no_event_after_the_cut_is_in_training_and_none_before_it_in_the_test(method, seed, baskets):
    ratings = cf.read(log(seed, baskets=baskets), repeated="sum/max", basket="basket" if baskets else None)
    for split in apply(ratings, method, seed=1):
        train, test = split.train.events, split.test.events
        if not baskets:
            assert train.times.max() < test.times.min()
            continue
        # A basket is at the time of its last event, and never divided.
        assert not set(train.baskets) & set(test.baskets)
        latest = [np.max(part.times[part.baskets == basket]) for part in (train, test) for basket in set(part.baskets)]
        cut = sorted(latest)[len(set(train.baskets)) - 1]
        assert max(latest[: len(set(train.baskets))]) <= cut < min(latest[len(set(train.baskets)) :])


@pytest.mark.parametrize("rule", ["sum", "max", "last", "first", "mean", "count", "binary"])
@given(seed=st.integers(0, 10**6))
def test_parts_are_merged_as_in_a_plain_loop(rule, seed):
    split = cf.splits.temporal(cf.read(log(seed), repeated=rule), train=0.6)
    for part in split.parts.values():
        groups = {}
        for user, item, value, time in rows(part):
            groups.setdefault((user, item), []).append((time, value))
        merge = {
            "sum": lambda events: sum(value for _, value in events),
            "max": lambda events: max(value for _, value in events),
            "last": lambda events: max(events)[1],
            "first": lambda events: min(events)[1],
            "mean": lambda events: np.mean([value for _, value in events]),
            "count": len,
            "binary": lambda _: 1,
        }[rule]
        assert pairs(part) == pytest.approx({pair: merge(events) for pair, events in groups.items()}, rel=1e-6)


@given(seed=st.integers(0, 10**6))
def test_the_order_of_rows_does_not_matter(seed):
    frame = log(seed)
    found = [
        [part.fingerprint for split in apply(cf.read(rows, repeated="last"), "temporal(train=0.6)") for part in split]
        for rows in (frame, frame.sort("item"), frame.reverse(), frame.sample(fraction=1, shuffle=True, seed=3))
    ]
    assert all(one == found[0] for one in found)


@given(seed=st.integers(0, 10**6))
def test_without_repeats_nothing_is_an_event(seed):
    frame = log(seed).unique(["user", "item"], maintain_order=True)
    plain, merged = cf.read(frame), cf.read(frame, repeated="sum")
    assert plain.events is None is merged.events
    for method in METHODS:
        one, other = (apply(ratings, method, seed=2)[0] for ratings in (plain, merged))
        assert [part.fingerprint for part in one] == [part.fingerprint for part in other]
        assert one.step.settings == other.step.settings


def test_leaving_the_last_basket_out_leaves_its_items_as_the_test():
    frame = log(17, baskets=True)
    split = cf.splits.leave_out(cf.read(frame, basket="basket"), l=1, which="last", short="train")
    last = frame.group_by("user").agg(pl.col("basket").max(), pl.col("basket").n_unique().alias("n"))
    expected = frame.join(last.filter(pl.col("n") > 1), on=["user", "basket"])
    assert set(pairs(split.test)) == set(expected.select("user", "item").unique().rows())
    assert split.step.settings["unit"] == "basket"


def test_the_next_basket_after_a_cut_is_the_first_of_each_user():
    frame = log(19, baskets=True)
    cut = 15 * DAY
    split = cf.splits.temporal(cf.read(frame, basket="basket"), at=cut, target="first")
    times = frame.group_by("user", "basket").agg(pl.col("time").max().alias("at")).filter(pl.col("at") >= cut)
    first = times.group_by("user").agg(pl.col("basket").min())
    expected = frame.join(first, on=["user", "basket"]).select("user", "item").unique().rows()
    assert set(pairs(split.test)) == set(expected)


def test_baskets_without_times_are_in_the_order_of_their_numbers():
    frame = log(23, baskets=True).drop("time", "rating")
    split = cf.splits.leave_out(cf.read(frame, basket="basket"), l=1, which="last", short="train")
    last = frame.group_by("user").agg(pl.col("basket").max(), pl.col("basket").n_unique().alias("n"))
    expected = frame.join(last.filter(pl.col("n") > 1), on=["user", "basket"]).select("user", "item").unique()
    assert set(pairs(split.test)) == set(expected.rows())


@pytest.mark.parametrize(
    ("reading", "message"),
    [
        ({"basket": "type"}, "the baskets have no order: there are no times, and 'a' is not a whole number"),
        ({"type": "type"}, "types of events need weights"),
        ({"weights": {"a": 1}}, "weights are those of types of events; name their column with type=NAME"),
        ({"type": "type", "weights": {"a": 1}}, "row 2, column 'type': the type 'b' has no weight"),
        ({"session_gap": "30min"}, "sessions need times"),
        ({"repeated": "sums"}, "repeated='sums' is not known; did you mean 'sum'"),
    ],
)
def test_mistakes_are_one_line(reading, message):
    frame = {"user": [1, 1], "item": [1, 1], "type": ["a", "b"]}
    with pytest.raises(cf.CranfieldError, match=message):
        cf.read(frame, **reading)


def test_a_unit_that_the_data_do_not_have_is_refused():
    with pytest.raises(cf.errors.ImpossibleSplitError, match="unit=basket needs baskets or sessions"):
        cf.splits.leave_out(toy(), l=1, which="last", unit="basket")
    with pytest.raises(cf.SettingError, match="no unit=user; the splits cold_users and strong_generalisation"):
        cf.splits.random(toy(), unit="user")


def test_a_longer_pause_starts_a_session():
    frame = {"user": [1, 1, 1], "item": [1, 2, 3], "time": [0, 100, 10_000]}
    ratings = cf.read(frame, session_gap="30min")
    assert ratings.events.baskets.tolist() == [0, 0, 1]


def wrong(check):
    return {finding.about for finding in check.findings if finding.level == "wrong"}


def test_a_check_of_events_calls_repeats_a_fact_and_finds_planted_leaks():
    frame = log(29)
    split = cf.splits.temporal(cf.read(frame, repeated="sum/max"), train=0.6)
    fine = cf.check_split(split)
    assert not fine.wrong
    assert fine.counts["repeats"]["repeated"] == int(split.repeated.sum()) > 0
    cut = int(split.test.events.times.min())
    before, after = frame.filter(pl.col("time") < cut), frame.filter(pl.col("time") >= cut)
    by_rule = {"repeated": "sum", "promise": "global"}
    assert not cf.check_split(before, after, **by_rule).wrong
    # An event in both parts; an event of the test period in training; one of the training period in the test.
    assert wrong(cf.check_split(before, pl.concat([after, before[:1]]), **by_rule)) >= {"overlap"}
    assert "overlap" not in wrong(cf.check_split(pl.concat([before, after[-1:]]), after[:-1], **by_rule))
    assert wrong(cf.check_split(pl.concat([before, after[-1:]]), after[:-1], **by_rule))
    assert wrong(cf.check_split(before[:-1], pl.concat([after, before[-1:]]), **by_rule))
    # For ratings, a pair in both parts stays wrong.
    assert wrong(cf.check_split(before, after, promise="global")) >= {"overlap", "repeated pairs"}


def test_a_training_event_after_the_cut_is_found_even_if_its_pair_was_merged():
    train = pl.DataFrame({"user": [1, 1, 2], "item": [1, 1, 2], "time": [1, 9, 2]})
    test = pl.DataFrame({"user": [1, 2], "item": [2, 1], "time": [5, 6]})
    found = cf.check_split(train, test, repeated="first", promise="global")
    assert found.counts["leakage"]["own"] == 1
    assert found.wrong


def test_lists_from_elsewhere_are_measured_by_what_counts_and_not_called_wrong():
    frame = log(31)
    split = cf.splits.temporal(cf.read(frame, repeated="sum/max"), train=0.6)
    runs = cf.recommend(split, ["popularity", "knn(k=3)"], repeats="allow", length=5)
    files = {run.name: run.frame().select("user", "item", "rank") for run in runs}
    plain, train = split.test, split.train
    plain = cf.read(plain.frame())  # a test set by itself
    values = {}
    for repeats in ("exclude", "allow", "only"):
        scores = cf.measure(files, plain, "Recall@5", train=train, repeats=repeats)
        values[repeats] = scores.values[:, 0]
        here = cf.measure(runs, measured_ratings(split, repeats=repeats), "Recall@5", train=train)
        np.testing.assert_allclose(scores.values, here.values)
        assert not scores.warnings
    said = " ".join(map(str, cf.measure(files, plain, "Recall@5", train=train).warnings))
    assert "if they are events that repeat, say what counts with repeats=exclude" in said
    assert "not in the test set" not in said
    with pytest.raises(cf.SettingError, match="repeats='only' needs the training ratings"):
        cf.measure(files, plain, "Recall@5", repeats="only")


def test_the_segment_of_repeats_has_the_recall_of_each_kind():
    split = cf.splits.temporal(cf.read(log(37), repeated="sum/max"), train=0.6)
    runs = cf.recommend(split, "popularity", repeats="allow", length=5)
    by = cf.measure_segments(runs, split.test, "Recall@5", by="repeats", train=split.train)
    found = {row["group"]: row["mean"] for row in by.frame().to_dicts()}
    for name, repeats in (("repeated", "only"), ("new", "exclude")):
        alone = cf.measure(runs, split.test, "Recall@5", train=split.train, repeats=repeats)
        assert found[name] == pytest.approx(float(alone.frame(undefined="leave out")["mean"][0]))


def test_the_share_of_repeats_in_a_list_is_that_of_training_items():
    split = cf.splits.temporal(cf.read(log(41), repeated="sum/max"), train=0.6)
    (run,) = cf.recommend(split, "popularity", repeats="allow", length=5)
    scores = cf.measure(run, split.test, "RepeatShare@3", train=split.train)
    had = set(split.train.frame().select("user", "item").rows())
    lists = run.frame().filter(pl.col("rank") <= 3).group_by("user").agg(pl.col("item"))
    expected = {user: np.mean([(user, item) in had for item in items]) for user, items in lists.rows()}
    found = dict(zip(scores.user_ids.ids(scores.users).to_list(), scores.values[0, 0].tolist()))
    assert {user: share for user, share in found.items() if share == share} == pytest.approx(
        {user: expected[user] for user in found if user in expected}
    )


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_parts_in_files_keep_their_events_and_the_threshold_of_events(tmp_path, format):
    frame = log(43, baskets=True)
    split = cf.splits.temporal(cf.read(frame, repeated="sum/max", basket="basket"), train=0.6)
    cf.splits.write(split, tmp_path, format=format)
    train, test = (cf.read(tmp_path / f"{name}.{format}") for name in ("train", "test"))
    assert train.compact().fingerprint == split.train.compact().fingerprint
    assert train.events.merging == split.train.events.merging
    assert pairs(test) == pairs(split.test)
    runs = cf.recommend(train, "popularity", repeats="allow")
    scores = cf.measure(runs, str(tmp_path / f"test.{format}"), "P@3", train=train, repeats="allow")
    assert scores.step.settings["threshold"] == 1.0
    assert not cf.check_split(tmp_path).wrong


def test_counts_that_become_ratings_do_so_in_each_part_by_itself():
    frame = log(47).drop("rating")
    split = cf.splits.temporal(cf.read(frame, repeated="sum", counts="to_ratings"), train=0.6)
    for part in split.parts.values():
        counts = cf.read(part.rows().frame().select("user", "item", "time"), repeated="count", time=False)
        assert pairs(part) == pairs(cf.data.counts_to_ratings(counts))
    assert cf.measure(cf.recommend(split, "popularity"), split.test, "P@3").step.settings["threshold"] == 4.0


@pytest.mark.parametrize("repeats", ["exclude", "allow", "only"])
def test_a_search_on_events_counts_what_the_test_counts(repeats):
    split = cf.splits.temporal(cf.read(log(53, users=40, items=25, events=3000), repeated="sum/max"), train=0.8)
    (inner,) = for_validation(split)
    spelled = ["knn(k=2)", "knn(k=10)"]
    runs = cf.recommend(inner, spelled, repeats=repeats)
    values = cf.measure(runs, measured_ratings(inner, repeats=repeats), "nDCG@5", threshold=1).average()[:, 0]
    found = search(split, "knn", {"k": [2, 10]}, "nDCG@5", repeats=repeats, threshold=1)
    assert [trial.value for trial in found.trials] == pytest.approx(values.tolist())


def test_parts_of_events_from_elsewhere_may_share_pairs():
    split = cf.splits.temporal(cf.read(log(59), repeated="sum/max"), train=0.6)
    given = cf.splits.predefined(split.train, split.test)
    assert given.repeated.tolist() == split.repeated.tolist()
    assert not cf.check_split(split.train, split.test).counts["overlap"]["train and test"]


def test_the_bias_of_lists_with_repeats_is_relative_to_all_items():
    split = cf.splits.temporal(cf.read(log(61, users=40, items=25, events=3000), repeated="sum/max"), train=0.8)
    runs = cf.recommend(split, "knn(k=5)", repeats="allow")
    found = cf.bias(runs=runs, test=split.test, train=split.train, repeats="allow", metric="P@5")
    alone = cf.ratio_to_random(runs, split.test, "P@5", train=split.train, repeats="allow")
    random = found.ratios.frame().filter(system="knn(k=5)")["random"].item()
    assert random == pytest.approx(alone.frame()["random"].item())
    assert "they count here" in " ".join(
        map(str, cf.measure(runs, split.test, "P@5", train=split.train, repeats="allow").notes)
    )


def test_a_user_with_one_basket_is_an_error_or_stays_in_training():
    frame = {"user": [1, 1, 1, 1, 2, 2], "item": [*"xyxzxy"], "basket": [1, 1, 2, 3, 1, 1]}
    ratings = cf.read(frame, basket="basket")
    with pytest.raises(cf.errors.ImpossibleSplitError, match="1 of 2 users have fewer than the 2 baskets for"):
        cf.splits.leave_out(ratings, l=1, which="last")
    split = cf.splits.leave_out(ratings, l=1, which="last", short="train")
    assert set(pairs(split.test)) == {(1, "z")}


def had_by(split):
    return set(split.train.frame().select("user", "item").rows())


@given(seed=st.integers(0, 10**6))
def test_contributions_of_repeated_and_new_items_add_up_to_recall(seed):
    split = cf.splits.temporal(cf.read(log(seed), repeated="sum/max"), train=0.6)
    runs = cf.recommend(split, ["popularity", "topfreq"], repeats="allow", length=5)
    metrics = ["Contribution(of=repeated)@3", "Contribution(of=new)@3", "Recall@3"]
    scores = cf.measure(runs, split.test, metrics, train=split.train, threshold=1)
    np.testing.assert_allclose(scores.values[:, 0] + scores.values[:, 1], scores.values[:, 2])
    had, relevant = had_by(split), set(pairs(split.test))
    (run, _) = runs
    hits = Counter(pair[0] for *pair, rank in run.frame().select("user", "item", "rank").rows()
                   if rank <= 3 and tuple(pair) in had & relevant)  # fmt: skip
    sizes = Counter(user for user, _ in relevant)
    own = dict(zip(scores.user_ids.ids(scores.users).to_list(), scores.values[0, 0]))
    assert own == pytest.approx({user: hits[user] / size for user, size in sizes.items()})


@given(seed=st.integers(0, 10**6))
def test_what_is_said_of_repeats_is_counted_as_defined(seed):
    split = cf.splits.temporal(cf.read(log(seed), repeated="sum/max"), train=0.6)
    had, items = had_by(split), {}
    for user, item in pairs(split.test):
        items.setdefault(user, set()).add(item)
    old = {user: {item for item in own if (user, item) in had} for user, own in items.items()}

    def said(repeats):
        (run,) = cf.recommend(split, "popularity", repeats=repeats)
        frame = run.frame().filter(pl.col("rank") <= 3)
        scores = cf.measure(run, split.test, "Recall@3", train=split.train, repeats=repeats, threshold=1)
        return scores, {user: set(lists["item"]) for (user,), lists in frame.group_by("user")}

    scores, _ = said("hide")
    most = np.mean([min(3, len(own - old[user])) / len(own) for user, own in items.items()])
    assert scores.warnings[0].most == (("Recall@3", pytest.approx(most)),)
    assert scores.average()[0, 0] <= most + 1e-12
    scores, _ = said("only")
    sizes = Counter(user for user, _ in had)
    random = np.mean([min(1, 3 / sizes[user]) for user, own in old.items() if own])
    assert scores.notes[-1].random == (("Recall@3", pytest.approx(random)),)
    counted = next(note for note in scores.notes if hasattr(note, "again"))
    with_old = sum(bool(own) for own in old.values())
    assert (counted.users, counted.counted, counted.again) == (len(items), with_old, with_old)
    scores, lists = said("allow")
    of_system = scores.notes[-1]
    shares = [np.mean([(user, item) in had for item in lists[user]]) for user in items if user in lists]
    kinds = [{user: own[user] for user in items if own[user]} for own in (old, {u: items[u] - old[u] for u in items})]
    recalls = [np.mean([len(lists.get(u, set()) & own) / len(own) for u, own in kind.items()]) for kind in kinds]
    assert (of_system.share, of_system.repeated, of_system.new) == pytest.approx((np.mean(shares), *recalls))


def test_a_folder_of_parts_says_how_many_events_were_divided(tmp_path):
    split = cf.splits.temporal(cf.read(log(67), repeated="sum/max"), train=0.6)
    assert len(split.test.events) > len(split.test)
    cf.splits.write(split, tmp_path)
    assert cf.check_split(tmp_path).counts["repeats"]["events"] == split.step.effect["events"]


def test_baskets_out_of_order_are_counted_and_weights_recorded():
    frame = {"user": [1, 1, 2, 2, 3, 3], "item": [*"xyxyxy"], "time": [9, 3, 5, 5, 1, 2], "basket": [1, 2, 1, 2, 1, 2]}
    step = cf.read({**frame, "type": [*"ababab"]}, basket="basket", type="type", weights={"a": 1, "b": 2}).history[0]
    said = " ".join(map(str, step.notes))
    assert "1 user with several baskets at the same time" in said
    assert "1 user with baskets whose numbers run against their times" in said
    assert step.settings["weights"] == {"a": 1, "b": 2}
    assert cf.read({**frame, "time": [1, 2] * 3}, basket="basket").history[0].notes[1:] == step.notes[:1]
