"""Sphinx settings."""

from pathlib import Path

from sphinx.ext.napoleon import GoogleDocstring

from arml import __version__

project = "arml"
copyright = "The arml developers"  # noqa: A001 -- Sphinx's name
release = __version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
# A tutorial is run again when its text has changed; `make clean` forgets all results.
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parent / "_build" / "notebooks")
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"  # every parameter has a sentence, or is described as a field
autoclass_content = "both"  # parameters are described in the docstring of __init__
# What a method does for the Reweighter is described once, at `Method`.
autodoc_default_options = {"exclude-members": "init, needs, update, directions, schedule, settle, __init__, __new__"}
autodoc_preserve_defaults = True
html_theme = "furo"
html_title = f"arml {release}"

# Napoleon would take the words before a colon in the text of an attribute for its type.
GoogleDocstring._parse_attribute_docstring = GoogleDocstring._consume_to_end
