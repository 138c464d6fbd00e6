"""The simulator: artificial ratings with a chosen popularity curve, and worlds whose truth is known."""

from cranfield.simulate.artificial import popularity
from cranfield.simulate.power_law import PowerLaw
from cranfield.simulate.true_value import METRICS, parse_metric
from cranfield.simulate.truth import World, check_pairs
from cranfield.simulate.worlds import world

__all__ = [
    "METRICS",
    "PowerLaw",
    "World",
    "check_pairs",
    "parse_metric",
    "popularity",
    "world",
]
