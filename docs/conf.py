"""Settings of the documentation build."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from urllib.request import urlopen

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _api  # noqa: E402
import _gallery  # noqa: E402
import _tables  # noqa: E402
from docutils import nodes  # noqa: E402
from docutils.utils.math.latex2mathml import tex2mathml  # noqa: E402
from sphinx.util.inspect import stringify_signature  # noqa: E402

import skdp  # noqa: E402

project = "skdp"
author = "The skdp developers"
copyright = "The skdp developers"
version = release = skdp.__version__

# TO FILL IN before the first upload, with all others: https://example.org/skdp
REPOSITORY = "https://example.org/skdp"

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.linkcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
    "sphinxext.opengraph",
]
exclude_patterns = ["_build", "**/GALLERY_HEADER.rst", "auto_examples/*.ipynb"]
# The notebooks are run by `make notebooks`, and shown as they are kept.
nb_execution_mode = "off"
nb_ipywidgets_js = {}
ogp_site_url = f"{REPOSITORY}/docs/"
ogp_image = f"{REPOSITORY}/raw/main/docs/_static/page-light.png"
ogp_social_cards = {"enable": False}
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
    "backreferences_dir": "auto_examples/backreferences",
    "doc_module": ("skdp",),
    "download_all_examples": False,
    "within_subsection_order": "_gallery.in_order",
    # Its page would load scripts from other servers.
    "write_computation_times": False,
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "skdp"
html_favicon = "_static/logo.svg"
html_context = {
    "default_mode": "auto",
    "edit_page_url_template": REPOSITORY + "/edit/main/docs/{{ file_name }}",
    "edit_page_provider_name": "the repository",
}
html_static_path = ["_static"]
html_css_files = ["skdp.css"]
html_show_sourcelink = False
ALONE = ("start", "five_minutes", "choose", "corrections", "glossary")
ALONE += ("comparison", "reproduction", "auto_examples/index")
html_sidebars = {page: [] for page in ALONE}
html_theme_options = {
    "icon_links": [
        {"name": "Repository", "url": REPOSITORY, "icon": "fa-solid fa-code-branch"},
    ],
    "use_edit_page_button": True,
    # Versions are built apart: each page says of which it is.
    "logo": {
        "text": f"skdp {release}",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "show_prev_next": True,
    "pygments_light_style": "default",
    "footer_start": ["copyright"],
    "footer_end": [],
}


def reachable(url):
    """Whether a page can be fetched; without a network, names of other libraries have no links."""
    try:
        return urlopen(url, timeout=5).status == 200
    except OSError:
        return False


OTHERS = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
    "sklearn": "https://scikit-learn.org/stable/",
}
intersphinx_mapping = {
    name: (url, None) for name, url in OTHERS.items() if reachable(url + "objects.inv")
}


def linkcode_resolve(domain, info):
    """Address of the source of a public name."""
    thing = sys.modules.get(info["module"])
    try:
        for name in info["fullname"].split("."):
            thing = getattr(thing, name)
        thing = inspect.unwrap(getattr(thing, "fget", None) or thing)
        file = Path(inspect.getsourcefile(thing)).relative_to(HERE.parent)
        lines, first = inspect.getsourcelines(thing)
    except (AttributeError, TypeError, ValueError, OSError):
        return None  # data, what scikit-learn adds
    return f"{REPOSITORY}/blob/main/{file}#L{first}-L{first + len(lines) - 1}"


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


def signature_of(app, what, name, thing, options, signature, returns):
    """What a class is made of, where Sphinx shows the `__new__` that refuses weights."""
    if what == "class" and signature == "(*args, **params)":
        return stringify_signature(inspect.signature(thing), show_annotation=False), returns
    return None


def setup(app):
    """Write the API reference before the pages are read; register the renderer of formulas."""
    # After sphinx-gallery, which has the usual priority of 500.
    app.connect("builder-inited", _gallery.arrange, priority=900)
    app.connect("builder-inited", lambda app: _api.write(Path(app.srcdir) / "api"), priority=900)
    app.add_directive("picture", _gallery.Picture)
    app.connect("doctree-read", _tables.arrange)
    app.connect("doctree-read", _gallery.wrap_pictures)
    app.connect("doctree-read", mark_long_names)
    app.connect("autodoc-process-signature", signature_of, priority=400)
    app.add_html_math_renderer("mathml", math(as_block=False), math(as_block=True))
