"""Bellogín, Castells and Cantador (2017): sparsity and popularity biases, and designs that neutralise popularity.

Statistical biases in Information Retrieval metrics for recommender systems. Information Retrieval Journal 20.
"""

from __future__ import annotations

from collections.abc import Sequence

from cranfield import _checks
from cranfield.data import Ratings
from cranfield.experiments.store import Store
from cranfield.studies import _bias_figures as figures
from cranfield.studies._bias_claims import claims_of
from cranfield.studies._bias_numbers import BiasNumbers
from cranfield.studies._bias_panel import ABSENT, Prepared, numbered, prepared
from cranfield.studies._bias_tables import design_table, printed_numbers, significance
from cranfield.studies._bias_toy import toy_example
from cranfield.studies._bias_work import ALPHAS, FIGURE_2, FIGURE_8, METRICS, systems_of, units
from cranfield.studies._claims import OF_SPLITS, Finding
from cranfield.studies._options_work import measured
from cranfield.studies._study import Exhibit, PanelResults, PanelStudy

FOLDS = 5
CURVE_FOLDS = 2
"""Figures 3 and 4 are measured on so many folds, and Figure 5 on one split of each simulated dataset."""


def _work(
    store: Store,
    data: Sequence[Ratings],
    *,
    threshold: float | None,
    seed: int,
    folds: int | None = None,
    targets: int | None = None,
    play_counts: bool | None = None,
) -> PanelResults:
    """Train, rank and measure all that the study needs, each set of ratings as a panel."""
    count = _checks.whole("folds", FOLDS if folds is None else folds, at_least=2)
    panels = {
        name: prepared(name, one, threshold=threshold, play_counts=play_counts, targets=targets, folds=count, seed=seed)
        for name, one in numbered(data).items()
    }
    numbers = measured(
        store,
        {
            name: units(f"panel-{place}", one.work, CURVE_FOLDS, skewed=place == 1 and not one.positive)
            for place, (name, one) in enumerate(panels.items(), start=1)
        },
    )
    found = [BiasNumbers(one, numbers[name]) for name, one in panels.items()]
    return PanelResults(_exhibits(found), _claims(found), _settings(panels, count, seed))


def _settings(panels: dict[str, Prepared], folds: int, seed: int) -> dict[str, object]:
    works = [one.work for one in panels.values()]
    return {
        "systems": list(systems_of(seed).values()),
        "threshold": [work.threshold for work in works],
        "other threshold": [work.other for work in works],
        "target sets of 1R": works[0].targets,
        "non-relevant items of AR": [work.nonrelevant for work in works],
        "folds": folds,
        "folds of curves": min(CURVE_FOLDS, folds),
        "skewness": list(ALPHAS),
        "metrics": list(METRICS),
        "seed": seed,
        "not run": ABSENT,
    }


def _exhibits(found: Sequence[BiasNumbers]) -> list[Exhibit]:
    missing = f" (not run: {ABSENT})"
    designs = tuple(dict.fromkeys((*FIGURE_2, *FIGURE_8)))
    return [
        toy_example(),
        printed_numbers(found),
        design_table(found, designs, METRICS),
        significance(found),
        figures.precision_by_design(found, missing),
        figures.bounds(found, missing),
        figures.density_and_size(found, missing),
        figures.skewness(found, missing),
        figures.rating_splits(found),
        figures.positive_ratio(found),
        figures.neutral_designs(found, missing),
        figures.incomplete_metrics(found, missing),
    ]


def _claims(found: Sequence[BiasNumbers]) -> list[Finding]:
    claims = [(one, claim) for one in found for claim in claims_of(one)]
    if len(found) == 1:
        return [claim for _, claim in claims]
    return [claim.on(one.name) for one, claim in claims]


BELLOGIN_2017 = PanelStudy(
    name="bellogin2017",
    reference=(
        "Alejandro Bellogín, Pablo Castells, Iván Cantador: Statistical biases in Information Retrieval metrics for "
        "recommender systems. Information Retrieval Journal 20, 2017."
    ),
    options=("folds", "targets", "play_counts"),
    several=True,
    rule=OF_SPLITS,
    work=_work,
    threshold=None,
)
