"""Sphinx configuration of the site: Markdown pages, the library from its docstrings, the commands from click.

``python -m sphinx --fail-on-warning docs build/site`` builds it. Nothing is fetched, neither then nor by the pages.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from mtpp import __version__  # noqa: E402

project = "mtpp"
author = "the maintainers of mtpp"
release = version = __version__
copyright = author

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_click",
    "sphinx_copybutton",
    "site_extensions.command_reference",
    "site_extensions.docstrings",
    "site_extensions.repository_links",
]
exclude_patterns = ["drawing", "site_extensions"]
default_role = "code"

myst_heading_anchors = 3

autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
add_module_names = False
smartquotes = False

html_theme = "furo"
html_title = f"mtpp {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
