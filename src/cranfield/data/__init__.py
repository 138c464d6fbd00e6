"""Data: ratings read, described, filtered, fetched and simulated (decision A1)."""

from cranfield.data import filters
from cranfield.data.description import Description, describe, gini
from cranfield.data.features import About, Features
from cranfield.data.filtering import Filtering
from cranfield.data.filters import min_ratings, positives, sample
from cranfield.data.long_tail import celma
from cranfield.data.popularity import by_popularity, head_items
from cranfield.data.ratings import Ratings, check_ratings
from cranfield.data.reading import column_names, read, with_features
from cranfield.data.relevance import ANY, AUTO, Relevance, auto_or_number, usual_threshold
from cranfield.data.repeated import Repeated, RepeatedPairError, repeated_pair
from cranfield.data.scale import RatingScale
from cranfield.data.together import over_one_vocabulary
from cranfield.data.writing import write
from cranfield.tables import UNKNOWN, Vocabulary

__all__ = [
    "ANY",
    "AUTO",
    "UNKNOWN",
    "About",
    "Description",
    "Features",
    "Filtering",
    "RatingScale",
    "Ratings",
    "Relevance",
    "Repeated",
    "RepeatedPairError",
    "Vocabulary",
    "auto_or_number",
    "by_popularity",
    "celma",
    "check_ratings",
    "column_names",
    "describe",
    "filters",
    "gini",
    "head_items",
    "min_ratings",
    "over_one_vocabulary",
    "positives",
    "read",
    "repeated_pair",
    "sample",
    "usual_threshold",
    "with_features",
    "write",
]
