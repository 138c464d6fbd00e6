"""The permutation test of the mean difference: exact, or by sampling."""

from cranfield.comparisons.permutations.randomisation import permutation

__all__ = ["permutation"]
