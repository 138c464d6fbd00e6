"""Cañamares, Castells and Moffat (2020): the decisions of an offline evaluation, and what each does to a comparison.

Offline evaluation options for recommender systems. Information Retrieval Journal 23.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._table import Table
from cranfield.data import Ratings, describe
from cranfield.store import Store
from cranfield.studies import _options_figures as figures
from cranfield.studies._claims import OF_SPLITS, Finding
from cranfield.studies._options_claims import claims_of
from cranfield.studies._options_panel import Panel
from cranfield.studies._options_tables import Line, comparison_table
from cranfield.studies._options_work import (
    AVERAGES,
    GAINED,
    NDCG,
    PRECISION,
    UNRATED,
    SplitWork,
    factors,
    measured,
    neighbours,
    units,
)
from cranfield.studies._study import Exhibit, PanelResults, PanelStudy, data_names

MOVIELENS, NETFLIX = "MovieLens", "Netflix"
SIZES = {MOVIELENS: (6040, 3706, 1_000_209), NETFLIX: (480_189, 17_770, 100_480_507)}
"""Users, items and ratings of the paper's datasets (Table 1), by which they are recognised."""
DENSITY = {MOVIELENS: "4.47%", NETFLIX: "1.18%"}
NEIGHBOURS = {MOVIELENS: 100, NETFLIX: 1000}
"""The number of neighbours in kNN; 100 for other data."""

_START = "AM, unweighted"

TABLE_2 = [
    Line(("Prec@10",), "average", _START, PRECISION, {
        MOVIELENS: (0.416, 0.423, 0.039), NETFLIX: (0.382, 0.409, 0.0),
    }),
    Line(("NDCG@10",), "average", _START, NDCG, {
        MOVIELENS: (0.452, 0.455, 0.897), NETFLIX: (0.416, 0.442, 0.0),
    }),
]  # fmt: skip

_PRINTED_GAINS = {
    ("NDCG@10", "g2"): (0.393, 0.389, 0.002),
    ("RBP", "g1"): (0.410, 0.410, 0.390),
    ("RBP", "g2"): (0.339, 0.332, 0.011),
}

TABLE_3 = [
    Line(("Prec@10", "g1"), "gain", "full", PRECISION, {MOVIELENS: (0.416, 0.423, 0.039)}),
    Line(("NDCG@10", "g1"), "gain", "full", NDCG, {MOVIELENS: (0.452, 0.455, 0.897)}),
    *(
        Line((metric, gain), "gain", "full", spelling, {MOVIELENS: _PRINTED_GAINS[metric, gain[:2]]})
        for (metric, gain), spelling in GAINED.items()
    ),
]

_PRINTED_AVERAGES = {
    "AM, unweighted": ((0.416, 0.423, 0.039), (0.452, 0.455, 0.897)),
    "AM, Test weighted": ((0.591, 0.586, 0.123), (0.619, 0.611, 0.001)),
    "AM, Test relevant": ((0.597, 0.590, 0.013), (0.625, 0.612, 1.826e-4)),
    "GM, unweighted": ((0.294, 0.308, 1.769e-6), (0.320, 0.332, 1.653e-4)),
}

TABLE_4 = [
    Line((average, name), "average", average, metric, {MOVIELENS: printed})
    for average in AVERAGES
    for name, metric, printed in zip(("Prec@10", "NDCG@10"), (PRECISION, NDCG), _PRINTED_AVERAGES[average])
]


def _work(
    store: Store,
    data: Sequence[Ratings],
    *,
    threshold: float,
    seed: int,
    seeds: int | None = None,
    curve_seeds: int | None = None,
) -> PanelResults:
    """Train, rank and measure everything that the study needs, with one panel per set of ratings."""
    wanted = _checks.whole("seeds", 10 if seeds is None else seeds)
    curves = _checks.whole("curve_seeds", min(3, wanted) if curve_seeds is None else curve_seeds)
    if curves > wanted:
        raise SettingError(
            f"curve_seeds={curves} is more than seeds={wanted}; the curves use the first splits of the starting point"
        )
    names = data_names(data)
    same = {name: _paper_dataset(ratings) for name, ratings in names.items()}
    k = {name: NEIGHBOURS.get(same[name] or "", NEIGHBOURS[MOVIELENS]) for name in names}
    measurements = {
        name: units(
            f"panel-{place}",
            SplitWork(ratings, k[name], threshold),
            range(seed, seed + wanted),
            range(seed, seed + curves),
        )
        for place, (name, ratings) in enumerate(names.items(), start=1)
    }
    numbers = measured(store, measurements)
    panels = [Panel(name, ratings, same[name], k[name], threshold, numbers[name]) for name, ratings in names.items()]
    settings = {
        "systems": [neighbours(ratings) for ratings in dict.fromkeys(k.values())] + [factors(seed)],
        "threshold": threshold,
        "splits of the starting point": wanted,
        "splits of the curves": curves,
        "seed": seed,
    }
    return PanelResults(_exhibits(panels), _claims(panels), settings)


def _paper_dataset(data: Ratings) -> str | None:
    """Return which of the paper's datasets the ratings are, judging by their numbers of users, items and ratings."""
    description = describe(data)
    return next(
        (name for name, size in SIZES.items() if size == (description.users, description.items, description.ratings)),
        None,
    )


def _exhibits(panels: Sequence[Panel]) -> list[Exhibit]:
    missing = [name for name in SIZES if name not in {panel.printed for panel in panels}]
    further = [f"{NETFLIX}, k = 100, split of 0.8"] if NETFLIX in missing else []
    return [
        _datasets(panels),
        *_tables(panels, missing),
        figures.distributions(panels, missing),
        figures.by_ratio(panels, missing, 2, NDCG, "full", "NDCG@10 by split ratio, full lists"),
        figures.by_ratio(panels, missing, 3, UNRATED, "full", "share of unrated items in the top ten, by split ratio"),
        figures.by_ratio(panels, missing, 4, NDCG, "condensed", "NDCG@10 by split ratio, condensed lists"),
        figures.depths(panels, missing),
        figures.cutoffs(panels, [*missing, *further]),
        figures.gaps(panels, missing),
        figures.overlaps(panels, missing),
    ]


def _tables(panels: Sequence[Panel], missing: Sequence[str]) -> list[Exhibit]:
    """Return Tables 2 to 4; in the paper the last two are for MovieLens only."""
    movielens = [name for name in missing if name == MOVIELENS]
    two_gains = (
        "g2 is printed as (2^r − 1)/(2^rmax − 1), and decision C2 has (2^(r−1) − 1)/(2^(rmax−1) − 1); both are shown, "
        "each with the printed numbers"
    )
    geometric = "GM is the adjusted geometric mean with ε = 0.01; its p is that of the logarithms, as in the text"
    start = "Table 2: kNN and MF at the starting point: random split of 0.5, full lists"
    gains, averages = "Table 3: gain mappings and metrics on lists of ten", "Table 4: averages over users"
    return [
        comparison_table("table-2", start, ["Metric"], TABLE_2, panels, missing),
        comparison_table("table-3", gains, ["Metric", "Gain"], TABLE_3, panels, movielens, two_gains),
        comparison_table("table-4", averages, ["Average", "Metric"], TABLE_4, panels, movielens, geometric),
    ]


def _datasets(panels: Sequence[Panel]) -> Exhibit:
    header = ["Dataset", "Users", "Items", "Ratings", "Density"]
    rows = [[name, *(f"{count:,}" for count in size), DENSITY[name]] for name, size in SIZES.items()]
    for panel in panels:
        own = describe(panel.data)
        sizes = [f"{count:,}" for count in (own.users, own.items, own.ratings)]
        rows.append([f"this run: {panel.name}", *sizes, f"{100 * own.density:.2f}%"])
    caption = "Table 1: the datasets"
    notes = [
        f"{panel.name} is the paper's {panel.printed} data by its numbers"
        if panel.printed
        else f"{panel.name} is none of the paper's datasets: printed numbers are for orientation"
        for panel in panels
    ]
    frame = pl.DataFrame(rows, schema=header, orient="row")
    return Exhibit("table-1", caption, frame, Table(header, rows, caption, notes))


def _claims(panels: Sequence[Panel]) -> list[Finding]:
    claims = [(panel, claim) for panel in panels for claim in claims_of(panel)]
    if len(panels) == 1:
        return [claim for _, claim in claims]
    return [claim.on(panel.name) for panel, claim in claims]


CANAMARES_2020 = PanelStudy(
    name="canamares2020",
    reference=(
        "Rocío Cañamares, Pablo Castells, Alistair Moffat: Offline evaluation options for recommender systems. "
        "Information Retrieval Journal 23, 2020."
    ),
    options=("seeds", "curve_seeds"),
    several=True,
    rule=OF_SPLITS,
    work=_work,
)
