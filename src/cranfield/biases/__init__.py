"""Sparsity and popularity bias: predicted, measured and corrected (Bellogín, Castells and Cantador 2017)."""

from cranfield.biases.biasing import bias
from cranfield.biases.densities import Density, ExpectedPrecision, density, expected_precision, one_relevant_bounds
from cranfield.biases.drawn_targets import expected_over_draws
from cranfield.biases.estimators import Estimates, estimate
from cranfield.biases.given_lists import uniform_thinning
from cranfield.biases.propensities import PROPENSITY_KINDS, Propensities, fit_propensities
from cranfield.biases.random_rankings import RatioToRandom, ratio_to_random
from cranfield.biases.result import Bias
from cranfield.biases.sampled_metrics import CorrectedMetrics, correct_runs, correct_sampled

__all__ = [
    "PROPENSITY_KINDS",
    "Bias",
    "CorrectedMetrics",
    "Density",
    "Estimates",
    "ExpectedPrecision",
    "Propensities",
    "RatioToRandom",
    "bias",
    "correct_runs",
    "correct_sampled",
    "density",
    "estimate",
    "expected_over_draws",
    "expected_precision",
    "fit_propensities",
    "one_relevant_bounds",
    "ratio_to_random",
    "uniform_thinning",
]
