"""Dialects: what other tools mean by the names of metrics, as ``nDCG(dialect=lenskit)@100``.

A paper that prints nDCG@100 = 0.21 means what its tool computes. The tools differ in the value of a list (the ideal
that it is divided by, gain, discount, how a short list counts) and in the users that they average over.
"""

from cranfield.measure.dialects import (
    elliot,
    implicit,
    lenskit,
    ranx,
    recbole,
    recommenders,
    rectools,
    replay,
    trec_eval,
)
from cranfield.measure.dialects.across import dialects, dialects_table
from cranfield.measure.dialects.tool import Dialect, Tool, Users, dialect, tool, tools

__all__ = [
    "Dialect",
    "Tool",
    "Users",
    "dialect",
    "dialects",
    "dialects_table",
    "elliot",
    "implicit",
    "lenskit",
    "ranx",
    "recbole",
    "recommenders",
    "rectools",
    "replay",
    "tool",
    "tools",
    "trec_eval",
]
