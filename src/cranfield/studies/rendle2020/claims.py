"""Claims of Rendle et al. (2020) on the published split of the benchmark: one split, so users alone decide."""

from __future__ import annotations

from itertools import product

import numpy as np

from cranfield.studies.frame.claims import ClaimFindings, Part, Saying, finding
from cranfield.studies.rendle2020 import work
from cranfield.studies.rendle2020.work import NcfNumbers, of_size

_AMONG = {work.SAMPLED: "among sampled items", work.FULL: "in the full catalogue"}


def claims_of(numbers: NcfNumbers) -> ClaimFindings:
    """Check the paper's claims on the run, and whether they also hold in the full catalogue."""
    said = [saying for protocol in work.PROTOCOLS for saying in _dot_or_network(numbers, protocol)]
    sayings = [*said, *_near_print(numbers), *_of_ease(numbers)]
    return [finding(__package__, saying) for saying in sayings]


def _saying(numbers: NcfNumbers, key: str, parts: Part | dict[str, Part], evidence: str, **named: str) -> Saying:
    return Saying(key, parts, evidence, named, users=numbers.users)


def _of_ease(numbers: NcfNumbers) -> list[Saying]:
    sampled, full = (numbers.best_ease(protocol, "nDCG@10") for protocol in work.PROTOCOLS)
    if sampled is None or full is None:
        return []
    values = [numbers.mean(row, work.FULL, "nDCG@10") for row in (full, sampled)]
    evidence = f"sampled: {sampled}; full: {full}, which has {values[0]:.4f} there, and the former {values[1]:.4f}"
    others = [row for row in numbers.rows_of(work.EASE) if row != sampled]
    parts = (
        {protocol: numbers.lead(*pair, protocol, "nDCG@10") for protocol, pair in
         ((work.SAMPLED, (sampled, full)), (work.FULL, (full, sampled)))}
        if sampled != full
        else {row: numbers.lead(row, full, work.FULL, "nDCG@10") for row in others}
    )  # fmt: skip
    return [_saying(numbers, "EASE", parts, evidence)]


def _dot_or_network(numbers: NcfNumbers, protocol: str) -> list[Saying]:
    """Claim that MF beats NeuMF, by dimensions as in the paper and by factors, and that older methods do too."""
    of_paper = "paper sampled" if protocol == work.SAMPLED else "paper full"
    pairs = [(work.DIMENSIONS[factors], factors, of_paper) for factors in work.DIMENSIONS]
    pairs += [(factors, factors, "factors") for factors in work.SIZES[work.NEUMF]]
    said = []
    for (dimensions, factors, key), metric in product(pairs, work.METRICS):
        dot, network = of_size(work.MF, dimensions), of_size(work.NEUMF, factors)
        if dot in numbers.rows and network in numbers.rows:
            values = [numbers.mean(row, protocol, metric) for row in (dot, network)]
            evidence = f"MF {values[0]:.4f}, NeuMF {values[1]:.4f}"
            named = {"dot": dot, "network": network, "metric": metric, "among": _AMONG[protocol]}
            said.append(_saying(numbers, key, numbers.lead(dot, network, protocol, metric), evidence, **named))
    networks = numbers.rows_of(work.NEUMF)
    for row in (work.SLIM, work.IALS_2019):
        if networks and row in numbers.rows:
            parts = {f"above {other}": numbers.lead(row, other, protocol, "nDCG@10") for other in networks}
            best = max(networks, key=lambda other: numbers.mean(other, protocol, "nDCG@10"))
            values = [numbers.mean(own, protocol, "nDCG@10") for own in (row, best)]
            key = "others sampled" if protocol == work.SAMPLED else "others full"
            said.append(_saying(numbers, key, parts, f"{row} {values[0]:.4f}, {best} {values[1]:.4f}", row=row))
    return said


def _near_print(numbers: NcfNumbers) -> list[Saying]:
    """Claim that printed values are found again, within the error over users; they must differ from popularity's."""
    said = []
    for data, row, metric, text in work.PRINTED.table("table 1"):
        changed = numbers.epochs is not None and row.startswith((f"{work.MF}, ", f"{work.NEUMF}, "))
        if data == numbers.known and row in numbers.rows and not changed:
            value, printed = numbers.mean(row, work.SAMPLED, metric), float(text)
            popular = numbers.printed(work.POPULARITY, metric)
            denied = printed if popular is None or row == work.POPULARITY else printed - popular
            error = numbers.error(row, work.SAMPLED, metric)
            part = Part(np.array([value - printed]), error, denied)
            evidence = f"here {value:.4f}, printed {printed:.4f}"
            said.append(_saying(numbers, "print", part, evidence, metric=metric, row=row))
    return said
