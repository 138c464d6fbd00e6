"""Claims: a verdict for each, checked against SciPy and against claims that are so by construction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau

from cranfield.studies.frame.claims import Saying, finding
from cranfield.studies.valcarce import Standing, _half, arithmetic, geometric


@pytest.fixture(scope="module")
def standing(of_2020):
    return Standing(arithmetic(of_2020.assessment))


@pytest.mark.parametrize("scenario", ["ratings", "items", "popular", "users", "large"])
@pytest.mark.parametrize("which", [arithmetic, geometric])
def test_a_scenario_scores_the_mean_of_scipys_tau_over_samples(of_2020, which, scenario):
    found = which(of_2020.assessment)
    own = Standing(found)
    for m, metric in enumerate(found.metrics):
        rows = found.samples.filter(
            (pl.col("scenario") == scenario) & (pl.col("metric") == metric) & (pl.col("size") < 1.0)
        )
        taus = [
            kendalltau(np.round(found.whole[fold - 1, 0, m], 12), np.round(values, 12)).statistic
            for fold, values in rows.select("fold", "values").iter_rows()
        ]
        assert len(taus) == 2 * 2 * (1 if scenario in ("popular", "large") else 3)
        assert own.scores(scenario, [metric])[0, 0] == pytest.approx(np.mean(np.nan_to_num(taus)))


def test_power_is_minus_the_mean_p_value(of_2020, standing):
    pairs = 5 * 4 / 2
    for metric, dp in arithmetic(of_2020.assessment).power.select("metric", "dp").iter_rows():
        assert standing.scores("power", [metric])[0, 0] == pytest.approx(-dp / pairs)


def test_drawn_systems_give_the_p_values_of_those_systems(of_2020, standing):
    found = arithmetic(of_2020.assessment)
    p = {
        frozenset(pair): value
        for *pair, value in found.curves.filter(pl.col("metric") == "P").select("system_a", "system_b", "p").iter_rows()
    }
    for draw, counts in enumerate(standing.drawn[:20], start=1):
        drawn = [system for system, count in zip(found.systems, counts) for _ in range(int(count))]
        values = [p[frozenset((a, b))] for k, a in enumerate(drawn) for b in drawn[:k] if a != b]
        assert standing.scores("power", ["P"])[draw, 0] == pytest.approx(-np.mean(values))


def test_what_can_be_said_is_what_it_says(standing):
    scores = dict(zip(standing.metrics, standing.scores("items", standing.metrics)[0]))
    best, worst = max(scores, key=scores.get), min(scores, key=scores.get)
    others = [value for name, value in scores.items() if name != best]
    assert standing.first("items", best)[0] == pytest.approx(scores[best] - max(others))
    assert standing.above("items", [best])[0] == pytest.approx(scores[best] - np.mean(others))
    rest = [value for name, value in scores.items() if name != worst]
    assert standing.last("items", [worst])[0] == pytest.approx(min(rest) - scores[worst])
    assert standing.below("items", [worst])[0] == pytest.approx(np.mean(rest) - scores[worst])
    two = [best, worst]
    unnamed = [value for name, value in scores.items() if name not in two]
    assert standing.above("items", two)[0] == pytest.approx(scores[worst] - np.mean(unnamed))
    assert standing.below("items", two)[0] == pytest.approx(np.mean(unnamed) - scores[best])


@pytest.mark.parametrize(
    ("whole", "draws", "systems", "verdict"),
    [
        (0.1, [1.0] * 9 + [-1.0], 21, "holds"),
        (0.1, [1.0] * 8 + [-1.0] * 2, 21, "cannot tell"),
        (-0.1, [-1.0] * 9 + [1.0], 21, "does not hold"),
        (-0.1, [-1.0] * 8 + [1.0] * 2, 21, "cannot tell"),
        (0.0, [0.0] * 10, 21, "cannot tell"),
        (0.1, [0.0] * 2 + [1.0] * 8, 21, "cannot tell"),
        (np.nan, [np.nan] * 10, 21, "cannot tell"),
        (0.1, [], 21, "holds"),
        (-0.1, [], 21, "does not hold"),
        (0.1, [1.0] * 10, 4, "cannot tell"),
        (0.9 - np.mean([0.9] * 7), [-1e-16] * 10, 21, "cannot tell"),  # equal up to rounding
    ],
)
def test_a_verdict_needs_nine_draws_of_ten_and_five_systems(whole, draws, systems, verdict):
    found = finding(Saying("so", "1", np.array([whole, *draws]), "numbers"), systems)
    assert found.verdict == verdict


def test_an_undefined_draw_counts_for_neither_side():
    margin = np.array([0.2, *([1.0] * 9), np.nan])
    found = finding(Saying("so", "1", margin, "numbers"), 21)
    assert (found.sure, found.against) == (1.0, 0.0)


def test_ties_count_for_neither_side_but_are_draws():
    found = finding(Saying("so", "1", np.array([0.0, 0.0, 0.0, 1.0, -1.0]), "numbers"), 21)
    assert (found.sure, found.against, found.verdict) == (0.25, 0.25, "cannot tell")


def test_what_is_said_of_half_of_the_ratings_needs_that_size(of_2020):
    claim = "Every metric keeps a tau above 0.9 with half of the test ratings"
    assert {one.claim: one.evidence for one in of_2020.claims}[claim].startswith("tau with 50% of the ratings: P ")
    found = arithmetic(of_2020.assessment)
    for sizes in ([1.0, 0.2], [0.2]):
        said = _half(replace(found, samples=found.samples.filter(pl.col("size").is_in(sizes))))
        assert (said.claim, said.evidence) == (claim, "tau with 50% of the ratings: no such size")
        assert finding(said, 21).verdict == "cannot tell"


def test_every_claim_of_the_papers_that_users_ask_about_is_there(of_2018, of_2020):
    told = " | ".join(one.claim for one in (*of_2018.claims, *of_2020.claims))
    for words in (
        "P and NDCG are among the most robust",
        "NDCG is the most discriminative",
        "MRR and ERR are among the least robust",
        "Bpref and InfAP are not robust",
        "Deeper cut-offs are more robust",
        "Deeper cut-offs are more discriminative",
        "GP is more robust to missing large users than P",
        "GNDCG is more robust to missing large users than NDCG",
        "GF1 and GMRR are the least robust",
    ):
        assert words in told
