"""One verdict over several datasets: which system is better on these datasets, and on datasets like these."""

from cranfield.across.comparing import compare_datasets
from cranfield.across.comparison import DatasetComparison
from cranfield.across.effects import SCALES
from cranfield.across.families import known_families
from cranfield.across.pasted import read_table
from cranfield.across.pooling import WEIGHTS

__all__ = ["SCALES", "WEIGHTS", "DatasetComparison", "compare_datasets", "known_families", "read_table"]
