"""One verdict over several datasets: which system is better on these datasets, and on datasets like these."""

from cranfield.across.comparing import compare_datasets
from cranfield.across.comparison import DatasetComparison
from cranfield.across.families import known_family
from cranfield.across.pasted import read_table

__all__ = ["DatasetComparison", "compare_datasets", "known_family", "read_table"]
