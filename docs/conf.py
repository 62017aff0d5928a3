"""Sphinx settings."""

from arml import __version__

project = "arml"
copyright = "The arml developers"  # noqa: A001 -- Sphinx's name
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_preserve_defaults = True
html_theme = "furo"
html_title = f"arml {release}"
