"""The store: artifacts filed by the hash of what they are made of, and the readable files exported from it."""

from cranfield.store import encoding
from cranfield.store.exports import Exports, Write
from cranfield.store.records import Artifact, fingerprint, size_of, versions
from cranfield.store.store import HOME, Made, State, Store, check_folder, in_use, open_store

__all__ = [
    "HOME",
    "Artifact",
    "Exports",
    "Made",
    "State",
    "Store",
    "Write",
    "check_folder",
    "encoding",
    "fingerprint",
    "in_use",
    "open_store",
    "size_of",
    "versions",
]
