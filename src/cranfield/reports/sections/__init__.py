"""The sections of the page, one per file: each a function from results to a `Section`.

Sections for every page are registered with `on_page`. Importing this package registers them.
"""

from cranfield._registry import import_modules

import_modules(__name__, __path__)
