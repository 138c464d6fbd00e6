"""Bellogín, Castells and Cantador (2017): sparsity and popularity biases, and designs that neutralise popularity.

Statistical biases in Information Retrieval metrics for recommender systems. Information Retrieval Journal 20.
"""

from __future__ import annotations

from collections.abc import Sequence

from cranfield import _checks
from cranfield.data import Ratings
from cranfield.splits import Split
from cranfield.store import Store
from cranfield.studies import _bias_figures as figures
from cranfield.studies._bias_claims import claims_of
from cranfield.studies._bias_numbers import BiasNumbers
from cranfield.studies._bias_panel import Prepared, numbered, prepared
from cranfield.studies._bias_tables import absent, design_table, printed_numbers, significance
from cranfield.studies._bias_toy import toy_example
from cranfield.studies._bias_work import ALPHAS, FIGURE_2, FIGURE_8, METRICS, systems_of, units
from cranfield.studies._claims import OF_SPLITS, Finding
from cranfield.studies._options_work import measured
from cranfield.studies._study import Exhibit, PanelResults, PanelStudy

FOLDS = 5
CURVE_FOLDS = 2
"""Number of folds for Figures 3 and 4; Figure 5 uses one split of each simulated dataset."""


def _work(
    store: Store,
    data: Sequence[Ratings | Split],
    *,
    threshold: float | None,
    seed: int,
    folds: int | None = None,
    targets: int | None = None,
    play_counts: bool | None = None,
) -> PanelResults:
    """Train, rank and measure everything that the study needs, with one panel per set of ratings."""
    count = _checks.whole("folds", FOLDS if folds is None else folds, at_least=2)
    panels = {
        name: prepared(
            name, ratings, threshold=threshold, play_counts=play_counts, targets=targets, folds=count, seed=seed
        )
        for name, ratings in numbered(data).items()
    }
    numbers = measured(
        store,
        {
            name: units(f"panel-{place}", panel.work, CURVE_FOLDS, skewed=place == 1 and not panel.positive)
            for place, (name, panel) in enumerate(panels.items(), start=1)
        },
    )
    results = [BiasNumbers(panel, numbers[name]) for name, panel in panels.items()]
    settings = {**_settings(panels, count, seed), "not run": "; ".join(absent(results)) or "nothing"}
    return PanelResults(_exhibits(results), _claims(results), settings)


def _settings(panels: dict[str, Prepared], folds: int, seed: int) -> dict[str, object]:
    works = [panel.work for panel in panels.values()]
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
    }


def _exhibits(panels: Sequence[BiasNumbers]) -> list[Exhibit]:
    missing = "".join(f" ({said})" for said in absent(panels))
    designs = tuple(dict.fromkeys((*FIGURE_2, *FIGURE_8)))
    return [
        toy_example(),
        printed_numbers(panels),
        design_table(panels, designs, METRICS),
        significance(panels),
        figures.precision_by_design(panels, missing),
        figures.bounds(panels, missing),
        figures.density_and_size(panels, missing),
        figures.skewness(panels, missing),
        figures.rating_splits(panels),
        figures.positive_ratio(panels),
        figures.neutral_designs(panels, missing),
        figures.incomplete_metrics(panels, missing),
    ]


def _claims(panels: Sequence[BiasNumbers]) -> list[Finding]:
    claims = [(panel, claim) for panel in panels for claim in claims_of(panel)]
    if len(panels) == 1:
        return [claim for _, claim in claims]
    return [claim.on(panel.name) for panel, claim in claims]


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
    by_ratings=True,
    divided=True,
)
