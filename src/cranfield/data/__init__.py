"""Data: ratings read, described, filtered, fetched and simulated (decision A1)."""

from cranfield.data import filters
from cranfield.data.description import Description, describe
from cranfield.data.events import Events, Merging
from cranfield.data.features import About, Features
from cranfield.data.files import READING, column_names, read, with_features, write
from cranfield.data.filters import Filtering, min_ratings, positives, sample
from cranfield.data.pairs import Repeated, RepeatedPairError, repeated_pair, test_policy
from cranfield.data.ratings import Ratings, by_popularity, check_ratings, head_items
from cranfield.data.scale import (
    ANY,
    AUTO,
    RatingScale,
    Relevance,
    auto_or_number,
    counts_to_ratings,
    usual_threshold,
)
from cranfield.data.several import over_one_vocabulary, together

__all__ = [
    "ANY",
    "AUTO",
    "READING",
    "About",
    "Description",
    "Events",
    "Features",
    "Filtering",
    "Merging",
    "RatingScale",
    "Ratings",
    "Relevance",
    "Repeated",
    "RepeatedPairError",
    "auto_or_number",
    "by_popularity",
    "check_ratings",
    "column_names",
    "counts_to_ratings",
    "describe",
    "filters",
    "head_items",
    "min_ratings",
    "over_one_vocabulary",
    "positives",
    "read",
    "repeated_pair",
    "sample",
    "test_policy",
    "together",
    "usual_threshold",
    "with_features",
    "write",
]
