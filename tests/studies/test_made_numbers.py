"""Claims of studies held against numbers that are made as the papers say, and against their opposite.

A claim whose rule is turned round is caught: it does not hold of the first, or holds of the second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from cranfield.studies.aftab2022.claims import claims_of as claims_of_errors
from cranfield.studies.aftab2022.work import BPR, EXPLICIT, IMPLICIT, LCNN, MAP, MF, NCF, NDCG, SDCSE, ErrorNumbers
from cranfield.studies.canamares_castells2018 import designs
from cranfield.studies.canamares_castells2018.claims import claims_of as claims_of_truth
from cranfield.studies.canamares_castells2018.designs import JUDGED_PAIRS, Sums
from cranfield.studies.canamares_castells2018.protocols import FULL_LISTS
from cranfield.studies.canamares_castells2020 import work as of_targets
from cranfield.studies.canamares_castells2020.claims import claims_of as claims_of_targets
from cranfield.studies.canamares_castells2020.work import METRICS, PAIRS, SIZES
from cranfield.studies.frame.claims import Part, claim_table
from cranfield.studies.frame.study import SCHEMA
from cranfield.studies.rendle2020 import work as of_networks
from cranfield.studies.rendle2020.claims import claims_of as claims_of_networks

SPLITS = 5


def _verdicts(found):
    return {one.key: {own.verdict for own in found if own.key == one.key} for one in found}


def _frame(rows, **more):
    """Return rows of `SCHEMA` without an error as a frame, on five splits that hardly differ."""
    draw = np.random.default_rng(0)
    split = [
        (*row[:5], row[5] + draw.normal(0, 1e-5), row[6], row[7], seed, *more) for row in rows for seed in range(SPLITS)
    ]
    return pl.DataFrame(split, schema={**SCHEMA, "seed": pl.Int64}, orient="row")


# Aftab and Ramampiaro (2022).


def _of_errors(turned: Callable[[str], bool] = lambda _: False) -> ErrorNumbers:
    """Return numbers as in the paper, in which the values of some metrics are turned round: 1.5 − x in place of x."""
    rows = []

    def add(part, setting, metric, system, value, x=0.0, p=None):
        value = 1.5 - value if turned(metric) else value
        rows.append((part, setting, x, metric, system, value, 1 - p if p and turned(metric) else p, 1e-4))

    order = {LCNN: 0, MF: 1, NCF: 2, BPR: 3}  # by errors and by migration
    for model, place in order.items():
        low = {SDCSE: 0.6, "DCSE": 0.4, "RMSE": 0.3, "RMSE, all items": 0.3, "us-ds, half a step": 0.5}
        for metric, value in low.items():
            add("average", EXPLICIT, metric, model, value + 0.02 * place)
        for metric in (MAP, NDCG):
            add("average", EXPLICIT, metric, model, 0.9 + 0.02 * (model == NCF) - 0.01 * (place % 2))
        add("average", EXPLICIT, "SDCSEacc", model, 0.4 - 0.02 * place)
        add("average", IMPLICIT, "SDCSEacc", model, 0.4 if model == MF else 0.3)
        for level, first, value in (("Low-High", MF, 0.6), ("Medium-High", MF, 0.5), ("High", LCNN, 0.4)):
            add("level", level, SDCSE, model, value + 0.05 * (model == first))
            add("level", level, NDCG, model, value + 0.3 + 0.02 * (model == BPR))
        for other in order:
            if model < other:
                for metric, p in ((MAP, 0.3), (NDCG, 0.2), (SDCSE, 0.1)):
                    add("pair", EXPLICIT, metric, f"{model} | {other}", 0.01, p=p)
    for x in (1.0, 0.5, 0.1):
        for metric in (MAP, NDCG, SDCSE):
            add("robust", "ratings", metric, "all", 0.95 if metric == NDCG else 0.9, x)
            add("robust", "popular", metric, "all", 0.8 if metric == NDCG else 0.9, x)
    add("lists", EXPLICIT, "users", "all", 100.0)
    return ErrorNumbers("ratings", SimpleNamespace(), "RR", _frame(rows), False)


def test_every_claim_about_rank_and_error_holds_of_numbers_that_are_as_the_paper_says():
    found = _verdicts(claims_of_errors([_of_errors()]))
    assert set(found) == set(claim_table("cranfield.studies.aftab2022"))
    assert set.union(*found.values()) == {"holds"}


def test_no_claim_about_rank_and_error_holds_of_the_opposite():
    errors = ("DCSE", "RMSE", "RMSE, all items", "us-ds, half a step")
    turned = _verdicts(claims_of_errors([_of_errors(lambda metric: metric != "users")]))
    relative = {"errors DCSE", "errors RMSE", "migrate order"}  # of two metrics that are turned round together
    assert {key for key, verdicts in turned.items() if "holds" in verdicts} <= relative
    apart = _verdicts(claims_of_errors([_of_errors(lambda metric: metric in errors)]))
    assert all(apart[key] == {"does not hold"} for key in relative)


# Cañamares and Castells (2020).


def _of_targets(turned: bool) -> pl.DataFrame:
    rows = []
    middle = np.abs(np.arange(len(SIZES)) - 6) / 6  # lowest between the extremes
    draw = np.random.default_rng(0)
    for fold in range(SPLITS):
        for metric in METRICS:
            for place, size in enumerate(SIZES):
                sign = -1 if turned else 1
                named = {of_targets.TIES: middle[place], of_targets.SUM_OF_P: middle[place],
                         of_targets.TIES_AT_ZERO: place / 20}  # fmt: skip
                for name, value in named.items():
                    rows.append((fold, PAIRS, size, f"{name} of {metric}", 0.5 + sign * value + draw.normal(0, 1e-5)))
                for system, (condensed, full) in enumerate(((1, 4), (2, 3), (3, 2), (4, 1))):
                    share = place / (len(SIZES) - 1)
                    best = full if turned else (1 - share) * condensed + share * full
                    rows.append((fold, f"s{system}", size, metric, best + draw.normal(0, 1e-5)))
            for system, value in enumerate((4, 3, 2, 1)):
                unbiased = 5 - value if turned else value
                rows.append((fold, f"s{system}", SIZES[-1], f"{of_targets.UNBIASED} {metric}", float(unbiased)))
    schema = ["fold", "system", "unrated", "metric", "value"]
    return pl.DataFrame(rows, schema=schema, orient="row")


def test_claims_about_targets_hold_of_numbers_that_are_as_the_paper_says_and_not_of_the_opposite():
    found, turned = (_verdicts(claims_of_targets(_of_targets(turned))) for turned in (False, True))
    # Orders change in the middle, so no size in between comes nearer to the truth than full lists do.
    assert {key for key, verdicts in found.items() if verdicts == {"holds"}} == set(found) - {"between"}
    assert not any("holds" in verdicts for verdicts in turned.values())


# Cañamares and Castells (2018).


def _sums(values, turned):
    """Return sums with these values by label and system, over 5 repetitions of one fold and 30 users."""
    systems = tuple(next(iter(values.values())))
    table = np.array([[own[system] for system in systems] for own in values.values()])
    table = 1 - table if turned else table
    noise = np.random.default_rng(0).normal(0, 1e-4, (*table.shape, SPLITS, 30))
    return Sums(tuple(values), systems, table[..., None, None] + noise, np.ones((SPLITS, 30)))


def _of_truth(turned):
    plain, normalised = "kNN, not normalised", "kNN, normalised"
    popular = {"popularity": 0.8, "average": 0.6, "random": 0.1, plain: 0.7, normalised: 0.5}
    average = {"popularity": 0.1, "average": 0.8, "random": 0.2, plain: 0.5, normalised: 0.7}
    labels = {designs.OBSERVED_NDCG: popular, designs.TRUE_NDCG: average, designs.TRUE_P1: average,
              designs.COMPLETE_P1: average}  # fmt: skip
    both = {designs.OBSERVED_P10: popular, designs.TRUE_P10: popular, designs.COMPLETE_P10: popular}
    opposite = {name: 1 - value for name, value in popular.items()}
    observed = {"P@10": popular, "AntiP@10": popular}
    true = {"P@10": popular, "AntiP@10": opposite}
    if turned:
        both |= {designs.OBSERVED_P10: opposite}
        true = {"P@10": opposite, "AntiP@10": popular}
    return SimpleNamespace(
        published={"actual": {JUDGED_PAIRS: _sums(labels, turned)}},
        half=_sums(labels, turned),
        weighted=_sums(both, False),
        lists={"actual": _sums(both, False)},
        fifths=(_sums(observed, False), _sums(true, False)),
        readings={"actual": [None] * SPLITS},
    )


@pytest.mark.parametrize("turned", [False, True])
def test_claims_about_observed_and_true_orders_follow_the_numbers(turned, monkeypatch):
    tau = -0.9 if turned else 0.9
    frame = pl.DataFrame([(FULL_LISTS, "P@10", tau), (FULL_LISTS, "AntiP@10", tau)],
                         schema=["protocol", "metric", "tau"], orient="row")  # fmt: skip
    draws = iter(np.random.default_rng(1).normal(0, 1e-3, 100))
    by_draw = "cranfield.studies.canamares_castells2018.claims.world_scores"
    monkeypatch.setattr(by_draw, lambda _: frame.with_columns(pl.col("tau") + next(draws)))
    found = _verdicts(claims_of_truth(_of_truth(turned)))
    assert set(found) == set(claim_table("cranfield.studies.canamares_castells2018"))
    assert set.union(*found.values()) == {"does not hold" if turned else "holds"}


# Rendle et al. (2020).


@dataclass
class _Networks:
    """Values by row that are as the paper says, or turned round."""

    turned: bool
    known: str = "MovieLens 1M"
    users: int = 6_000
    epochs: None = None

    @property
    def rows(self):
        sizes = [of_networks.of_size(kind, size) for kind, own in of_networks.SIZES.items() for size in own]
        eases = [f"{of_networks.EASE}, λ = {size}" for size in (300, 1000)]
        return [*sizes, *eases, of_networks.SLIM, of_networks.IALS_2019, of_networks.POPULARITY]

    def rows_of(self, kind):
        return [row for row in self.rows if row.startswith(f"{kind}, ")]

    def printed(self, row, metric):
        return of_networks.PRINTED.number("table 1", self.known, row, metric)

    def mean(self, row, protocol, metric):
        if row.startswith("EASE"):
            return 0.5 + 0.01 * (("1000" in row) == (protocol == of_networks.SAMPLED))
        value = 0.4 + 0.1 * (not row.startswith("NeuMF"))
        return 1 - value if self.turned else value

    def error(self, *_):
        return 1e-4

    def lead(self, first, second, protocol, metric):
        return Part(np.array([self.mean(first, protocol, metric) - self.mean(second, protocol, metric)]), 1e-4)

    def best_ease(self, protocol, metric):
        return max(self.rows_of(of_networks.EASE), key=lambda row: self.mean(row, protocol, metric))


@pytest.mark.parametrize("turned", [False, True])
def test_claims_about_networks_follow_the_numbers(turned, monkeypatch):
    found = _verdicts(claims_of_networks(_Networks(turned)))
    assert found.pop("print") == {"does not hold"}  # these are not the printed values
    assert found.pop("EASE") == {"holds"}
    assert set.union(*found.values()) == {"does not hold" if turned else "holds"}
    monkeypatch.setattr(_Networks, "mean", lambda self, row, protocol, metric: self.printed(row, metric) or 0.0)
    assert _verdicts(claims_of_networks(_Networks(turned)))["print"] == {"holds"}
