"""Known datasets: listed, fetched, checked, cached and loaded by name."""

from cranfield.data.datasets.cache import Cached, cache_folder
from cranfield.data.datasets.entry import Counts, Dataset
from cranfield.data.datasets.index import catalogue, find
from cranfield.data.datasets.overview import known, listing
from cranfield.data.datasets.store import fetch, load, load_pair

__all__ = [
    "Cached",
    "Counts",
    "Dataset",
    "cache_folder",
    "catalogue",
    "fetch",
    "find",
    "known",
    "listing",
    "load",
    "load_pair",
]
