"""Dialects: other tools' definitions of metrics, such as ``nDCG(dialect=lenskit)@100``.

A paper that prints nDCG@100 = 0.21 means what its tool computes. The tools differ in the value of a list (the ideal
that it is divided by, gain, discount, how a short list counts) and in the users that they average over.
"""

from cranfield.metrics.dialects import (
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
from cranfield.metrics.dialects.peers import Dialect, Tool, Users, dialect, tool, tools

__all__ = [
    "Dialect",
    "Tool",
    "Users",
    "dialect",
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
