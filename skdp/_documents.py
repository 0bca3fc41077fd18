"""HTML documents: what escapes their values, templates, and what a release promises."""

from __future__ import annotations

import base64
import hashlib
import html
import math
from collections.abc import Iterable
from importlib.resources import files
from os import PathLike
from typing import Any, Self

import pandas as pd

from ._validation import write_text
from .accounting import PrivacyLoss, extremes_text, unit_of

# --- pieces of HTML, with one rule of escaping


class Markup(str):
    """HTML, which is put into other HTML as it is."""


def markup(template: str, **values: object) -> Markup:
    """HTML of a template. Values are put into it escaped, unless they are `Markup`."""
    as_html = {
        name: value if isinstance(value, Markup) else html.escape(str(value))
        for name, value in values.items()
    }
    return Markup(template.format_map(as_html))


def table_html(table: pd.DataFrame, **how: Any) -> Markup:
    """HTML of a table, whose texts are escaped and never cut."""
    with pd.option_context("display.max_colwidth", None):
        return Markup(table.to_html(border=0, na_rep="", **how))


# --- documents


def document(title: str, body: Markup, script: str = "", data: str = "") -> Markup:
    """A page that stands by itself: nothing may be loaded, nor run but ``script``."""
    style, end = Markup(web("page.css")), Markup()
    policy = f"default-src 'none'; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"
    if script:
        policy += f"; script-src '{_hash(script)}'"
        # Of `_packed` and of this package: no text in them ends an element.
        end = filled("script.html", data=Markup(data), script=Markup(script))
    values = {"title": title, "style": style, "body": body, "end": end}
    return filled("document.html", policy=Markup(policy), **values)


def filled(name: str, **values: Any) -> Markup:
    """A template of HTML with its values, escaped as `markup` does."""
    return markup(web(name), **values)


def joined(parts: Iterable[Markup]) -> Markup:
    """Pieces of HTML, one behind the other."""
    return Markup("".join(parts))


def web(name: str) -> str:
    """The text of a file of pages."""
    return files("skdp.release").joinpath("web", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


class Document:
    """One HTML file, ``text``; a notebook shows it, in a frame of its own."""

    text: str

    def _repr_html_(self) -> str:
        # Neither the page nor the notebook reaches the other. It is a text in an attribute.
        return filled("frame.html", page=str(self.text))

    def written(self, path: str | PathLike[str] | None) -> Self | None:
        """The page itself, or None where it was written to a file."""
        if path is None:
            return self
        write_text(path, self.text)
        return None


class TablePage(Document):
    """All numbers of a release that has no file to ask, such as a cube, in one table."""

    def __init__(self, title: str, loss: PrivacyLoss, made_by: str, table: pd.DataFrame) -> None:
        shown = table_html(table, index=False, float_format="{:,.6g}".format)
        facts = {"title": title, "made_by": made_by, "protected": protected(loss), "table": shown}
        self.text = document(title, filled("tables.html", **facts))


# --- what is protected


def warning(text: str) -> Markup:
    """A paragraph that stands out."""
    return markup('<p class="warn">{text}</p>', text=text)


def protected(loss: PrivacyLoss | None) -> Markup:
    """What a release promises, as HTML."""
    if loss is None:
        return warning(
            "What the release cost is not recorded: nothing can be said about its guarantee."
        )
    if loss.seeded:
        return warning(
            "The noise comes from a seed: this is an experiment, without any guarantee. Whoever "
            "knows or guesses the seed can subtract the noise."
        )
    epsilon = float(loss.epsilon)
    factor, said = math.exp(min(epsilon, 700.0)), extremes_text(loss.epsilon)
    parts = ", ".join(f"{name} {float(part):.4g}" for name, part in loss.parts.items())
    return filled(
        "protected.html",
        epsilon=f"{epsilon:g}",
        one=unit_of(loss),
        neighbours=loss.neighbours,
        factor=f"{factor:,.3g}" if factor < 1e6 else "more than a million",
        extreme=warning(said) if said else "",
        percent=f"{100 * factor / (1.0 + factor):.3g}%",
        parts=parts,
    )
