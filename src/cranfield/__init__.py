"""cranfield: compare recommender systems offline, and know how far to trust the answer."""

from cranfield import split
from cranfield._errors import (
    CranfieldError,
    CranfieldWarning,
    DownloadError,
    ImpossibleSplitError,
    InputError,
    MissingExtraError,
    SettingError,
)
from cranfield._version import __version__
from cranfield.data import Ratings, Vocabulary
from cranfield.rank import Run
from cranfield.recommend import Recommender
from cranfield.split import Split

__all__ = [
    "CranfieldError",
    "CranfieldWarning",
    "DownloadError",
    "ImpossibleSplitError",
    "InputError",
    "MissingExtraError",
    "Ratings",
    "Recommender",
    "Run",
    "SettingError",
    "Split",
    "Vocabulary",
    "__version__",
    "split",
]
