"""The simulator: artificial ratings with a chosen popularity curve, and worlds whose truth is known.

Examples
--------
>>> import cranfield as cf
>>> len(cf.simulate.world(users=60, items=40, ratings=900).ratings)
900
"""

from cranfield.simulate.artificial import PowerLaw, popularity
from cranfield.simulate.truth import METRICS, World, check_pairs, parse_metric
from cranfield.simulate.worlds import world

__all__ = ["METRICS", "PowerLaw", "World", "check_pairs", "parse_metric", "popularity", "world"]
