"""The metrics, one family per file; importing this registers them."""

from cranfield._registry import import_modules

import_modules(__name__, __path__)
