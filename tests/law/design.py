"""Which questions the law asks: every pair of values of two factors occurs, and every route meets every value."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from brute import METRICS, Setting
from routes import COMPARED, ROUTES, SPARK, Route
from world import FORMS, SCALES

GROUPS = {
    "hits": ("P@3", "Recall@5", "F1@4", "HitRate@2", "RR", "AP@5"),
    "whole list": ("P", "Rprec", "AUC", "RBP(p=0.7)", "RBPresidual(p=0.5)"),
    "gains": ("nDCG@5", "nDCG(gain=exp)@3", "DCG@4", "ERR@5", "nDCG(gain=binary)"),
    "parameters": ("P(rel=2)@4", "nDCG(condensed=true)@4", "Recall(rel=1)@5"),
    "judgments": ("bpref", "infAP@6", "infAP(pool=judged)", "AntiP@4", "Fallout@5", "AntiRR", "NDCL@4"),
    "popularity": ("StratRecall@5", "StratRecall(gamma=0)@5", "AOA(utility=dcg)@5", "RScore@6"),
    "novelty": ("EPC@4", "EFD@4", "ILD@4"),
    "exposure": (
        "ItemCoverage@4", "AggregateDiversity@4", "Gini@5", "Entropy", "Unjudged@4", "Coverage@5", "UserCoverage",
    ),
    "errors": ("RMSE@3", "MAE", "SDCSE@4"),
    "dialects": (
        "nDCG(dialect=lenskit)@5", "P(dialect=lenskit)@4", "nDCG(dialect=rectools)@5", "AP(dialect=recbole)@5",
        "AP(dialect=elliot)@4", "P(dialect=trec_eval)@3",
    ),
}  # fmt: skip

FACTORS: dict[str, tuple] = {
    "group": tuple(GROUPS),
    "form": FORMS,
    "scale": tuple(SCALES),
    "average": (*COMPARED, "median", "geometric(form=adjusted, epsilon=0.01)", "trimmed(share=0.2)"),
    "undefined": ("zero", "leave out"),
    "coverage": ("full", "reduced"),
    "threshold": ("auto", 1.0, 3.0),
    "repeated": ("error", "last", "first", "mean", "max", "sum"),
    "ties": ("trec_eval", "input", "average"),
    "gaps": ("keep", "close"),
    "lists": ("full", "condensed"),
    "catalogue": ("none", "train", "file"),
    "segment": ("none", "activity", "file"),
    "train": (True, False),
    "significance": ("none", "permutation", "student", "wilcoxon", "sign", "bootstrap"),
}


@dataclass(frozen=True)
class Question:
    """One configuration: the value of every factor, and the routes that are asked."""

    seed: int
    factors: tuple[tuple[str, object], ...]
    routes: tuple[Route, ...]

    def __getitem__(self, name: str):
        return dict(self.factors)[name]

    @property
    def predictions(self) -> bool:
        return any(METRICS[metric].needs_predictions for metric in GROUPS[self["group"]])

    @property
    def setting(self) -> Setting:
        names = ("average", "undefined", "coverage", "threshold", "repeated", "ties", "gaps", "lists", "catalogue")
        return Setting(
            GROUPS[self["group"]], segment=self["segment"], train=self["train"], **{n: self[n] for n in names}
        )

    def __str__(self) -> str:
        return f"{self.seed}: {', '.join(f'{name}={value}' for name, value in self.factors)}"


def possible(factors: dict) -> bool:
    """Return whether values go together: some need training ratings, a file has one way to be read, and so on."""
    needs_train = any(METRICS[metric].train for metric in GROUPS[factors["group"]])
    needs_train |= factors["average"] == "weighted(by=train)" or "train" in (factors["catalogue"],)
    needs_train |= factors["segment"] == "activity"
    if needs_train and not factors["train"]:
        return False
    if factors["gaps"] == "close" and factors["form"] != "ranks":
        return False
    if factors["ties"] != "trec_eval" and factors["form"] == "order":
        return False
    if factors["group"] == "errors" and (
        factors["scale"] in ("clicks", "signed", "grades") or factors["form"] == "order"
    ):
        return False  # the predictions of a world are stars, and they would order lists that nothing else orders
    if factors["threshold"] == 3.0 and max(SCALES[factors["scale"]]) < 3:
        return False  # nothing would be relevant
    if factors["significance"] in ("wilcoxon", "sign") and factors["average"] != "mean":
        return False
    return factors["significance"] == "none" or (factors["average"] in COMPARED and factors["group"] != "exposure")


def fits(route: Route, factors: dict) -> bool:
    """Return whether the format of a route has a place for everything that is asked."""
    if route.source == "trec" and (factors["form"] != "scores" or factors["group"] == "errors"):
        return False
    if route.entry != "experiment":
        return True
    return factors["train"] and factors["average"] in COMPARED


def design(seed: int, routes: list[Route] = ROUTES, n_routes: int = 3, tries: int = 12) -> list[Question]:
    """Return questions that together have every possible pair of values of two factors, routes among them."""
    draw = random.Random(seed)
    left = possible_pairs(draw, routes)
    order = sorted(left)
    draw.shuffle(order)
    questions: list[Question] = []
    while left:
        while order[-1] not in left:
            order.pop()
        factors, chosen = max(
            (_drawn(draw, order[-1], routes, n_routes, left) for _ in range(tries)),
            key=lambda found: len(left & pairs_of(*found)),
        )
        left -= pairs_of(factors, chosen)
        questions.append(Question(len(questions) + 1000 * seed, tuple(factors.items()), tuple(chosen)))
    return questions


_NAMED = {str(route): route for route in [*ROUTES, *SPARK]}

Pair = tuple[tuple[str, str], tuple[str, str]]
"""The values of two factors, as text."""


def _drawn(draw: random.Random, pair: Pair, routes: list[Route], n: int, left: set[Pair]) -> tuple[dict, list[Route]]:
    """Return possible values of all factors that have a pair, and the routes with the most pairs that are left."""
    while True:
        factors = _completed(draw, dict(pair))
        if factors is not None:
            break
    fitting = [route for route in routes if fits(route, factors)]
    draw.shuffle(fitting)
    wanted = dict(pair).get("route")
    fitting.sort(key=lambda route: (str(route) != wanted, -len(left & pairs_of(factors, [route]))))
    return factors, fitting[:n]


def _completed(draw: random.Random, fixed: dict[str, str]) -> dict | None:
    """Return values of all factors, some of them fixed; None if they do not go together."""
    factors = {
        name: draw.choice(values) if name not in fixed else next(v for v in values if str(v) == fixed[name])
        for name, values in FACTORS.items()
    }
    route = _NAMED.get(fixed.get("route", ""))
    return factors if possible(factors) and (route is None or fits(route, factors)) else None


def pairs_of(factors: dict, routes: Sequence[Route]) -> set[Pair]:
    values = [(name, str(value)) for name, value in factors.items()]
    return {*combinations(values, 2), *((value, ("route", str(route))) for value in values for route in routes)}


def possible_pairs(draw: random.Random, routes: list[Route]) -> set[Pair]:
    """Return every pair of values that can occur together, found by trying to complete it."""
    everything = {**FACTORS, "route": tuple(routes)}
    values = [[(name, str(value)) for value in values] for name, values in everything.items()]
    pairs = [pair for first, second in combinations(values, 2) for pair in product(first, second)]
    return {pair for pair in pairs if any(_completed(draw, dict(pair)) for _ in range(400))}
