"""Assessing metrics: how well they tell systems apart, and whether they can be trusted on incomplete data."""

from cranfield.assessments.advice import Advice, draws_of_systems
from cranfield.assessments.assessing import NINE, assess, assess_folds
from cranfield.assessments.assessment import STUDIES, Assessment
from cranfield.assessments.fold import Chunks, Fold, Sampling, rounded_to
from cranfield.assessments.power import DiscriminativePower, discriminative_power, ranking_alike
from cranfield.assessments.scenarios import PAPERS, SCENARIOS, SIZES, Scenario, sizes_of

__all__ = [
    "NINE",
    "PAPERS",
    "SCENARIOS",
    "SIZES",
    "STUDIES",
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
    "draws_of_systems",
    "ranking_alike",
    "rounded_to",
    "sizes_of",
]
