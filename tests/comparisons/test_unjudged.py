"""What unjudged items can do to a comparison, against the definition on random lists."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.comparisons.unjudged import Unjudged

FIRST, SECOND = np.array([0]), np.array([1])


def test_the_tipping_point_of_the_published_case():
    # A lead of .1090 with .486 and .877 of the entries unjudged; .364 of the judged ones are liked.
    judged = np.array([1 - 0.486, 1 - 0.877])
    liked = (judged.sum() * 0.364 + np.array([0.1090, -0.1090])) / 2
    tipping = Unjudged(liked, judged, 1 - judged).tipping(FIRST, SECOND)
    assert [round(float(part[0]), 3) for part in (tipping.share, tipping.rate, tipping.ratio)] == [0.279, 0.364, 0.766]


def of_lists(lists: dict, liked: set, judged: set, k: int) -> dict[str, tuple[int, int, int]]:
    """Return the numbers of liked, judged and unjudged entries of each system, straight from the lists."""
    counts = {}
    for system, own in lists.items():
        entries = [(user, item) for user, items in own.items() for item in items[:k]]
        known = [pair for pair in entries if pair in judged]
        counts[system] = (sum(pair in liked for pair in known), len(known), len(entries) - len(known))
    return counts


def of_users(lists: dict, test: cf.Ratings, users: list[str]) -> cf.Scores:
    """Return the scores of some of the users."""
    rows = test.frame().filter(pl.col("user").is_in(users))
    part = cf.Ratings.of(rows["user"], rows["item"], rows["rating"])
    own = {system: {user: own[user] for user in users if user in own} for system, own in lists.items()}
    return cf.measure(own, part, "P@5", threshold=4)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("parts", [1, 2])
def test_entries_and_ratio_equal_a_count_over_the_lists(seed, parts):
    rng = np.random.default_rng(seed)
    users, items = [f"u{n}" for n in range(7)], [f"i{n:02}" for n in range(12)]
    judged = {(user, item) for user in users for item in items if rng.random() < 0.5}
    grades = {pair: int(rng.integers(1, 6)) for pair in sorted(judged)}
    test = cf.Ratings.of([u for u, _ in grades], [i for _, i in grades], list(grades.values()))
    # Lists of different lengths, and a user without one.
    lists = {
        system: {user: list(rng.permutation(items)[: rng.integers(1, 9)]) for user in users[place:]}
        for place, system in enumerate("ab")
    }
    scores = cf.Scores.join([of_users(lists, test, users[part::parts]) for part in range(parts)])
    entries = Unjudged.of(scores, "P@5")
    counts = of_lists(lists, {pair for pair, grade in grades.items() if grade >= 4}, judged, 5)
    places = 5 * scores.n_lists
    for place, system in enumerate("ab"):
        found = [float(part[place]) * places for part in (entries.liked, entries.judged, entries.unjudged)]
        np.testing.assert_allclose(found, counts[system], atol=1e-9)
    if counts["a"][2] == counts["b"][2]:
        return
    winner, loser = (0, 1) if counts["a"][2] < counts["b"][2] else (1, 0)
    (w_liked, w_judged, w_un), (l_liked, l_judged, l_un) = counts["ab"[winner]], counts["ab"[loser]]
    share = (w_liked - l_liked) / (l_un - w_un)
    tipping = entries.tipping(np.array([winner]), np.array([loser]))
    assert tipping.share[0] == pytest.approx(share)
    assert tipping.ratio[0] == pytest.approx(share / ((w_liked + l_liked) / (w_judged + l_judged)))


@pytest.mark.parametrize("seed", range(200))
def test_the_ratio_is_below_one_exactly_if_the_loser_has_the_higher_precision_among_judged_entries(seed):
    rng = np.random.default_rng(seed)
    judged = rng.random(2)
    liked = judged * rng.random(2)
    if judged[0] < judged[1]:
        judged, liked = judged[::-1], liked[::-1]
    tipping = Unjudged(liked, judged, 1 - judged).tipping(FIRST, SECOND)
    assert (tipping.ratio[0] < 1) == (liked[1] / judged[1] > liked[0] / judged[0])


def test_nothing_can_be_reversed_if_the_loser_has_no_more_unjudged_items():
    tipping = Unjudged(np.array([0.3, 0.2]), np.array([0.5, 0.6]), np.array([0.5, 0.4])).tipping(FIRST, SECOND)
    assert np.isinf(tipping.ratio[0])


def test_without_a_judged_entry_there_is_no_ratio():
    nothing = np.zeros(2)
    assert np.isnan(Unjudged(nothing, nothing, np.array([1.0, 0.5])).tipping(FIRST, SECOND).ratio[0])


def test_without_a_disliked_item_the_ratio_is_one_whatever_the_lists():
    liked = np.array([0.4, 0.1])
    entries = Unjudged(liked, liked, 1 - liked)
    assert entries.all_liked
    assert entries.tipping(FIRST, SECOND).ratio[0] == pytest.approx(1)


@pytest.mark.parametrize("metric", ["RMSE", "P(condensed=true)@2", "EPC@2"])
def test_metrics_that_unjudged_items_do_not_lower_have_no_entries(metric):
    test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [5, 1, 5])
    train = cf.Ratings.of(["ann", "bob", "bob"], ["w", "y", "w"], [5, 1, 5])
    lists = {
        "a": {"ann": [("x", 4.0), ("z", 3.0)], "bob": [("x", 4.0)]},
        "b": {"ann": [("y", 5.0)], "bob": [("z", 1.0)]},
    }
    scores = cf.measure(lists, test, metric, threshold=4, train=train)
    assert Unjudged.of(scores, scores.metrics[0]) is None


def shop(seed: int = 0, users: int = 400) -> tuple[dict, cf.Ratings, dict[str, float]]:
    """Return lists of production and of a better candidate, clicks on production's lists, and true precisions."""
    rng = np.random.default_rng(seed)
    likes = rng.random((users, 60)) < 0.35
    lists = {"production": {}, "candidate": {}}
    for user in range(users):
        lists["production"][f"u{user}"] = rng.permutation(60)[:10]
        # The candidate knows some of what the user likes; it shares a few places with production.
        own = np.concatenate(
            [lists["production"][f"u{user}"][:3], np.flatnonzero(likes[user])[:5], rng.permutation(60)[:9]]
        )
        lists["candidate"][f"u{user}"] = own[np.sort(np.unique(own, return_index=True)[1])][:10]
    true = {
        name: float(np.mean([likes[int(u[1:]), items].mean() for u, items in own.items()]))
        for name, own in lists.items()
    }
    seen = [
        (u, f"i{i:02}", 1 if likes[int(u[1:]), i] else 0) for u, items in lists["production"].items() for i in items
    ]
    named = {name: {u: [f"i{i:02}" for i in items] for u, items in own.items()} for name, own in lists.items()}
    return named, cf.Ratings.of(*zip(*[row for row in seen if rng.random() < 0.6])), true


def test_nobody_is_called_better_on_the_clicks_that_production_collected():
    lists, clicks, true = shop()
    assert true["candidate"] > true["production"]
    compared = cf.compare(cf.measure(lists, clicks, "P@10", threshold=1))
    row = compared.frame(detail=True).row(0, named=True)
    assert row["significant"]
    assert row["better"] is None
    assert row["tipping_ratio"] < 1
    assert compared.verdict[0].startswith("P@10: production leads on these judgments; which is better cannot be told")
    assert len(compared.verdict[0].removeprefix("P@10: ").split()) <= 25
    assert any("the order is reversed" in said for said in compared.verdict[1:])
    assert compared.better("production", than="candidate").outcome == "undecided"
    assert compared.no_worse("candidate", than="production", by="1%").outcome == "undecided"


def test_by_the_judgments_alone_only_if_asked():
    lists, clicks, _ = shop()
    compared = cf.compare(cf.measure(lists, clicks, "P@10", threshold=1), unjudged="ignore")
    assert compared.frame(detail=True)["better"].item() == "production"
    assert compared.better("production", than="candidate")
    assert "beats" in compared.verdict[0]


def test_with_complete_judgments_the_better_system_is_called_better():
    lists, _, true = shop()
    rng = np.random.default_rng(0)
    likes = rng.random((400, 60)) < 0.35
    pairs = [(f"u{u}", f"i{i:02}", int(likes[u, i])) for u in range(400) for i in range(60)]
    compared = cf.compare(cf.measure(lists, cf.Ratings.of(*zip(*pairs)), "P@10", threshold=1))
    assert compared.frame(detail=True)["better"].item() == max(true, key=true.get)
    assert not any("judgments" in said for said in compared.verdict)


def test_a_lead_near_the_tipping_point_is_called_better_with_the_tipping_point_beside_it():
    # The loser's entries are liked slightly less often than the winner's, and fewer of them are judged.
    rng = np.random.default_rng(3)
    users = [f"u{n}" for n in range(3000)]
    lists = {
        "w": {u: [f"{u}-w{k}" for k in range(5)] for u in users},
        "l": {u: [f"{u}-l{k}" for k in range(5)] for u in users},
    }
    rows = [(u, item, int(rng.random() < like)) for name, seen, like in (("w", 0.8, 0.52), ("l", 0.6, 0.5))
            for u in users for item in lists[name][u] if rng.random() < seen]  # fmt: skip
    compared = cf.compare(cf.measure(lists, cf.Ratings.of(*zip(*rows)), "P@5", threshold=1))
    row = compared.frame(detail=True).row(0, named=True)
    assert row["better"] == "w"
    assert 1 < row["tipping_ratio"] < 1.25
    assert any(said.startswith("w leads l on these judgments: if") for said in compared.verdict)


def test_where_nothing_is_disliked_the_verdict_says_that_it_is_blind():
    lists, clicks, _ = shop()
    liked = clicks.frame().filter(pl.col("rating") == 1)
    compared = cf.compare(cf.measure(lists, cf.Ratings.of(liked["user"], liked["item"]), "P@10"))
    assert compared.frame(detail=True)["better"].item() == "production"
    assert any(said.startswith("No item of the lists is known to be disliked") for said in compared.verdict)


def test_groups_of_users_follow_the_rule_of_all_users():
    lists, clicks, _ = shop()
    scores = cf.measure(lists, clicks, "P@10", threshold=1)
    groups = cf.compare_segments(scores.segments({f"u{n}": "even" if n % 2 == 0 else "odd" for n in range(400)}))
    assert groups.frame(detail=True)["better"].null_count() == 2


def test_other_metrics_that_cannot_tell_are_not_said_to_show_no_difference():
    lists, clicks, _ = shop()
    scores = cf.measure(lists, clicks, ["P@10", "Recall@10"], threshold=1)
    assert "Neither metric tells which is better." in cf.compare(scores).verdict
    compared = cf.compare(cf.measure(lists, clicks, ["nDCG@3", "P@10"], threshold=1), baseline="candidate")
    assert compared.main.against["production"] != compared.standings[1].against["production"] == "untold"
    assert "Against candidate, production is too little judged to tell by P@10." in compared.verdict
