"""Significance tests, one family per file; new files are found and registered automatically."""

from cranfield._registry import import_modules

import_modules(__name__, __path__)
