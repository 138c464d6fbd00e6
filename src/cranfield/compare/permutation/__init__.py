"""The permutation test of the mean difference: exact, or by sampling."""

from cranfield.compare.permutation.randomisation import permutation

__all__ = ["permutation"]
