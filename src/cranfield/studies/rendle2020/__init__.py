"""Rendle et al. (2020): neural collaborative filtering against matrix factorisation, on its own benchmark.

Neural collaborative filtering vs. matrix factorization revisited. RecSys 2020.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from cranfield._errors import SettingError
from cranfield._figures import altair, themed
from cranfield._numbers import DASH
from cranfield._table import Cell
from cranfield.data import Ratings
from cranfield.metrics import kendall_tau_b
from cranfield.recommenders import displayed_name, recommender
from cranfield.studies.frame.claims import ClaimFindings, Saying, finding_over_splits
from cranfield.studies.frame.exhibits import CellRow, Exhibit, curve, exhibit
from cranfield.studies.frame.study import Study, StudyFiles, StudyResults, recognised
from cranfield.studies.rendle2020 import work
from cranfield.studies.rendle2020.work import NcfBenchmark, NcfNumbers, NcfWork, Trained, of_size, read_negatives

_SEEDS = 3
_SEVERAL_SEEDS, _PRETRAINED = 8, 64  # factors
_TWO = "sampled: among the published negatives; full: among all items that the user has not rated in training"
_ALPHA = 0.05


def trainings(seed: int, epochs: int | None = None) -> list[Trained]:
    """Return the systems to train: MF and NeuMF with 8 factors with three seeds, all others with one.

    The settings are the published ones: for SLIM and the older iALS those of Ferrari Dacrema et al. (2019) as listed by
    Anelli et al. (2021), for MF and the newer iALS those in the authors' programs. A rating counts 1, as in the paper.

    - SLIM: an elastic net with α = 0.0788 and ratio ρ = 0.0000119 over n = 6,040 users: λ = n α ρ, β = n α (1 − ρ).
    - iALS, 46 factors: a confidence of 1 + 50 ln(1 + 1/10) for rated items.
    - NeuMF, 64 factors: two layers and pretraining, as in Ferrari Dacrema et al. Epochs of both halves together made it
      worse on a held-out item of each user, so there are none.

    ``epochs`` replaces the 256 epochs of MF, and the 20 of NeuMF (with 64 factors, 12).
    """
    others = {
        work.POPULARITY: "popularity",
        work.ITEM_KNN: "itemknn(binary=true)",
        work.SLIM: "slim(binary=true, l1=0.00566, l2=475.9, neighbours=544)",
        **{f"{work.EASE}, λ = {ridge}": f"ease(l2={ridge})" for ridge in work.RIDGES},
        work.IALS_2019: "wrmf(factors=46, alpha=4.766, regularization=0.00001, iterations=20, steps=10)",
        work.IALS_2022: "ials(factors=192, epochs=12, unobserved=0.3, regularization=0.007)",
    }
    wanted = [Trained(row, spelling, seed) for row, spelling in others.items()]
    mf = "mf-pointwise(factors={}, epochs={}, negatives=8, others=all, rate=0.002, regularization=0.005)"
    neumf = "neumf(factors={}, epochs={}, negatives=4, batch=256)"
    pretrained = "neumf(factors={}, epochs={}, negatives=4, batch=1024, depth=2, pretraining=12)"
    for kind, sizes in work.SIZES.items():
        for factors in sizes:
            network = (pretrained, 12) if factors == _PRETRAINED else (neumf, 20)
            spelling, usual = (mf, 256) if kind == work.MF else network
            spelled = spelling.format(factors, usual if epochs is None else epochs)
            seeds = _SEEDS if factors == _SEVERAL_SEEDS else 1
            wanted += [Trained(of_size(kind, factors), spelled, seed + extra) for extra in range(seeds)]
    return wanted


def _given(systems: Sequence[str], seed: int) -> list[Trained]:
    """Return the given systems to train instead of the paper's; a system of the paper keeps the name of its row."""
    rows = {trained.spelling: trained.row for trained in trainings(seed)}
    wanted = []
    for system in systems:
        recommender(system)
        wanted.append(Trained(rows.get(system, displayed_name(system)), system, seed))
    return wanted


def _plan(
    data: Sequence[Ratings],
    *,
    threshold: float | None,
    seed: int,
    negatives: Any,
    epochs: int | None,
    systems: Sequence[str] | None,
) -> Callable[[StudyFiles], StudyResults]:
    if threshold is not None:
        raise SettingError("rendle2020 takes no threshold: the test item of a user is relevant, whatever its rating")
    if negatives is None:
        raise SettingError(
            "rendle2020 needs the test item of each user and the items that it is ranked among; give negatives "
            "(--negatives FILE) with the columns user, item and negatives"
        )
    wanted = trainings(seed, epochs) if systems is None else _given(systems, seed)
    if len({trained.row for trained in wanted}) < 2:
        raise SettingError("a study compares systems; give at least two")
    benchmark = NcfBenchmark.of(data[0], read_negatives(negatives))

    def results(files: StudyFiles) -> StudyResults:
        """Train, rank and measure, under both protocols."""
        runs, failed = NcfWork(files.store, benchmark).runs(wanted)
        numbers = NcfNumbers(benchmark, runs, failed, recognised(data[0]), epochs)
        settings = {
            "systems": [f"{trained.row} = {trained.spelling}, seed {trained.seed}" for trained in runs],
            "not run": [f"{row} ({why})" for row, why in failed.items()] or "none",
            "test": "the published item of each user",
            "sampled": "ranked among the published negatives",
            "full": "ranked among all items that the user has not rated in training",
            "seed": seed,
        }
        return StudyResults(exhibits_of(numbers), claims_of(numbers), settings)

    return results


RENDLE_2020 = Study(
    "rendle2020",
    "Steffen Rendle, Walid Krichene, Li Zhang, John Anderson: Neural Collaborative Filtering vs. Matrix "
    "Factorization Revisited. RecSys 2020.",
    ("negatives", "epochs", "systems"),
    _plan,
    threshold=None,
)


def exhibits_of(numbers: NcfNumbers) -> list[Exhibit]:
    """Return all tables and figures."""
    exhibits = [_main_table(numbers), _verdicts(numbers), _corrected(numbers)]
    if numbers.best_ease(work.SAMPLED, "nDCG@10") is not None:
        exhibits.insert(1, _ease_table(numbers))
    sizes = {factors for kind, own in work.SIZES.items() for factors in own if of_size(kind, factors) in numbers.rows}
    if len(sizes) > 1:
        exhibits += [_figure(numbers, place, metric) for place, metric in enumerate(work.METRICS, start=1)]
    return exhibits


def _main_table(numbers: NcfNumbers) -> Exhibit:
    places = {
        protocol: sorted(numbers.rows, key=lambda row: -numbers.mean(row, protocol, "nDCG@10"))
        for protocol in work.PROTOCOLS
    }
    rows: list[CellRow] = []
    for row in numbers.rows:
        line: list[str | Cell] = [row, str(len(numbers.of(row, work.SAMPLED, "nDCG@10")))]
        for metric in work.METRICS:
            printed = numbers.printed(row, metric)
            shown = DASH if printed is None else f"{printed:.4f}"
            line += [_cell(numbers, row, work.SAMPLED, metric), shown, _cell(numbers, row, work.FULL, metric)]
        rows.append([*line, *(str(places[protocol].index(row) + 1) for protocol in work.PROTOCOLS)])
    columns = [name for metric in work.METRICS for name in (f"{metric}, sampled", "printed", f"{metric}, full")]
    header = ["System", "Seeds", *columns, "place, sampled", "place, full"]
    doubled = numbers.benchmark.doubled
    notes = [
        _TWO,
        *([f"{doubled} of the published negatives are the test item itself; they were left out"] if doubled else []),
        "± is the standard deviation over seeds; places are by nDCG@10",
        *([f"MF and NeuMF were trained {numbers.epochs} epochs here"] if numbers.epochs else []),
        "printed values of popularity and NeuMF with 8 factors are from Ferrari Dacrema et al. (2019), that of EASE is "
        "with λ = 1320; all but the first two were quoted from the literature and not checked against the papers",
        *(f"{row} was not run: {why}" for row, why in numbers.failed.items()),
    ]
    caption = "HR@10 and nDCG@10 with the printed values, among sampled items and in the full catalogue"
    return exhibit("table-1", caption, header, rows, notes, numbers.values)


def _cell(numbers: NcfNumbers, row: str, protocol: str, metric: str) -> Cell:
    values = numbers.of(row, protocol, metric)
    best = max(numbers.mean(other, protocol, metric) for other in numbers.rows)
    spread = f" ±{values.std(ddof=1):.4f}" if len(values) > 1 else ""
    return Cell(f"{values.mean():.4f}{spread}", best=float(values.mean()) == best)


def _ease_table(numbers: NcfNumbers) -> Exhibit:
    header = ["EASE", *(f"{metric}, {protocol}" for protocol in work.PROTOCOLS for metric in work.METRICS)]
    eases = numbers.rows_of(work.EASE)
    rows: list[CellRow] = []
    for row in eases:
        cells = [
            Cell(f"{numbers.mean(row, protocol, metric):.4f}", best=row == numbers.best_ease(protocol, metric))
            for protocol in work.PROTOCOLS
            for metric in work.METRICS
        ]
        rows.append([row.removeprefix(f"{work.EASE}, "), *cells])
    sampled, full = (numbers.best_ease(protocol, "nDCG@10") for protocol in work.PROTOCOLS)
    said = (
        f"By nDCG@10 sampled ranking prefers {sampled}, and full ranking {full}: a setting that is chosen under one "
        "protocol is not the best under the other."
        if sampled != full
        else f"By nDCG@10 both protocols prefer {sampled}."
    )
    caption = "The same system with other settings: which is best depends on the protocol"
    frame = numbers.values.filter(pl.col("row").is_in(eases))
    return exhibit("table-2", caption, header, rows, [said, _TWO], frame)


def _verdicts(numbers: NcfNumbers) -> Exhibit:
    columns = ["system_a", "system_b", pl.col("mean_a") - pl.col("mean_b"), "p_corrected"]
    sampled, full = (numbers.compared(protocol).rows.select(columns) for protocol in work.PROTOCOLS)
    rows, lines = [], []
    for a, b, *both in sampled.join(full, on=["system_a", "system_b"], maintain_order="left").iter_rows():
        verdicts = [_verdict(a, b, *both[:2]), _verdict(a, b, *both[2:])]
        same = verdicts[0] == verdicts[1]
        shown = [f"{verdict} ({difference:+.4f})" for verdict, difference in zip(verdicts, both[::2])]
        cells = [shown[0], f"{both[1]:.4f}", shown[1], f"{both[3]:.4f}"]
        rows.append([f"{a} − {b}", *cells, "yes" if same else "no"])
        lines.append((a, b, *both, same))
    differ = sum(not line[-1] for line in lines)
    notes = [
        f"nDCG@10 over users, exact permutation test, corrected over all pairs; first seed only. {differ} of "
        f"{len(lines)} pairs have a different verdict in the full catalogue.",
        _TWO,
    ]
    caption = "Who is better, among sampled items and in the full catalogue"
    schema = ["system_a", "system_b", "sampled", "sampled_p", "full", "full_p", "same"]
    header = ["Pair", "sampled", "p", "full", "p", "the same verdict"]
    return exhibit("table-3", caption, header, rows, notes, pl.DataFrame(lines, schema=schema, orient="row"))


def _corrected(numbers: NcfNumbers) -> Exhibit:
    header = ["System", "Metric", "sampled", "corrected", "95 % interval", "full", "inside"]
    frame = numbers.corrected
    rows = []
    for row, metric, sampled, estimate, lower, upper, identified, full, inside in frame.iter_rows():
        shown = f"{estimate:.4f}{'' if identified else '?'}"
        cells = [f"{sampled:.4f}", shown, f"[{lower:.4f}, {upper:.4f}]", f"{full:.4f}"]
        rows.append([row, metric, *cells, "yes" if inside else "no"])
    said = (
        f"{frame['inside'].sum()} of {len(frame)} intervals contain the value of the full catalogue; "
        f"{frame['identified'].sum()} of {len(frame)} values are identified."
    )
    orders = []
    for (metric,), own in frame.group_by("metric", maintain_order=True):
        sampled, corrected = (kendall_tau_b(own[column], own["full"]) for column in ("sampled", "estimate"))
        orders.append(f"{metric}: {sampled:.2f} of the sampled and {corrected:.2f} of the corrected values")
    notes = [
        f"{said} Kendall's tau with the full order by {'; by '.join(orders)}.",
        "?: not identified, because values in the whole interval agree with the sampled ranks",
    ]
    caption = "What sampled ranks say about the full catalogue, and what is measured there"
    return exhibit("table-4", caption, header, rows, notes, frame)


def _verdict(a: str, b: str, difference: float, p: float) -> str:
    if p > _ALPHA:
        return "no significant difference"
    return a if difference > 0 else b


def _figure(numbers: NcfNumbers, place: int, metric: str) -> Exhibit:
    rows = [
        (kind, factors, protocol, float(value))
        for kind, own in work.SIZES.items()
        for factors in own
        for protocol in work.PROTOCOLS
        for value in numbers.of(of_size(kind, factors), protocol, metric)
    ]
    frame = pl.DataFrame(rows, schema=["system", "factors", "protocol", "value"], orient="row")
    caption = f"{metric} by the number of factors, among sampled items and in the full catalogue"
    means = frame.group_by("system", "factors", "protocol", maintain_order=True).agg(pl.col("value").mean())
    order = sorted(frame["factors"].unique())

    def draw() -> Any:
        panels = [
            curve(own.drop("protocol"), ("factors", "factors"), ("value", f"{metric}, {protocol}"), "system",
                  [work.MF, work.NEUMF], order=order).properties(width=240, height=200)
            for (protocol,), own in means.group_by("protocol", maintain_order=True)
        ]  # fmt: skip
        return themed(altair().hconcat(*panels))

    return Exhibit(f"figure-{place:02}", caption, frame, draw=draw)


def claims_of(numbers: NcfNumbers) -> ClaimFindings:
    """Check the paper's claims on the run, and whether they also hold in the full catalogue."""
    said = [saying for protocol in work.PROTOCOLS for saying in _dot_or_network(numbers, protocol)]
    said += _near_print(numbers)
    sampled, full = (numbers.best_ease(protocol, "nDCG@10") for protocol in work.PROTOCOLS)
    if sampled is not None and full is not None:
        values = [numbers.mean(row, work.FULL, "nDCG@10") for row in (full, sampled)]
        evidence = f"sampled: {sampled}; full: {full}, which has {values[0]:.4f} there, and the former {values[1]:.4f}"
        margin = np.array([values[0] - values[1] if sampled != full else -1.0])
        claim = "Sampled and full ranking prefer different settings of EASE"
        said.append(Saying(claim, "beside the paper", margin, evidence))
    return [finding_over_splits(saying) for saying in said]


def _dot_or_network(numbers: NcfNumbers, protocol: str) -> list[Saying]:
    """Claim that MF beats NeuMF, by dimensions as in the paper and by factors, and that older methods do too."""
    where = "4" if protocol == work.SAMPLED else "beside the paper"
    among = "among sampled items" if protocol == work.SAMPLED else "in the full catalogue"
    pairs = [(work.DIMENSIONS[factors], factors, where) for factors in work.DIMENSIONS]
    pairs += [(factors, factors, "beside the paper") for factors in work.SIZES[work.NEUMF]]
    said = []
    for dimensions, factors, section in pairs:
        for metric in work.METRICS:
            dot, network = of_size(work.MF, dimensions), of_size(work.NEUMF, factors)
            mf, neumf = (numbers.of(row, protocol, metric) for row in (dot, network))
            if len(mf) and len(neumf):
                margin = mf[: len(neumf)] - neumf[: len(mf)]
                evidence = f"MF {mf.mean():.4f}, NeuMF {neumf.mean():.4f}"
                said.append(Saying(f"{dot}, has a higher {metric} than {network}, {among}", section, margin, evidence))
    networks = numbers.rows_of(work.NEUMF)
    for row in (work.SLIM, work.IALS_2019):
        if networks and row in numbers.rows:
            best = max(networks, key=lambda other: numbers.mean(other, protocol, "nDCG@10"))
            own, other = numbers.mean(row, protocol, "nDCG@10"), numbers.mean(best, protocol, "nDCG@10")
            claim = f"{row} has a higher nDCG@10 than NeuMF of any size {among}"
            said.append(Saying(claim, where, np.array([own - other]), f"{row} {own:.4f}, {best} {other:.4f}"))
    return said


_NEAR = 0.01  # approximate variation of the metrics between seeds; see the deviations in the first table


def _near_print(numbers: NcfNumbers) -> list[Saying]:
    said = []
    for data, row, metric, text in work.PRINTED.table("table 1"):
        changed = numbers.epochs is not None and row.startswith((f"{work.MF}, ", f"{work.NEUMF}, "))
        if data == numbers.known and row in numbers.rows and not changed:
            value, printed = numbers.mean(row, work.SAMPLED, metric), float(text)
            claim = f"The printed {metric} of {row} is found again within {_NEAR:g}"
            evidence = f"here {value:.4f}, printed {printed:.4f}"
            said.append(Saying(claim, "Table 1", np.array([_NEAR - abs(value - printed)]), evidence))
    return said
