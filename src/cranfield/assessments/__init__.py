"""Assessing metrics: how well they tell systems apart, and whether they can be trusted on incomplete data."""

from cranfield.assessments.advice import Advice
from cranfield.assessments.assessing import assess, assess_folds
from cranfield.assessments.assessment import Assessment
from cranfield.assessments.chunks import Chunks
from cranfield.assessments.fold import Fold
from cranfield.assessments.power import DiscriminativePower, discriminative_power
from cranfield.assessments.robustness import Sampling
from cranfield.assessments.scenarios import SCENARIOS, Scenario
from cranfield.measures.folds import join_folds

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
