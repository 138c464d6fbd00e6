"""Laws of judged lists: views of them equal what they stand for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError
from cranfield.judgments import Judgments, judge
from cranfield.metrics import Metric, known_metrics
from cranfield.rankings import Run
from cranfield.tables import Vocabulary

THRESHOLD = 3
TRAIN = {100 + user: dict.fromkeys(range(user, 13), 5) for user in range(13)}
UNIT = ["P", "Recall", "F1", "HitRate", "RR", "AP", "AUC", "nDCG", "nDCG(gain=exp)", "nDCG(gain=binary)", "ERR", "RBP"]
UNIT += ["RBPresidual", "bpref", "infAP", "infAP(pool=judged)", "StratRecall", "SNIPS", "SNIPS(utility=dcg)", "AOA"]
UNIT += ["AntiP", "Fallout", "AntiRR", "NDCL", "NDCL(loss=exp)", "RScore", "RScore(popularity=inverse, half_life=2)"]
UNIT += ["RBO", "SDCSE", "SDCSEacc", "UpSell", "DownSell", "PerfectSell", "EPC", "ILD", "Unjudged", "RepeatShare"]
UNIT += ["Contribution", "Contribution(of=new)"]
SIGNED = ["Tau", "TauAP", "TauAP(ties=b)", "Spearman"]
OTHER = ["DCG", "IPS", "CSE", "DCSE", "WDCSE", "RMSE", "MAE", "EFD", "FullRank"]
WHOLE = ["ItemCoverage", "AggregateDiversity", "Gini", "GiniDiversity", "Entropy", "PooledRMSE", "PooledMAE"]
WHOLE += ["PooledUpSell", "PooledDownSell", "PooledPerfectSell", "ECE", "ECE(by=rank)"]
EVERY = [*UNIT, *SIGNED, *OTHER, *WHOLE]


def test_every_metric_is_under_these_laws():
    tested = {Metric.of(name).definition.name for name in EVERY} | {"Coverage", "UserCoverage", "Rprec"}
    assert {name for name, one in known_metrics().items() if one.family != "own"} <= tested


def _users(judged):
    return judged.judgments.user_ids.ids(judged.judgments.users).to_list()


@given(data=st.data(), n=st.integers(1, 14))
def test_each_metric_lies_in_its_range(data, n, worlds, judged_of):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD, train=TRAIN)
    for low, names in ((0.0, UNIT), (-1.0, SIGNED)):
        for name in names:
            for spelling in (name, f"{name}@{n}"):
                values = Metric.of(spelling)(judged)
                values = values[~np.isnan(values)]
                assert ((values >= low - 1e-12) & (values <= 1 + 1e-12)).all(), spelling


@given(data=st.data(), n=st.integers(1, 14))
def test_a_cut_off_equals_lists_that_are_shorter(data, n, worlds, judged_of, ranked, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD, train=TRAIN)
    shorter = {user: {item: scores[item] for item in ranked(scores)[:n]} for user, scores in run.items()}
    short = judged_of(shorter, test, THRESHOLD, train=TRAIN)
    for name in EVERY:
        if not Metric.of(name).definition.condensed:
            same(Metric.of(f"{name}@{n}")(judged), Metric.of(f"{name}@{n}")(short), name)
            same(Metric.of(f"{name}@{n}")(judged.cut(n + 3)), Metric.of(f"{name}@{n}")(judged), name)


@given(data=st.data(), n=st.integers(1, 14), condensed=st.booleans(), ties=st.sampled_from(["trec_eval", "average"]))
def test_a_mask_equals_a_smaller_test_set(data, n, condensed, ties, worlds, judged_of, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD, ties, train=TRAIN)
    frame = [(user, item) for user in sorted(test) for item in sorted(test[user])]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(frame), max_size=len(frame))))
    kept = {pair for pair, one in zip(frame, mask) if one}
    smaller = {user: {item: test[user][item] for item in test[user] if (user, item) in kept} for user in test}
    smaller = {user: profile for user, profile in smaller.items() if profile}
    if not smaller:
        return
    masked, made = judged.only(mask), judged_of(run, smaller, THRESHOLD, ties, train=TRAIN)
    if condensed:
        masked, made = judged.condensed().only(mask), made.condensed()
    assert _users(masked) == _users(made)
    # A smaller test set has a smaller vocabulary and catalogue, and may have another highest rating.
    highest = max(r for profile in smaller.values() for r in profile.values())
    changed = {"ERR"} if highest < judged.judgments.top_grade else set()
    for name in set(EVERY) - changed:
        same(Metric.of(f"{name}@{n}")(masked), Metric.of(f"{name}@{n}")(made), name)
    whole = judged.only(np.ones(len(frame), dtype=bool))
    for name in EVERY:
        same(Metric.of(f"{name}@{n}")(whole), Metric.of(f"{name}@{n}")(judged), name)


@given(data=st.data(), n=st.integers(1, 14), ties=st.sampled_from(["trec_eval", "average"]))
def test_condensed_lists_equal_lists_without_the_unjudged_items(data, n, ties, worlds, judged_of, same):
    run, test = data.draw(worlds)
    judged = judged_of(run, test, THRESHOLD, ties, train=TRAIN)
    removed = {u: {i: s for i, s in scores.items() if i in test.get(u, ())} for u, scores in run.items()}
    removed = {user: scores for user, scores in removed.items() if scores}
    if not removed:
        return
    made = judged_of(removed, test, THRESHOLD, ties, train=TRAIN)
    for name in set(EVERY) - {"FullRank"}:
        spelled = f"{name[:-1]}, condensed=true)" if name.endswith(")") else f"{name}(condensed=true)"
        same(Metric.of(f"{spelled}@{n}")(judged), Metric.of(f"{name}@{n}")(made), name)
        same(Metric.of(name)(judged.condensed()), Metric.of(name)(made), name)


def test_a_metric_does_not_change_if_two_unjudged_items_swap(judged_of, same):
    run = {1: {item: -float(item) for item in range(10)}}
    swapped = {1: run[1] | {4: -8.0, 8: -4.0}}
    test = {1: {0: 5, 3: 1, 6: 4, 9: 2, 30: 5}}
    one, other = (judged_of(lists, test, THRESHOLD, train=TRAIN) for lists in (run, swapped))
    about_items = {"EPC", "EFD", "ILD", "RepeatShare", *WHOLE}
    for name in set(EVERY) - about_items:
        for n in range(1, 11):
            same(Metric.of(f"{name}@{n}")(one), Metric.of(f"{name}@{n}")(other), name)


@given(st.dictionaries(st.integers(0, 12), st.integers(1, 5), min_size=1))
def test_a_perfect_list_scores_one(profile):
    order = sorted(profile, key=lambda item: -profile[item])
    ids = Vocabulary.of(list(range(13)))
    run = Run(
        name="ideal",
        user_ids=Vocabulary.of([7]),
        item_ids=ids,
        users=np.zeros(1, dtype=np.int32),
        indptr=np.array([0, len(order)]),
        items=np.array(order, dtype=np.int32),
    )
    test = Ratings.of([7] * len(profile), list(profile), list(profile.values()))
    judged = judge(run, Judgments.of(test, float(max(profile.values()))))
    relevant = int(judged.n_relevant[0])
    for name in (f"P@{relevant}", "Recall", f"F1@{relevant}", "HitRate", "RR", "AP", "Rprec", "nDCG", "bpref", "infAP"):
        assert Metric.of(name)(judged)[0] == pytest.approx(1.0, abs=1e-4 if name == "infAP" else 1e-12), name
    if len(set(profile.values())) > 1:
        for name in ("AUC", "RBO"):
            assert Metric.of(name)(judged)[0] == pytest.approx(1.0), name


def test_whole_lists_cannot_be_had_of_one_relevant_lists():
    ids, users = Vocabulary.of([1, 2]), np.array([0, 0], dtype=np.int32)
    run = Run(
        name="one",
        user_ids=Vocabulary.of([7]),
        item_ids=ids,
        users=users,
        indptr=np.arange(3),
        items=np.array([0, 1], dtype=np.int32),
        ranks=np.array([1, 3], dtype=np.int32),
        lengths=np.array([5, 5], dtype=np.int32),
        one_relevant=True,
    )
    judgments = Judgments.of(Ratings.of([7, 7], [1, 2]), 1.0)
    judged = judge(run, judgments)
    assert Metric.of("RR")(judged).tolist() == [1.0, 1 / 3]
    assert Metric.of("nDCG")(judged).tolist() == [1.0, 1 / math.log2(4)]
    with pytest.raises(SettingError, match="whole lists"):
        Metric.of("Entropy")(judged)


@pytest.mark.parametrize("ties", ["trec_eval", "average"])
@pytest.mark.parametrize(
    "run", [{9: {1: 1.0}}, {1: {77: 1.0}}, {1: {1: 1.0}}, {1: {1: 1.0, 3: 1.0, 2: 1.0}, 2: {2: 2.0}}]
)
@pytest.mark.filterwarnings("error")
def test_every_metric_has_an_answer_where_little_or_nothing_is_known(run, ties, judged_of):
    train = Ratings.of([1, 2, 3], [1, 3, 3], [5, 1, 2])
    for known in (train, train.keep(np.zeros(3, dtype=bool))):
        judged = judged_of(run, {1: {1: 5}, 2: {2: 1}}, 4, ties, train=known)
        ours = {name: one for name, one in known_metrics().items() if one.family != "own"}
        for name, definition in ours.items():
            for at in {"none": [""], "required": ["@1", "@5"], "optional": ["", "@1", "@5"]}[definition.cutoff]:
                for lists in (judged, judged.condensed()):
                    values = np.atleast_1d(Metric.of(name + at)(lists))
                    assert len(values) == (1 if definition.whole_system else 2)
                    assert not np.isinf(values).any(), name
