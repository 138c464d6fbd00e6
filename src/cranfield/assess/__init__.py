"""Metrics under the lens: how well they tell systems apart."""

from cranfield.assess.folds import join_folds
from cranfield.assess.power import DiscriminativePower, discriminative_power

__all__ = ["DiscriminativePower", "discriminative_power", "join_folds"]
