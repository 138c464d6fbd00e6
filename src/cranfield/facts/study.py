"""Facts of a study that was repeated: whether the claims of its paper hold here, and when a claim holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from cranfield._numbers import DASH
from cranfield.facts.fact import Fact

ClaimVerdict = Literal["holds", "holds in part", "does not hold", "cannot tell"]
ClaimSource = Literal["paper", "our reading", "by construction"]


class ClaimRule(Fact):
    """When the claims of a study hold."""

    level: float  # of the intervals
    splits: int  # the fewest that a verdict needs

    def _said(self) -> str:
        return (
            f"A claim holds if the {self.level:.0%} interval of its margin lies above 0, does not hold if it lies "
            "below, and cannot be decided otherwise; of an equality the interval must contain 0, and be narrower than "
            "the difference that the paper denies. Intervals are Student's t over the splits, at least "
            f"{self.splits}, with the error over users added for values of systems, and in valcarce2018 and "
            "valcarce2020 that over bootstrap draws of systems for statements about metrics. With fewer splits only "
            "the error over users can decide, and leaves the splits out. A claim of several parts holds if all of them "
            "do, and does not hold if one does not (by simultaneous intervals), or in part if another one holds."
        )


class ClaimPart(Fact):
    """A part of a claim, with its margin on every split."""

    name: str  # what it is about; empty if the claim has one part
    margins: tuple[float, ...]  # by split: above 0 if it is true; of an equality, the difference
    error: float | None  # the standard error of their mean that splits do not show: over users, or systems
    denied: float | None  # of an equality: the difference that the claim denies
    verdict: ClaimVerdict
    lower: float | None = None  # the interval of the mean margin
    upper: float | None = None

    @property
    def margin(self) -> float:
        """The mean margin over splits."""
        return sum(self.margins) / len(self.margins) if self.margins else float("nan")

    @property
    def span(self) -> str:
        """The mean margin with its interval."""
        if self.margin != self.margin:
            return DASH
        ends = "" if self.lower is None else f" [{self.lower:+.3g}, {self.upper:+.3g}]"
        return f"{'= 0: ' if self.denied is not None else ''}{self.margin:+.3g}{ends}"

    def _said(self) -> str:
        return f"{self.name or 'margin'} {self.span}, {self.verdict}"


_FIRST: Sequence[ClaimVerdict] = ("does not hold", "cannot tell", "holds in part", "holds")


def combined(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict:
    """Return the verdict on several parts, or on several claims that say the same."""
    there = set(verdicts)
    if len(there) == 1:
        return there.pop()
    if "does not hold" in there:
        return "holds in part" if there & {"holds", "holds in part"} else "does not hold"
    return "cannot tell" if not there or "cannot tell" in there else "holds in part"


class Finding(Fact):
    """A claim of a paper and its verdict."""

    claim: str  # what the paper says, in short
    where: str  # the section that says it
    verdict: ClaimVerdict  # whether it holds here
    evidence: str  # the numbers that the verdict is based on
    parts: tuple[ClaimPart, ...]
    group: str  # claims of a group are one statement: readings of it, or what follows from another
    source: ClaimSource  # who says it, or that it is true whatever the data are
    splits: int
    users: int | None = None  # over whom errors were taken
    systems: int | None = None
    key: str = ""  # its name in the table of claims

    def on(self, data: str) -> Finding:
        """Return the finding with the name of the ratings, if it has one, before the claim."""
        return replace(self, claim=f"{data}: {self.claim}", group=f"{data}: {self.group}") if data else self

    @property
    def deciding(self) -> ClaimPart:
        """The part that decides: the weakest one."""
        return min(self.parts, key=lambda part: (_FIRST.index(part.verdict), part.margin))

    @property
    def n(self) -> str:
        """How many splits, users and systems the verdict is based on."""
        several = "s" if self.splits != 1 else ""
        counts = {f"split{several}": self.splits, "users": self.users, "systems": self.systems}
        return ", ".join(f"{count:,} {what}" for what, count in counts.items() if count is not None)

    @property
    def basis(self) -> str:
        """The margin that decides, how many parts hold, and n."""
        held = sum(part.verdict == "holds" for part in self.parts)
        parts = f"; {held} of {len(self.parts)} parts hold" if len(self.parts) > 1 else ""
        against = len(self.parts) > 1 and all(
            part.verdict == "does not hold" and part.denied is None for part in self.parts
        )
        opposite = "; the opposite holds" if against else ""
        only = "; splits are not included" if self.deciding.lower is not None and self.splits < FEWEST_SPLITS else ""
        return f"{self.deciding.span}{parts}{opposite}; {self.n}{only}"

    @property
    def cells(self) -> list[str]:
        """The claim, its section, who says it, its verdict, and what that is based on."""
        return [self.claim, self.where, self.source, self.verdict, self.basis]

    @property
    def support(self) -> str:
        """Where the paper says it, and what the verdict is based on."""
        place = f"section {self.where}" if self.where[:1].isdigit() else self.where
        return f"{place}; {self.basis}"

    def _said(self) -> str:
        return f"{self.claim} ({self.support})"


FEWEST_SPLITS = 5
"""The fewest splits over which Student's t is taken."""
RULE = ClaimRule(level=0.95, splits=FEWEST_SPLITS)


class ClaimCounts(Fact):
    """How many claims of a study hold on some ratings; claims of one group count once."""

    study: str
    data: str
    paper: tuple[ClaimVerdict, ...]  # the verdict on each group of claims of the paper
    ours: tuple[ClaimVerdict, ...] = ()  # on each group of our readings
    construction: int = 0  # the number of groups that are true whatever the data are
    splits: int = 0

    @classmethod
    def of(cls, study: str, data: str, claims: Iterable[Finding]) -> ClaimCounts:
        """Count the groups of some claims."""
        claims = list(claims)
        groups: dict[tuple[ClaimSource, str], list[ClaimVerdict]] = {}
        for claim in claims:
            groups.setdefault((claim.source, claim.group), []).append(claim.verdict)
        by = {source: tuple(combined(own) for (of, _), own in groups.items() if of == source)
              for source in ("paper", "our reading", "by construction")}  # fmt: skip
        splits = max((claim.splits for claim in claims), default=0)
        return cls(study, data, by["paper"], by["our reading"], len(by["by construction"]), splits)

    def _said(self) -> str:
        readings = "reading" if len(self.ours) == 1 else "readings"
        ours = f" Of {len(self.ours)} {readings} of ours, {_counted(self.ours)}." if self.ours else ""
        plain = f" {self.construction} more {'is' if self.construction == 1 else 'are'} true by construction."
        return (
            f"{len(self.paper)} claim{'s' if len(self.paper) != 1 else ''} of {self.study} on {self.data} "
            f"({self.splits} split{'s' if self.splits != 1 else ''}): {_counted(self.paper)}."
            f"{ours}{plain if self.construction else ''}"
        )


def _counted(verdicts: Sequence[ClaimVerdict]) -> str:
    count = Counter(verdicts)
    in_part = f"{count['holds in part']} in part, " if count["holds in part"] else ""
    hold = f"{count['holds']} hold{'s' if count['holds'] == 1 else ''}"
    against = f"{count['does not hold']} do{'es' if count['does not hold'] == 1 else ''} not hold"
    return f"{hold}, {in_part}{against}, {count['cannot tell']} cannot be decided"
