"""`Averaging`: how the values of many lists are averaged (decisions C2, C3 and C4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from cranfield import _checks as check
from cranfield._decisions import DecisionGroup, checked_field, decision, unless
from cranfield._errors import SettingError
from cranfield.measures.averages import Average
from cranfield.metrics import average_phrase

if TYPE_CHECKING:
    from cranfield.measures.scores import Scores

Coverage = Literal["full", "reduced", "own"]
Undefined = Literal["zero", "leave out"]
By = Literal["list", "user"]
GroupPolicy = Literal["pooled", "equal"]


def _average(_: str, value: Any) -> str | Average:
    return value if isinstance(value, Average) else str(Average.of(value))


@dataclass(frozen=True)
class Averaging(DecisionGroup):
    """How lists are averaged: the kind of average, which lists count, and how undefined values count.

    Examples
    --------
    >>> Averaging(coverage="reduced").as_dict()
    {'undefined': 'zero', 'average': 'mean', 'groups': 'pooled', 'coverage': 'reduced', 'by': 'user'}
    """

    # How a list counts if the metric is undefined for it: ``zero``, as in trec_eval, or ``leave out``. If 0 is a
    # meaningful value (errors, correlations, shares, novelty), it is always left out.
    undefined: Any = decision(
        "C2",
        "zero",
        "users for whom a metric is undefined count as 0, or are left out",
        choices=("zero", "leave out"),
        phrase=unless("zero", "undefined values left out"),
    )
    # ``mean``, ``weighted(by=judged)``, ``weighted(by=relevant)``, ``weighted(by=train)``,
    # ``weighted(by=users.csv:spend)``, ``median``, ``geometric(form=trec_eval)``, ``geometric(form=adjusted,
    # epsilon=0.01)`` or ``trimmed(share=0.1)``; of all systems at once ``standardised(form=normal)``,
    # ``urisk(baseline=NAME, alpha=1)``, ``trisk(baseline=NAME, alpha=1)`` or ``georisk(alpha=1)``.
    average: Any = decision(
        "C3",
        "mean",
        "how to average: mean, median, trimmed, weighted(by=judged), geometric(form=adjusted, epsilon=0.01), "
        "standardised, urisk, ...",
        check=_average,
        phrase=average_phrase,
    )
    # ``pooled``: all lists are averaged together. ``equal``: the lists of each group are averaged, and then the
    # groups, as in P1R: (1/m) Σ_k mean of group k (Bellogín et al. 2017, section 6.1). Lists without a group are left
    # out, and so are groups without a list.
    groups: Any = decision(
        "C3", "pooled", "how to average lists in groups: all together, or each group first and then the groups",
        choices=("pooled", "equal"), phrase=unless("pooled", "{} groups"),
    )  # fmt: skip
    # ``full``: a user without a list scores like an empty list, 0. ``reduced``: only users that every system serves
    # are averaged. ``own``: each system over the users whom it serves itself, as in Cañamares et al. (2020), where full
    # = coverage × own (printed the other way round); the systems have other users, so no test is paired.
    coverage: Any = decision(
        "C4",
        "full",
        "users without a list count as 0, or are left out",
        choices=("full", "reduced", "own"),
        phrase=unless("full", "only users that every system serves", {"own": "each system over the users it serves"}),
    )
    # Average over lists, or over users after averaging each user's lists (one-relevant designs). With equal groups a
    # user's lists are averaged within each group.
    by: Any = checked_field("user", partial(check.one_of, choices=("list", "user")))

    def _check_together(self) -> None:
        if self.groups == "equal" and not self.kind.is_of_groups:
            raise SettingError(
                f"groups='equal' is an average of means, and average='{self.average}' is not one; use average='mean' "
                "or 'weighted', or groups='pooled'"
            )

    @property
    def kind(self) -> Average:
        """The kind of average."""
        return Average.of(self.average)

    def taken_of(self, scores: Scores) -> Scores:
        """Return the scores to average: transformed ones, if the kind of average depends on all systems.

        Averages, their intervals and the tests all call this, so a new decision on what counts belongs here.
        """
        of_all = self.kind.of_all
        taken: Scores = scores if of_all is None else of_all(scores, self)
        return taken

    def with_kind(self) -> Averaging:
        """Return the same decisions with the kind of average in place of its spelling, which is then parsed once."""
        return self.with_(average=self.kind)

    @classmethod
    def of(cls, average: str | Average | Averaging, **others: Any) -> Averaging:
        """Return the decisions from a kind of average and the other options, or an existing `Averaging`."""
        if not isinstance(average, Averaging):
            return cls(average=average, **others)
        contradicted = {name: value for name, value in others.items() if value != getattr(cls(), name)}
        if contradicted:
            name, value = next(iter(contradicted.items()))
            raise SettingError(
                f"{name}={value!r} is given together with an Averaging, which has its own {name}; change it there"
            )
        return average


class AveragingOptions(TypedDict, total=False):
    """The decisions as keyword arguments of functions that take the average as a separate argument."""

    undefined: Undefined
    groups: GroupPolicy
    coverage: Coverage
    by: By


PLAIN = Averaging()
"""The plain mean over all lists."""
