"""Dialects: other tools' definitions of metrics, such as ``nDCG(dialect=lenskit)@100``.

A paper that prints nDCG@100 = 0.21 means what its tool computes. The tools differ in the value of a list (the ideal
that it is divided by, gain, discount, how a short list counts) and in the users that they average over. The tools
themselves are in `cranfield.metrics.tools`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._registry import Cutoff, Registry
from cranfield.judgments import Judged
from cranfield.metrics.arithmetic import Values
from cranfield.metrics.definition import Definition


class Users(Enum):
    """The users that a tool averages over, in words. A counted user for whom a metric is undefined counts as 0."""

    JUDGED = "averages over every test user, 0 without a list, as here"
    JUDGED_WITH_LIST = "test users without a list are left out"
    RELEVANT = "users without relevant test items are left out; those without a list count as 0"
    RELEVANT_WITH_LIST = "users without a list or without relevant test items are left out"
    WITH_LIST = (
        "averages over all users with a list, 0 without relevant test items, those unknown to the test set too; "
        "test users without a list are left out"
    )

    @property
    def counts_strangers(self) -> bool:
        """Whether users with a list but without a test rating are counted."""
        return self is Users.WITH_LIST

    def counted(self, judged: Judged) -> NDArray[np.bool_]:
        """Return which lists are counted."""
        counted = np.ones(judged.n_lists, dtype=bool)
        if self in (Users.RELEVANT, Users.RELEVANT_WITH_LIST):
            counted &= judged.n_relevant > 0
        if self in (Users.JUDGED_WITH_LIST, Users.RELEVANT_WITH_LIST, Users.WITH_LIST):
            counted &= judged.lengths > 0
        return counted


@dataclass(frozen=True)
class Dialect:
    """A tool's definition of a metric."""

    tool: Tool
    # Its function as a `Metric` uses it: one value per list, NaN for lists that the tool leaves out, so that the mean
    # of what is left is the number that the tool prints.
    definition: Definition
    own_name: str  # the tool's name for it
    # How its value differs from ours, with its defaults (the empty key) and with each option worth showing.
    words: Mapping[str, str]
    users: Users  # the users it averages over

    def sentence(self, option: str = "") -> str:
        """Return a sentence on how it differs from ours."""
        return f"{self.tool.title} {self.tool.version}, {self.own_name}: {self.words[option]}; {self.users.value}."


class Tool:
    """A program with its own metrics, named in ``dialect=`` and as its authors write it.

    The dialects were checked against this version. It averages over ``users``, unless a metric says otherwise.
    """

    def __init__(self, name: str, title: str, version: str, users: Users) -> None:
        self.name, self.title, self.version, self.users = name, title, version, users
        self.dialects: Registry[Dialect] = Registry(f"{title} metric")
        TOOLS.add(name, self)

    def dialect(
        self,
        metric: str,
        own_name: str,
        words: str,
        *,
        options: Mapping[str, str] | None = None,
        users: Users | None = None,
        cutoff: Cutoff = "optional",
        averages_ties: bool = True,
    ) -> Callable[[Callable[..., Values]], Callable[..., Values]]:
        """Register the tool's definition of a metric: a function of `Judged` lists, like that of a metric.

        ``options`` holds other settings of the tool that are worth showing, as ``parameter=value``, with their words.
        """
        rule = users or self.users

        def register(function: Callable[..., Values]) -> Callable[..., Values]:
            @wraps(function)
            def of_counted(judged: Judged, **parameters: Any) -> Values:
                values = np.nan_to_num(function(judged, **parameters), nan=0.0)
                return np.where(rule.counted(judged), values, np.nan)

            definition = Definition(metric, of_counted, family="dialects", cutoff=cutoff, averages_ties=averages_ties)
            self.dialects.add(metric, Dialect(self, definition, own_name, {"": words, **(options or {})}, rule))
            return function

        return register


TOOLS: Registry[Tool] = Registry("dialect")
"""The tools by name; making a `Tool` registers it."""


def dialect(metric: str, name: str) -> Dialect:
    """Return a tool's definition of a metric, or raise an error that lists its metrics."""
    tool: Tool = TOOLS.find(name).thing
    if metric not in tool.dialects:
        raise SettingError(
            f"{tool.title} has no {metric}; dialect={name} is known for {', '.join(sorted(tool.dialects))}"
        )
    return tool.dialects[metric]
