"""The effect of a pair on a dataset and its error, against their formulas, the bootstrap and `crossed`."""

from dataclasses import replace

import numpy as np
import pytest

from cranfield._errors import InputError
from cranfield.across.effects import effects_of_means, effects_of_samples
from cranfield.comparisons import as_scores, make_samples, pairs_of
from cranfield.measures import Averaging, Errors

A = [0.5, 0, 1, 0.25, 0.75, 0]
B = [0.25, 0, 0.5, 0.5, 0.25, 0.1]
PAIR = (np.array([0]), np.array([1]))


def samples_of(values, average="mean"):
    (sample,) = make_samples(as_scores(values), Averaging(average=average))[0]
    return {"data": sample.of_common_users()}


def effect(values, scale, average="mean"):
    table = effects_of_samples(samples_of(values, average), ("a", "b"), PAIR, scale)
    return table.effects.item(), table.errors.item()


@pytest.mark.parametrize(
    ("scale", "size", "error"),
    [("ratio", 0.446287, 0.308474), ("difference", 0.15, 0.129099), ("effect", 0.474342, 0.410186)],
)
def test_the_effects_of_six_users_are_those_of_the_formulas(scale, size, error):
    assert effect({"a": A, "b": B}, scale) == pytest.approx((size, error), abs=1e-6)


def test_the_error_of_a_ratio_is_that_of_a_bootstrap_of_users():
    draws = np.random.default_rng(1)
    a = draws.beta(1, 3, 400)
    b = np.clip(a * draws.uniform(0.4, 1.3, 400), 0, 1)
    users = draws.integers(0, 400, (4000, 400))
    resampled = np.log(a[users].mean(axis=1) / b[users].mean(axis=1)).std()
    assert effect({"a": a, "b": b}, "ratio")[1] == pytest.approx(resampled, rel=0.05)


@pytest.mark.parametrize("average", ["mean", "geometric", "geometric(form=adjusted, epsilon=0.05)"])
@pytest.mark.parametrize("scale", ["ratio", "difference"])
def test_the_error_of_other_averages_is_that_of_the_jackknife(average, scale):
    draws = np.random.default_rng(2)
    a = draws.uniform(0.2, 1, 300)
    b = np.clip(a + draws.normal(0, 0.1, 300), 0.1, 1)
    shift = 0.05 if "adjusted" in average else 0.0

    def average_of(values):
        return values.mean() if average == "mean" else np.exp(np.log(values + shift).mean()) - shift

    def size(keep):
        parts = average_of(a[keep]), average_of(b[keep])
        return np.log(parts[0] / parts[1]) if scale == "ratio" else parts[0] - parts[1]

    without = np.array([size(np.arange(300) != left_out) for left_out in range(300)])
    jackknife = np.sqrt(299 / 300 * ((without - without.mean()) ** 2).sum())
    assert effect({"a": a, "b": b}, scale, average)[1] == pytest.approx(jackknife, rel=0.01)
    assert effect({"a": a, "b": b}, scale, average)[0] == pytest.approx(size(np.arange(300)))


def test_with_repetitions_the_error_is_that_of_users_crossed_with_repetitions():
    draws = np.random.default_rng(3)
    values = [{"a": draws.uniform(0.2, 1, 50), "b": draws.uniform(0.1, 0.9, 50)} for _ in range(3)]
    scores = as_scores([as_scores(part) for part in values])
    (sample,) = make_samples(scores, Averaging())[0]
    table = effects_of_samples({"data": sample}, ("a", "b"), PAIR)
    a, b = (np.stack([part[name] for part in values], axis=1) for name in "ab")
    expected = Errors.crossed((a / a.mean() - b / b.mean())[None]).error[0]
    assert table.errors.item() == pytest.approx(expected)


def test_identical_lists_have_no_effect_and_no_error():
    assert effect({"a": A, "b": A}, "ratio") == (0.0, 0.0)
    assert effect({"a": [0.1, 0.3, 0.7], "b": [0.2, 0.6, 1.4]}, "ratio")[1] == 0.0


def test_if_lower_is_better_the_sign_is_reversed():
    table = effects_of_means("RMSE", ("a", "b"), ("x",), np.array([[0.9], [1.0]]), PAIR, lower_is_better=True)
    assert table.effects.item() == pytest.approx(np.log(1 / 0.9))


def test_an_average_of_zero_has_no_ratio_so_its_pair_has_differences_on_all_datasets():
    means = np.array([[0.2, 0.3], [0.0, 0.2], [0.1, 0.1]])
    table = effects_of_means("P@5", ("a", "b", "c"), ("x", "y"), means, pairs_of(("a", "b", "c"), None))
    assert table.scales == ("difference", "ratio", "difference")
    assert table.effects[0].tolist() == pytest.approx([0.2, 0.1])


def test_a_missing_cell_stays_missing_and_does_not_make_a_ratio_impossible():
    means = np.array([[0.2, 0.3], [np.nan, 0.2]])
    table = effects_of_means("P@5", ("a", "b"), ("x", "y"), means, PAIR)
    assert table.scales == ("ratio",)
    assert np.isnan(table.effects[0, 0])


def test_errors_of_systems_bound_that_of_their_ratio():
    means, errors = np.array([[0.4], [0.2]]), np.array([[0.02], [0.03]])
    table = effects_of_means("P@5", ("a", "b"), ("x",), means, PAIR, errors=errors)
    assert table.errors.item() == pytest.approx(np.hypot(0.02 / 0.4, 0.03 / 0.2))
    assert table.bounded
    with pytest.raises(InputError, match="effect sizes need the users' values"):
        effects_of_means("P@5", ("a", "b"), ("x",), means, PAIR, scale="effect")


def test_datasets_of_a_family_are_averaged_with_their_errors():
    means = np.array([[0.4, 0.1, 0.3], [0.2, 0.1, 0.2]])
    errors = np.array([[0.02, 0.01, 0.01], [0.01, 0.02, 0.01]])
    table = effects_of_means("P@5", ("a", "b"), ("x", "y", "z"), means, PAIR, errors=errors)
    joined = table.by_family({"x": "one site", "z": "one site"})
    assert joined.datasets == ("one site", "y")
    assert joined.effects[0].tolist() == pytest.approx([table.effects[0, [0, 2]].mean(), table.effects[0, 1]])
    assert joined.errors[0, 0] == pytest.approx(table.errors[0, [0, 2]].mean())
    assert joined.means[0, 0] == pytest.approx(np.sqrt(0.4 * 0.3))


def test_a_dataset_with_one_common_user_is_left_out_and_said():
    data = {name: {"a": A, "b": B} for name in "wxy"}
    samples = {name: samples_of(values)["data"] for name, values in data.items()}
    samples["z"] = replace(samples["w"], values=np.array([[0.1, np.nan], [0.2, np.nan]]))
    table = effects_of_samples(samples, ("a", "b"), PAIR)
    assert table.without_error == ("z",)
    assert np.isnan(table.effects[0]).tolist() == [False, False, False, True]


def test_the_error_of_a_weighted_average_is_that_of_the_jackknife():
    draws = np.random.default_rng(4)
    a, b, weights = draws.uniform(0.2, 1, 300), draws.uniform(0.1, 0.9, 300), draws.integers(1, 9, 300)
    scores = replace(as_scores({"a": a, "b": b}), judged=weights)
    (sample,) = make_samples(scores, Averaging(average="weighted(by=judged)"))[0]
    table = effects_of_samples({"data": sample}, ("a", "b"), PAIR)

    def size(keep):
        return np.log((a * weights)[keep].sum() / (b * weights)[keep].sum())

    without = np.array([size(np.arange(300) != left_out) for left_out in range(300)])
    assert table.effects.item() == pytest.approx(size(np.arange(300)))
    assert table.errors.item() == pytest.approx(np.sqrt(299 / 300 * ((without - without.mean()) ** 2).sum()), rel=0.01)
