"""The permutation distribution of a mean difference: enumerated, inverted, approximated, or sampled."""
