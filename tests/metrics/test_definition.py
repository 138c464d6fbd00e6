"""What a metric says of itself in its registration, and whether it keeps to it."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import SettingError
from cranfield.judgments import Judgments, judge
from cranfield.measures import measure
from cranfield.metrics import Metric, known_metrics
from cranfield.metrics.definition import Pooled
from cranfield.metrics.over_draws import mean_weight
from cranfield.metrics.spellings import properties_of
from cranfield.rankings import read_run

# requires, zero_if_undefined, bounds
REGISTERED = {
    **dict.fromkeys(["P", "Recall", "F1", "HitRate", "RR", "AP", "Rprec", "AUC"], ("relevant items", True, True)),
    **dict.fromkeys(["bpref", "infAP"], ("relevant items", True, True)),
    **dict.fromkeys(["nDCG", "ERR"], ("gains", True, True)),
    "DCG": ("nothing", True, True),
    "RBP": ("judgments", True, True),
    "RBPresidual": ("judgments", False, True),
    "StratRecall": ("gains", True, False),
    **dict.fromkeys(["AOA", "IPS", "SNIPS", "RScore", "Contribution"], ("relevant items", True, False)),
    "AntiP": ("judgments", False, True),
    **dict.fromkeys(["Fallout", "AntiRR", "NDCL"], ("non-relevant items", False, True)),
    **dict.fromkeys(["Tau", "TauAP", "Spearman", "RBO"], ("judged items in the list", False, False)),
    **dict.fromkeys(["CSE", "DCSE", "WDCSE", "SDCSE", "SDCSEacc"], ("judged items in the list", False, False)),
    **dict.fromkeys(["UpSell", "DownSell", "PerfectSell", "RMSE", "MAE"], ("judged items in the list", False, False)),
    **dict.fromkeys(["PooledRMSE", "PooledMAE", "FullRank", "ECE"], ("judged items in the list", False, False)),
    **dict.fromkeys(
        ["PooledUpSell", "PooledDownSell", "PooledPerfectSell"], ("judged items in the list", False, False)
    ),
    **dict.fromkeys(["EPC", "EFD", "Unjudged", "RepeatShare", "ILD"], ("items in the list", False, False)),
    **dict.fromkeys(["Coverage", "UserCoverage"], ("nothing", False, False)),
    **dict.fromkeys(
        ["ItemCoverage", "AggregateDiversity", "Gini", "GiniDiversity", "Entropy"], ("nothing", False, False)
    ),
}

# By user: the test ratings and the list; the name says what the two have.
WORLD = {
    "everything": ({"a": 5, "b": 2, "c": 4}, "abcz"),
    "all relevant": ({"a": 5, "c": 4}, "acz"),
    "none relevant": ({"a": 3, "b": 2}, "abz"),
    "no gain": ({"a": 0, "b": -1}, "abz"),
    "none judged in the list": ({"a": 5, "b": 2}, "yz"),
    "no list": ({"a": 5, "b": 2}, ""),
}
HAS = {
    "relevant items": set(WORLD) - {"none relevant", "no gain"},
    "non-relevant items": set(WORLD) - {"all relevant"},
    "gains": set(WORLD) - {"no gain"},
    "judged items in the list": {"everything", "all relevant", "none relevant", "no gain"},
    "items in the list": set(WORLD) - {"no list"},
    "judgments": set(WORLD),
    "nothing": set(WORLD),
}


@pytest.fixture(scope="module")
def judged():
    rows = [(user, item, value) for user, (profile, _) in WORLD.items() for item, value in profile.items()]
    test = cf.Ratings.of(*(list(column) for column in zip(*rows)))
    train = cf.Ratings.of([1, 1, 1, 1, 1, 2], ["a", "b", "c", "y", "z", "z"], [5.0] * 6)
    lists = {user: {item: 5.0 - k for k, item in enumerate(items)} for user, (_, items) in WORLD.items() if items}
    return judge(read_run(lists, name="run"), Judgments.of(test, 4.0), train=train)


def _ours():
    return {name: one for name, one in known_metrics().items() if one.family != "own"}


def test_every_metric_states_what_it_requires_whether_nothing_counts_0_and_whether_it_has_bounds():
    found = {name: (one.requires, one.zero_if_undefined, one.bounds) for name, one in _ours().items()}
    assert found == REGISTERED


@pytest.mark.parametrize("name", [name for name, one in _ours().items() if not one.whole_system])
def test_a_metric_is_undefined_exactly_where_what_it_requires_is_missing(name, judged):
    values = Metric.of(f"{name}@3" if _ours()[name].cutoff == "required" else name)(judged)
    users = judged.judgments.user_ids.ids(judged.judgments.users).to_list()
    expected = set(HAS[_ours()[name].requires])
    if name == "StratRecall":  # only relevant items have a weight
        expected = set(HAS["relevant items"])
    if name == "AUC":  # it also needs an item in the list that is not relevant
        expected -= {"no list"}
    assert {user for user, value in zip(users, values) if not np.isnan(value)} == expected


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("options", [{}, {"ties": "average"}, {"lists": "condensed", "threshold": -1}])
def test_no_value_is_below_the_lowest_or_above_the_highest_of_its_metric(seed, options):
    random = np.random.default_rng(seed)

    def ratings(lowest):
        pairs = np.unique(random.integers(0, [12, 15], (70, 2)), axis=0)
        return cf.Ratings.of(*pairs.T.tolist(), random.integers(lowest, 6, len(pairs)).tolist())

    rows = [
        (user, int(item), float(random.integers(1, 6))) for user in range(11) for item in random.permutation(18)[:9]
    ]
    frame = pl.DataFrame(rows, schema=["user", "item", "score"], orient="row")
    gained = [
        "nDCG(gain=exp)@4",
        "DCG(gain=exp1)",
        "RBP(gain=expfull)",
        "ERR(rmax=user)",
        "RBO(ties=b)",
        "TauAP(ties=b)",
    ]
    ours = {name: one.cutoff for name, one in _ours().items() if not one.whole_system}
    cut, whole = ([name for name, cutoff in ours.items() if cutoff != kind] for kind in ("none", "required"))
    metrics = [*(f"{name}@3" for name in cut), *whole, *gained]
    scores = measure({"mine": frame}, ratings(-1 if seed % 2 else 1), metrics, train=ratings(1), bounds=True, **options)
    for m, name in enumerate(scores.metrics):
        low, high = properties_of(name).between
        held = np.concatenate([scores.values[:, m].ravel(), scores.bounds[:, :, m].ravel()])
        held = held[~np.isnan(held)]
        assert ((held >= low - 1e-12) & (held <= high + 1e-12)).all(), name


def test_a_metric_has_the_limits_of_its_definition():
    assert (properties_of("nDCG@10").between, properties_of("RMSE").between) == ((0.0, 1.0), (0.0, np.inf))


def test_a_metric_that_is_not_known_here_has_no_limits():
    assert properties_of("P(dialect=lenskit)@5").between == (-np.inf, np.inf)
    assert properties_of("somebody:metric@5").between == (-np.inf, np.inf)


def test_graded_rbp_and_its_residual_need_no_relevant_item():
    test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [3, 3, 5])
    metrics = ["RBP(p=0.5, gain=exp1)", "RBPresidual(p=0.5)"]
    scores = measure({"run": {"ann": ["x", "y"], "bob": ["x", "z"]}}, test, metrics, threshold=4)
    assert scores.values[0].tolist() == [[0.140625, 0.46875], [0.25, 0.5]]
    frame = scores.frame()
    assert frame["mean"].to_list() == [0.3046875, 0.375]
    assert frame["lists"].to_list() == [2, 2]


def test_a_metric_of_your_own_says_what_it_requires_and_what_an_undefined_value_counts():
    test = cf.Ratings.of(["ann", "bob"], ["x", "x"], [5, 2])
    runs = {"run": {"ann": ["x"], "bob": ["x"]}}

    def mean(**registration):
        @cf.metric("Mine", **registration)
        def mine(judged):
            return np.full(judged.n_lists, 4.0)

        return measure(runs, test, "Mine", threshold=4, bounds=True).frame().row(0, named=True)

    assert mean()["mean"] == 4.0
    assert mean(requires="relevant items")["mean"] == 2.0
    assert mean(requires="relevant items", lower_is_better=True)["mean"] == 4.0
    assert mean(requires="relevant items", zero_if_undefined=False)["mean"] == 4.0
    assert mean(requires="relevant items", lower_is_better=True, zero_if_undefined=True)["mean"] == 2.0
    assert mean()["most"] == 4.0
    assert mean(bounds=False)["most"] is None


@pytest.mark.parametrize(
    ("registration", "problem"),
    [
        ({"requires": "luck"}, "requires='luck' is not one of relevant items"),
        ({"zero_if_undefined": "yes"}, "zero_if_undefined='yes' is neither true nor false"),
        ({"bounds": 1}, "bounds=1 is neither true nor false"),
        ({"bounds": True, "whole_system": True}, "no bounds"),
    ],
)
def test_a_wrong_registration_is_an_error(registration, problem):
    with pytest.raises(SettingError, match=problem):
        cf.metric("Wrong", **registration)


@pytest.mark.parametrize(
    "code", ["np.array([1.0]) / np.array([0.0])", "np.exp2(np.array([2e3]))", "np.array([]).mean()"]
)
def test_a_runtime_warning_in_cranfield_is_an_error_in_this_suite(code):
    with pytest.raises(RuntimeWarning):
        eval(code, {"np": np, "__name__": "cranfield.measures.somewhere"})
    with warnings.catch_warnings(record=True), pytest.raises(RuntimeWarning):
        warnings.warn_explicit("overflow", RuntimeWarning, "somewhere.py", 1, module="cranfield.measures.somewhere")


def test_pooled_sums_add_up_before_the_property_is_computed():
    assert float(Pooled(3.0, abs) + Pooled(-5.0, abs)) == 2.0


def test_the_expected_weight_of_a_rank_over_draws():
    unit = np.array([1])
    assert mean_weight(np.array([1.0]), 0 * unit, unit, 3 * unit, 2 * unit).round(4).tolist() == [0.3333]
