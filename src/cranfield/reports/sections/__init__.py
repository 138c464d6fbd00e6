"""The sections of the page, one per file: each a function from results to a `Section`.

One that every page has is registered with `on_page`. Importing this registers them.
"""

from cranfield._registry import import_modules

import_modules(__name__, __path__)
