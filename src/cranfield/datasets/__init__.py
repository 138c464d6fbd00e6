"""Known datasets: listed, fetched, checked, cached and loaded by name.

Examples
--------
>>> import cranfield as cf
>>> "ml-1m" in cf.datasets.known()
True
"""

from cranfield.datasets.cache import Cached, cache_folder, cached
from cranfield.datasets.entry import Counts, Dataset
from cranfield.datasets.index import catalogue, find
from cranfield.datasets.store import fetch, known, listing, load, load_pair

__all__ = [
    "Cached",
    "Counts",
    "Dataset",
    "cache_folder",
    "cached",
    "catalogue",
    "fetch",
    "find",
    "known",
    "listing",
    "load",
    "load_pair",
]
