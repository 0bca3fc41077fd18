"""Settings of the documentation build."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _api  # noqa: E402
import _gallery  # noqa: E402
import _tables  # noqa: E402
from docutils import nodes  # noqa: E402
from docutils.utils.math.latex2mathml import tex2mathml  # noqa: E402

import skdp  # noqa: E402

project = "skdp"
author = "The skdp developers"
copyright = "The skdp developers"
version = release = skdp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "**/GALLERY_HEADER.rst"]
default_role = "code"

bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"
bibtex_default_style = "plain"

autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"[\\/](plot_|quickstart)",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    # A title or an axis is no result.
    "ignore_repr_types": "matplotlib",
    "backreferences_dir": None,
    "download_all_examples": False,
    "within_subsection_order": "_gallery.in_order",
    # Its page would load scripts from other servers.
    "write_computation_times": False,
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "skdp"
html_favicon = "_static/logo.svg"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["skdp.css"]
html_show_sourcelink = False
ALONE = ("start", "choose", "corrections", "glossary", "references")
ALONE += ("results", "comparison", "reproduction", "auto_examples/index")
html_sidebars = {page: [] for page in ALONE}
html_theme_options = {
    # Versions are built apart: each page says of which it is.
    "logo": {
        "text": f"skdp {release}",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "navbar_end": ["theme-switcher"],
    "show_prev_next": False,
    "pygments_light_style": "default",
    "footer_start": ["copyright"],
    "footer_end": [],
}


def math(as_block):
    """Visitor that writes formulas as MathML, which browsers render without an external script."""

    def visit(translator, node):
        formula = tex2mathml(node.astext(), as_block=as_block)
        translator.body.append(f'<div class="formula">{formula}</div>' if as_block else formula)
        raise nodes.SkipNode

    return visit, None


def mark_long_names(app, doctree):
    """Mark the code whose words may break on a phone; other words stay whole."""
    for literal in doctree.findall(nodes.literal):
        if max(map(len, literal.astext().split()), default=0) > 30:
            literal["classes"].append("long")


def setup(app):
    """Write the API reference before the pages are read; register the renderer of formulas."""
    app.connect("builder-inited", lambda app: _api.write(Path(app.srcdir) / "api"))
    # After sphinx-gallery, which has the usual priority of 500.
    app.connect("builder-inited", _gallery.arrange, priority=900)
    app.add_directive("picture", _gallery.Picture)
    app.connect("doctree-read", _tables.arrange)
    app.connect("doctree-read", _gallery.wrap_pictures)
    app.connect("doctree-read", mark_long_names)
    app.add_html_math_renderer("mathml", math(as_block=False), math(as_block=True))
