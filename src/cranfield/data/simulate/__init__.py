"""The simulator: artificial ratings with a chosen popularity curve, and worlds whose truth is known."""

from cranfield.data.simulate.artificial import popularity
from cranfield.data.simulate.power_law import PowerLaw
from cranfield.data.simulate.truth import World
from cranfield.data.simulate.worlds import world

__all__ = ["PowerLaw", "World", "popularity", "world"]
