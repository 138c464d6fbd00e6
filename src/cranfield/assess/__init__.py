"""Metrics under the lens: how well they tell systems apart, and whether they can be trusted on incomplete data."""

from cranfield.assess.advice import Advice
from cranfield.assess.assess import assess, assess_folds
from cranfield.assess.assessment import Assessment
from cranfield.assess.chunks import Chunks
from cranfield.assess.fold import Fold
from cranfield.assess.folds import join_folds
from cranfield.assess.power import DiscriminativePower, discriminative_power
from cranfield.assess.robustness import Sampling
from cranfield.assess.scenarios import SCENARIOS, Scenario

__all__ = [
    "SCENARIOS",
    "Advice",
    "Assessment",
    "Chunks",
    "DiscriminativePower",
    "Fold",
    "Sampling",
    "Scenario",
    "assess",
    "assess_folds",
    "discriminative_power",
    "join_folds",
]
