"""Tables and figures of Valcarce et al. (2018, 2020), made from an assessment with the papers' names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from cranfield._numbers import number_text
from cranfield._table import Cell
from cranfield.assessments import SCENARIOS, Assessment, figures
from cranfield.data import Description
from cranfield.studies.frame.exhibits import HERE, CellRow, Exhibit, Printed, exhibit
from cranfield.studies.frame.study import recognised, size_of
from cranfield.studies.valcarce.work import MetricResults

LABELS_2018 = {
    "P": "P", "Recall": "Recall", "AP": "MAP", "nDCG": "nDCG", "RR": "MRR", "bpref": "bpref", "infAP": "infAP",
}  # fmt: skip
"""The names of the seven metrics of 2018 in the paper."""
LABELS_2020 = {
    "P@100": "P", "Recall@100": "Recall", "F1@100": "F1", "AP@100": "MAP", "nDCG@100": "NDCG", "RR@100": "MRR",
    "ERR@100": "ERR", "bpref@100": "Bpref", "infAP@100": "InfAP",
}  # fmt: skip
"""The names of the nine metrics of 2020 in the paper."""
CUTOFFS = (5, *range(10, 101, 10))  # the cut-offs of figures 1 to 4 of 2018
GEOMETRIC = "geometric"  # exp(mean log max(x, 1e-5))
ZEROS_SKIPPED = "geometric(form=skipping)"
"""How the authors' tool, rec_eval, averages F1 and RR: a 0 leaves the sum of logarithms, but is counted."""
FIGURES = {"ratings": (3, 10), "items": (5, 11), "popular": (6, 12), "users": (7, 13), "large": (8, 14)}
"""The figures of each scenario in 2020: for the arithmetic mean and for the geometric mean."""
DATASETS = ("MovieLens 1M", "LibraryThing", "BeerAdvocate")
PRINTED = Printed(__package__)
"""Tables 2 and 3 and numbers in the text, and figure 1 of 2018. DP of 2018 is a sum over ordered pairs of systems."""


def title_of(scenario: str) -> str:
    """Return what a scenario removes, in words."""
    return SCENARIOS[scenario].title


def at_100(assessment: Assessment) -> Assessment:
    """Return the seven metrics of 2018 at the cut-off of 100."""
    return assessment.part({f"{metric}@100": label for metric, label in LABELS_2018.items()})


def cutoffs_of(assessment: Assessment, metric: str) -> Assessment:
    """Return one metric at all cut-offs."""
    return assessment.part({f"{metric}@{cutoff}": f"@{cutoff}" for cutoff in CUTOFFS})


def arithmetic(assessment: Assessment) -> Assessment:
    """Return the nine metrics of 2020, averaged by the arithmetic mean."""
    return assessment.part(LABELS_2020)


def geometric(assessment: Assessment) -> Assessment:
    """Return the nine metrics of 2020, averaged by the geometric mean."""
    return assessment.part({metric: f"G{label}" for metric, label in LABELS_2020.items()}, GEOMETRIC)


def exhibits_of_2018(results: MetricResults) -> list[Exhibit]:
    """Return the tables and figures of 2018."""
    whole, data = results.assessment, results.data
    seven, ndcg = at_100(whole), cutoffs_of(whole, "nDCG")
    among = "P, Recall, MAP, nDCG, MRR, bpref and infAP at 100"
    power = f"Table 3: discriminative power (DP, lower is better) of {among}"
    taus = {
        f"tau of {metric}@5 and {metric}@100": float(cutoffs_of(whole, metric).correlation()[0, -1])
        for metric in ("P", "Recall", "nDCG")
    }
    return [
        dataset_table(data, "2018", {"Gini": data.gini_items}),
        _power_table(seven, results, "2018", power, ordered=True, total=False),
        _figure_1_table(ndcg),
        _numbers_table(data, "2018", taus, "Numbers that the text of section 6 states"),
        _robustness_table(seven, "robustness", "Mean tau with the whole test set, the numbers behind figures 6 and 7"),
        _robustness_table(ndcg, "robustness-cutoffs", "The same for nDCG by cut-off, behind figures 2 and 3"),
        _systems_table(seven),
        _correlation_figure(ndcg, "figure-1", "Figure 1: tau between the cut-offs of nDCG"),
        _robustness_figure(ndcg, "ratings", "figure-2", "Figure 2: nDCG by cut-off as ratings are missing at random"),
        _robustness_figure(
            ndcg, "popular", "figure-3", "Figure 3: nDCG by cut-off as the most popular items are missing"
        ),
        _power_figure(ndcg, "figure-4", "Figure 4: the largest p-values of nDCG by cut-off"),
        _correlation_figure(seven, "figure-5", f"Figure 5: tau between {among}"),
        _robustness_figure(seven, "ratings", "figure-6", f"Figure 6: {among} as ratings are missing at random"),
        _robustness_figure(seven, "popular", "figure-7", f"Figure 7: {among} as the most popular items are missing"),
        _power_figure(seven, "figure-8", f"Figure 8: the largest p-values of {among}"),
    ]


def exhibits_of_2020(results: MetricResults) -> list[Exhibit]:
    """Return the tables and figures of 2020."""
    mean, geo, data = arithmetic(results.assessment), geometric(results.assessment), results.data
    *names, last = LABELS_2020.values()
    nine = f"{', '.join(names)} and {last} at 100"
    ginis = {"User Gini": data.gini_users, "Item Gini": data.gini_items}
    power = f"Table 3: discriminative power (DP, lower is better) of {nine}"
    between = results.assessment.frame("correlation").filter(average_a="mean", average_b=GEOMETRIC)
    taus = dict(between.select("metric_a", "tau").iter_rows())
    numbers = {
        "share of the recommended items with a test rating": results.judged,
        "tau of MAP and GMAP": taus["AP@100"],
        "tau of F1 and GF1": taus["F1@100"],
    }
    drawn = [
        _correlation_figure(mean, "figure-01", f"Figure 1: tau between {nine}"),
        _power_figure(mean, "figure-02", f"Figure 2: the 20 largest p-values of {nine}"),
        _values_figure(mean, "ratings", "figure-04", "Figure 4: averaged values as ratings are missing at random"),
        _correlation_figure(geo, "figure-09", "Figure 9: tau between the geometric means"),
    ]
    for scenario, numbered in FIGURES.items():
        for assessment, number, of in zip((mean, geo), numbered, ("metrics", "geometric means"), strict=True):
            caption = f"Figure {number}: tau of the {of} with themselves, {title_of(scenario)}"
            drawn.append(_robustness_figure(assessment, scenario, f"figure-{number:02}", caption))
    return [
        dataset_table(data, "2020", ginis),
        _power_table(mean, results, "2020", power, ordered=False, total=True),
        _numbers_table(data, "2020", numbers, "Numbers that the text of sections 6.3.1 and 7.1 states"),
        _robustness_table(mean, "robustness", "Mean tau with the whole test set, behind figures 3 and 5 to 8"),
        _robustness_table(geo, "robustness-geometric", "The same for geometric means, behind figures 10 to 14"),
        _systems_table(mean),
        *sorted(drawn, key=lambda own: own.name),
    ]


def skipping(assessment: Assessment) -> Assessment:
    """Return `geometric`, with GF1 and GMRR as the authors' tool averages them."""
    plain = geometric(assessment)
    other = assessment.part({metric: f"G{label}" for metric, label in LABELS_2020.items()}, ZEROS_SKIPPED)
    named = ["GF1", "GMRR"]
    places = [plain.metrics.index(name) for name in named]
    whole = plain.whole.copy()
    whole[:, :, places] = other.whole[:, :, places]
    mixed = pl.when(pl.col("metric").is_in(named)).then(other.samples["values"]).otherwise(pl.col("values"))
    return replace(plain, whole=whole, samples=plain.samples.with_columns(values=mixed))


def _run(data: Description) -> str:
    return f"{HERE}: {data.name or 'ratings'}"


def dataset_table(data: Description, paper: str, further: Mapping[str, float]) -> Exhibit:
    """Return the printed rows, and this run's below; ``further`` are its columns after the density."""
    columns = ["Density", *further]
    rows = [
        [
            name,
            *(f"{count:,}" for count in size_of(name)),
            *(PRINTED.text(f"{paper} table 2", name, column) for column in columns),
        ]
        for name in DATASETS
    ]
    numbers = [f"{data.users:,}", f"{data.items:,}", f"{data.ratings:,}", f"{100 * data.density:.3f}%"]
    rows.append([_run(data), *numbers, *(f"{value:.3f}" for value in further.values())])
    header = ["Dataset", "Users", "Items", "Ratings", *columns]
    return exhibit("table-2", "Table 2: the datasets", header, rows, [_sameness(data)])


def _power_table(
    assessment: Assessment, results: MetricResults, paper: str, caption: str, *, ordered: bool, total: bool
) -> Exhibit:
    """Return the printed rows, and this run's below: doubled if the paper sums over ``ordered`` pairs."""
    data, times = results.data, 2.0 if ordered else 1.0
    dp = dict(assessment.power.select("metric", "dp").iter_rows())
    values: dict[str, dict[str, float]] = {name: {} for name in DATASETS}
    for name, metric, _, text in PRINTED.table(f"{paper} table 3"):
        values[name][metric] = float(text)
    if total:
        values["Total"] = {name: sum(values[own][name] for own in DATASETS) for name in assessment.metrics}
    values[_run(data)] = {name: times * dp.get(name, float("nan")) for name in assessment.metrics}
    notes = [_sameness(data)]
    if results.alike:
        doubles = sorted({pair.systems[1] for pair in results.alike})
        others = ~(pl.col("system_a").is_in(doubles) | pl.col("system_b").is_in(doubles))
        once = dict(assessment.curves.filter(others).group_by("metric").agg(pl.col("p").sum()).iter_rows())
        values[f"the same, without {', '.join(doubles)}"] = {name: times * once[name] for name in assessment.metrics}
        notes += map(str, results.alike)
    cells: list[CellRow] = []
    for name, row in values.items():
        digits, own = 1 if ordered and name in DATASETS else 3, [row[metric] for metric in assessment.metrics]
        lowest = np.nanmin([np.inf, *own])
        cells.append([name, *(Cell(number_text(value, digits), best=value == lowest) for value in own)])
    if ordered:
        notes.append("the paper counts each pair of systems twice, so the sums of this run are doubled here")
    notes.append(f"{len(assessment.systems)} systems here, 21 in the paper; DP compares metrics within a row only")
    rows = [(name, metric, row[metric]) for name, row in values.items() for metric in row]
    frame = pl.DataFrame(rows, schema=["dataset", "metric", "dp"], orient="row")
    return exhibit("table-3", caption, ["Dataset", *assessment.metrics], cells, notes, frame)


def _sameness(data: Description) -> str:
    same, others = recognised(data), "none of the paper's datasets, so printed numbers are for orientation"
    relation = f"the {same} data" if same in DATASETS else others
    return f"by their numbers of users, items and ratings, the ratings of this run are {relation}"


def _numbers_table(data: Description, paper: str, here: Mapping[str, float], caption: str) -> Exhibit:
    rows = [(number, name, text, here[number]) for name, number, _, text in PRINTED.table(f"{paper} text")]
    frame = pl.DataFrame(rows, schema=["number", "dataset", "printed", "here"], orient="row")
    cells = [[*row[:3], number_text(row[3], 3)] for row in rows]
    header = ["Number", "Printed for", "Printed", HERE.capitalize()]
    return exhibit("numbers-in-the-text", caption, header, cells, [_sameness(data)], frame)


def _figure_1_table(ndcg: Assessment) -> Exhibit:
    tau, names = ndcg.correlation(), ndcg.metrics
    rows: list[list[str]] = []
    tidy = []
    for i, a in enumerate(names):
        rows.append([a])
        for j, b in enumerate(names):
            here, printed = float(tau[i, j]), PRINTED.number("2018 figure 1", "MovieLens 1M", a, b)
            rows[-1].append(number_text(here, 2) + ("" if printed is None else f" ({printed:.2f})"))
            if printed is not None:
                tidy.append((a, b, here, printed))
    caption = "Figure 1 in numbers: tau between cut-offs of nDCG here, and as printed for MovieLens 1M in brackets"
    frame = pl.DataFrame(tidy, schema=["a", "b", "here", "printed"], orient="row")
    return exhibit("figure-1-numbers", caption, ["nDCG", *names], rows, frame=frame)


def _systems_table(assessment: Assessment) -> Exhibit:
    means = assessment.whole[:, 0].mean(axis=0)
    order = np.argsort(-np.nan_to_num(means[0], nan=-np.inf), kind="stable")
    best = np.nanmax(np.where(np.isnan(means), -np.inf, means), axis=1)
    rows = [
        [assessment.systems[s], *(Cell(f"{means[m, s]:.4f}", best=means[m, s] == best[m]) for m in range(len(means)))]
        for s in order
    ]
    caption = "Scores of every system, averaged over users and folds"
    frame = pl.DataFrame({"system": assessment.systems, **dict(zip(assessment.metrics, means))})
    return exhibit("systems", caption, ["System", *assessment.metrics], rows, frame=frame)


def _robustness_table(assessment: Assessment, name: str, caption: str) -> Exhibit:
    frame = (
        assessment.frame("robustness")
        .filter(pl.col("size") < 1.0)
        .group_by("scenario", "metric", maintain_order=True)
        .agg(tau=pl.col("tau").drop_nans().mean(), fold_sd=pl.col("fold_sd").mean(), sizes=pl.len())
    )
    tau = {(scenario, metric): value for scenario, metric, value in frame.select("scenario", "metric", "tau").rows()}
    rows: list[CellRow] = []
    for scenario in assessment.scenarios:
        values = [tau.get((scenario, metric)) for metric in assessment.metrics]
        best = max((value for value in values if value is not None), default=None)
        rows.append([title_of(scenario), *(Cell(number_text(value, 3), best=value == best) for value in values)])
    return exhibit(name, caption, ["Missing", *assessment.metrics], rows, frame=frame)


def _robustness_figure(assessment: Assessment, scenario: str, name: str, caption: str) -> Exhibit:
    frame = assessment.frame("robustness").filter(pl.col("scenario") == scenario)
    return Exhibit(name, caption, frame, draw=lambda: figures.robustness(assessment, scenario=scenario))


def _values_figure(assessment: Assessment, scenario: str, name: str, caption: str) -> Exhibit:
    selected = replace(assessment, samples=assessment.samples.filter(pl.col("scenario") == scenario))
    return Exhibit(name, caption, selected.frame("values").drop("fold_sd"), draw=lambda: figures.values(selected))


def _power_figure(assessment: Assessment, name: str, caption: str) -> Exhibit:
    return Exhibit(name, caption, assessment.curves, draw=lambda: figures.power(assessment, first=20))


def _correlation_figure(assessment: Assessment, name: str, caption: str) -> Exhibit:
    tau = assessment.correlation()
    frame = pl.DataFrame({"metric": assessment.metrics, **dict(zip(assessment.metrics, tau.T))})

    def draw() -> Any:
        chart = figures.correlation(assessment)
        for layer in getattr(chart, "layer", [chart]):  # in the order of the paper instead of that of the groups
            layer.encoding.x.sort = layer.encoding.y.sort = list(assessment.metrics)
        return chart

    return Exhibit(name, caption, frame, draw=draw)
