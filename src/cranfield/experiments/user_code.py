"""Functions of the user's own: what they are made of belongs to what an artifact is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from cranfield._code_hash import is_ours, made_of
from cranfield._registry import Registry
from cranfield._spelling import parse
from cranfield.measures import Metric
from cranfield.measures.metrics.gains import GAINS


def own(*functions: Callable[..., Any]) -> list[str]:
    """Return a hash of each function that is not ours; for ours the version stands.

    Examples
    --------
    >>> own(print, own)
    ['...']
    """
    return [made_of(one) for one in functions if not is_ours(one)]


def own_of(registry: Registry[Any], spellings: Iterable[str]) -> list[str]:
    """Return a hash of each spelled function that is not ours."""
    return own(*(registry[parse(one).name] for one in spellings))


def own_metrics(spellings: Iterable[str]) -> list[str]:
    """Return a hash of each metric that is not ours, of what it was said to be, and of each gain that is not ours."""
    metrics = [Metric.of(one) for one in spellings]
    definitions = [one.definition for one in metrics if not is_ours(one.definition.function)]
    said = [made_of(getattr(one, about.name)) for one in definitions for about in fields(one)]
    named = [value for one in metrics for name, value in parse(str(one)).parameters if name == "gain"]
    return [*said, *own_of(GAINS, named)]
