"""Claims of a paper, checked against a run: each holds, does not hold, or cannot be decided, by one rule.

The claims of a study are a table in its folder, ``claims.csv``: key, group, source, section and words. What the rule
needs to know about a part of a claim is its margin on every split, and the standard error that splits do not show.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cranfield.facts import study as study_facts

ClaimFindings = list[study_facts.Finding]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a claim: its margin on every split, above 0 if it is true, or a difference that should be 0."""

    margins: Floats
    error: float = 0.0  # the standard error of the mean margin over users, or over systems; 0 if it is not known
    denied: float | None = None  # of an equality: the difference that the claim denies


Parts = Mapping[str, Part]


@dataclass(frozen=True, eq=False)
class Saying:
    """A statement of a paper, by its key in the table of claims, and by how much it is true here."""

    key: str
    parts: Part | Parts
    evidence: str = ""  # the numbers that this is based on, if they are more than the margins
    named: Mapping[str, str] = field(default_factory=dict)  # what the braces in the words of the table stand for
    users: int | None = None  # over how many the errors of the parts are taken
    systems: int | None = None


@lru_cache
def claim_table(package: str) -> dict[str, dict[str, str]]:
    """Return the claims of a study by key: group, source, section and words."""
    text = (resources.files(package) / "claims.csv").read_text(encoding="utf-8")
    return {row["key"]: row for row in csv.DictReader(text.splitlines())}


def finding(package: str, said: Saying) -> study_facts.Finding:
    """Return the verdict on a paper's statement by `cranfield.facts.study.RULE`."""
    row = claim_table(package)[said.key]
    words = row["claim"].format(**said.named)
    of_claim = {"group": row["group"], "source": row["source"], "key": said.key}
    return judged(words, row["where"], said, **of_claim)


def judged(claim: str, where: str, said: Saying, **more: str) -> study_facts.Finding:
    """Return the finding on a statement in these words."""
    parts = {"": said.parts} if isinstance(said.parts, Part) else said.parts
    own = tuple(_judged(name, part, len(parts), said.users is not None) for name, part in parts.items())
    splits = max((len(part.margins) for part in own), default=0)
    verdict = study_facts.combined(part.verdict for part in own)
    evidence = said.evidence or "by how much: " + ", ".join(f"{part.name} {part.margin:+.4g}".strip() for part in own)
    counts = {"users": said.users, "systems": said.systems}
    return study_facts.Finding(claim, where, verdict, evidence, own, splits=splits, **counts, **more)  # type: ignore[arg-type]


def _judged(name: str, part: Part, parts: int, of_users: bool) -> study_facts.ClaimPart:
    """Return a part with its interval and its verdict; ``of_users``: whether its error is over users.

    The end that speaks for the claim has its own level, since all parts must hold; the end that speaks against it is
    simultaneous over the parts (Bonferroni), since one part is enough.
    """
    margins = np.round(part.margins, 12)  # ignore rounding errors
    error = part.error if of_users or len(margins) >= study_facts.FEWEST_SPLITS else 0.0
    alone, together = (interval(margins, error, parts=count) for count in (1, parts))
    lower, upper = (alone if part.denied is None else together)[0], together[1]
    verdict: study_facts.ClaimVerdict = "cannot tell"
    if part.denied is not None:
        if lower > 0 or upper < 0:
            verdict = "does not hold"
        elif upper - lower < abs(part.denied):
            verdict = "holds"
    elif lower > 0:
        verdict = "holds"
    elif upper < 0:
        verdict = "does not hold"
    ends = {} if np.isnan(lower) else {"lower": float(lower), "upper": float(upper)}
    return study_facts.ClaimPart(name, tuple(margins.tolist()), part.error, part.denied, verdict, **ends)


def interval(margins: Floats, error: float = 0.0, *, parts: int = 1) -> tuple[float, float]:
    r"""Return the interval of a mean margin, simultaneous for some parts; NaN if there is none.

    With s² the variance of n margins over splits and e the error that these do not show, it is the mean ± t √(s²/n +
    e²), where t has the degrees of freedom of Welch and Satterthwaite, (s²/n + e²)² / ((s²/n)² / (n − 1)). Fewer than
    five splits leave s² out, and need an error.
    """
    from scipy.special import ndtri, stdtrit

    n, middle = len(margins), float(np.mean(margins)) if len(margins) else float("nan")
    tail = (1.0 - study_facts.RULE.level) / 2.0 / parts
    between = float(np.var(margins, ddof=1)) / n if n >= study_facts.FEWEST_SPLITS else 0.0
    if np.isnan(middle) or np.isnan(error) or (n < study_facts.FEWEST_SPLITS and not error > 0):
        return float("nan"), float("nan")
    total = between + error**2
    degrees = total**2 / (between**2 / (n - 1)) if between > 0 else np.inf
    quantile = float(stdtrit(degrees, 1.0 - tail)) if np.isfinite(degrees) else float(ndtri(1.0 - tail))
    half = quantile * float(np.sqrt(total))
    return middle - half, middle + half


def over_repetitions(claims: Sequence[study_facts.Finding]) -> study_facts.Finding:
    """Return the verdict over all splits of several repetitions of a study."""
    first = claims[0]
    parts = {}
    for place, part in enumerate(first.parts):
        same = [claim.parts[place] for claim in claims if len(claim.parts) > place]
        margins = np.concatenate([own.margins for own in same])
        parts[part.name] = Part(margins, float(np.mean([own.error or 0.0 for own in same])), part.denied)
    said = Saying(first.key, parts, first.evidence, users=first.users, systems=first.systems)
    of_claim = {"group": first.group, "source": first.source, "key": first.key}
    return judged(first.claim, first.where, said, **of_claim)


def lowest_elsewhere(curves: Floats) -> Floats:
    """Return each split's value at the place that is lowest over the other splits, from splits × places.

    The lowest of several places is low by chance too. That of the other splits is not, in this one.
    """
    others = curves.sum(axis=0) - curves if len(curves) > 1 else curves
    return np.take_along_axis(curves, others.argmin(axis=1)[:, None], axis=1)[:, 0]


def users_error(differences: Floats, users: NDArray[np.integer], groups: NDArray[np.integer] | None = None) -> float:
    r"""Return the standard error over users of the mean of some lists.

    √(Σ_u (Σ_l w_l (d_l − d̄))²) over the lists l of each user u, with w_l = 1/n. With ``groups``, the mean is taken in
    each of m groups and then over groups: w_l = 1/(m n_g), and d̄ is that of the group.
    """
    if groups is not None:
        inside = groups >= 0  # a list without a group counts in none
        differences, users, groups = differences[inside], users[inside], groups[inside]
    own = np.zeros(len(differences), dtype=np.int64) if groups is None else np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(own)
    means = np.bincount(own, differences) / sizes
    parts = (differences - means[own]) / sizes[own] / len(sizes)
    _, user = np.unique(users, return_inverse=True)
    return float(np.sqrt((np.bincount(user, parts) ** 2).sum()))


def error_of_p(differences: Floats, p: Floats) -> Floats:
    """Return standard errors from differences and their two-sided p-values, as |d| / z of p."""
    from scipy.special import ndtri

    z = -ndtri(np.clip(p, 1e-300, 1.0 - 1e-12) / 2.0)
    return np.abs(differences) / np.maximum(z, 1e-9)


Subject = TypeVar("Subject")


def findings(
    package: str, groups: Iterable[Callable[[Subject], Iterable[Saying]]], panels: Mapping[str, Subject]
) -> ClaimFindings:
    """Return the verdicts on what groups of claims say about each panel, with its name if there are several."""
    return [
        finding(package, saying).on(name if len(panels) > 1 else "")
        for name, panel in panels.items()
        for group in groups
        for saying in group(panel)
    ]


def each(values: Mapping[str, Floats], digits: int = 3) -> str:
    """Return the mean of each series in words, without those that are empty."""
    return ", ".join(f"{name} {np.mean(own):.{digits}f}" for name, own in values.items() if len(own))


def points(places: Floats | Sequence[float], values: Floats, form: str = ".3f") -> str:
    """Return the mean over splits at each place in words, from splits × places."""
    return ", ".join(f"{place:g}: {value:{form}}" for place, value in zip(places, values.mean(axis=0)))


def counted(sayings: Iterable[Saying], users: int | None = None, systems: int | None = None) -> list[Saying]:
    """Return statements with how many users their errors are taken over, or else how many systems they are about."""
    counts = []
    for said in sayings:
        parts = [said.parts] if isinstance(said.parts, Part) else said.parts.values()
        of_users = users is not None and any(part.error > 0 for part in parts)
        counts.append(replace(said, users=users) if of_users else replace(said, systems=systems))
    return counts
