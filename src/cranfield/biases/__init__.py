"""Sparsity and popularity bias: predicted, measured and corrected (Bellogín, Castells and Cantador 2017)."""

from cranfield.biases.answer import Bias
from cranfield.biases.biasing import bias
from cranfield.biases.densities import Density, density, density_of
from cranfield.biases.drawn_targets import expected_over_draws
from cranfield.biases.estimators import Estimates, estimate
from cranfield.biases.neutral_lists import thinned_uniformly
from cranfield.biases.precision_formulas import ExpectedPrecision, expected_precision, one_relevant_bounds
from cranfield.biases.propensities import KINDS, Propensities, fit_propensities, given_propensities
from cranfield.biases.random_rankings import RandomTargets, TimesRandom, times_random, times_random_of
from cranfield.biases.sampled_metrics import CorrectedMetrics, correct_runs, correct_sampled

__all__ = [
    "KINDS",
    "Bias",
    "CorrectedMetrics",
    "Density",
    "Estimates",
    "ExpectedPrecision",
    "Propensities",
    "RandomTargets",
    "TimesRandom",
    "bias",
    "correct_runs",
    "correct_sampled",
    "density",
    "density_of",
    "estimate",
    "expected_over_draws",
    "expected_precision",
    "fit_propensities",
    "given_propensities",
    "one_relevant_bounds",
    "thinned_uniformly",
    "times_random",
    "times_random_of",
]
