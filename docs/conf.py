"""Configuration of the documentation site: ``sphinx-build -W docs site`` builds it, and fails on any warning."""

import sys
from pathlib import Path

import cranfield

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "cranfield"
author = "The cranfield authors"
copyright = author
version = release = cranfield.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "reference",
    "glossary",
]
exclude_patterns = ["_extensions", "images/*.py"]
root_doc = "index"

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
# Single backticks in a docstring name an object: a link if the object has a page, code if not.
default_role = "py:obj"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "pydata_sphinx_theme"
html_title = "cranfield"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_end": ["theme-switcher", "version-switcher"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "switcher": {"json_url": "_static/versions.json", "version_match": version},
    "check_switcher": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
