"""The gallery: its sections, one clear panel of each example as its thumbnail, wide pictures."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from PIL import Image

SECTIONS = {
    "From start to end": ["quickstart", "plot_real_table", "plot_private_validation"],
    "Releases and what they answer": [
        "plot_marginals",
        "plot_yearly_survey",
        "plot_cube",
        "plot_range_tree",
        "plot_partitions",
        "plot_engines",
        "plot_expected_error",
    ],
    "Models": ["plot_kmeans", "plot_privpfc", "plot_parity", "plot_taxonomies"],
    "Is it private?": ["plot_audit", "plot_replay", "plot_attacks", "plot_sparse_vector"],
}
# The picture whose panel is the thumbnail, and the shares of it at left, top, right and bottom.
PANELS = {
    "quickstart": (1, (0.06, 0.0, 0.53, 0.7)),
    "plot_real_table": (1, (0.0, 0.0, 1.0, 1.0)),
    "plot_private_validation": (1, (0.0, 0.08, 0.255, 1.0)),
    "plot_marginals": (1, (0.33, 0.045, 0.634, 1.0)),
    "plot_cube": (1, (0.0, 0.0, 1.0, 1.0)),
    "plot_range_tree": (1, (0.0, 0.14, 0.53, 1.0)),
    "plot_partitions": (1, (0.355, 0.035, 0.625, 0.5)),
    "plot_engines": (1, (0.535, 0.05, 1.0, 1.0)),
    "plot_kmeans": (1, (0.0, 0.165, 0.52, 1.0)),
    "plot_parity": (1, (0.5, 0.07, 1.0, 1.0)),
    "plot_taxonomies": (1, (0.03, 0.07, 0.52, 0.325)),
    "plot_audit": (1, (0.265, 0.05, 1.0, 1.0)),
    "plot_replay": (1, (0.195, 0.02, 1.0, 1.0)),
    "plot_attacks": (1, (0.0, 0.0, 1.0, 1.0)),
    "plot_sparse_vector": (1, (0.0, 0.07, 0.6, 1.0)),
}
SIZE = (400, 280)
# Pictures with more pixels than this are hard to read on a phone.
WIDE = 650


class Picture(Directive):
    """A picture of ``_static``, light and dark; also for phones, if it was drawn for them."""

    required_arguments = 1
    has_content = True

    def run(self):
        (name,) = self.arguments
        folder = Path(self.state.document.settings.env.srcdir) / "_static"
        phones = (folder / f"{name}-phone-light.png").exists()
        parts = [("", "not-on-phones"), ("-phone", "only-on-phones")] if phones else [("", "")]
        lesson = " ".join(self.content)
        images = [
            nodes.image(
                uri=f"/_static/{name}{part}-{ink}.png",
                alt=lesson,
                classes=[f"only-{ink}", *([on] if on else [])],
            )
            for ink in ("light", "dark")
            for part, on in parts
        ]
        # The theme hides a caption beside a picture of the other mode.
        return [nodes.figure("", nodes.container("", *images), nodes.caption("", lesson))]


def in_order(filename):
    """Sorting key of an example: its place in the sections; new ones come last."""
    names = [name for section in SECTIONS.values() for name in section]
    name = Path(filename).stem
    return names.index(name) if name in names else len(names), name


def arrange(app):
    """Cut the thumbnails and write the sections into the index that sphinx-gallery has made."""
    folder = Path(app.srcdir) / "auto_examples"
    for name, panel in PANELS.items():
        cut_thumbnail(folder / "images", name, *panel)
    index = folder / "index.rst"
    index.write_text(with_sections(index.read_text(encoding="utf-8")), encoding="utf-8")


def cut_thumbnail(images, name, number, panel):
    """Replace a thumbnail by one panel of a picture."""
    picture = Image.open(images / f"sphx_glr_{name}_{number:03}.png").convert("RGB")
    sides = (picture.width, picture.height) * 2
    part = picture.crop([round(share * side) for share, side in zip(panel, sides, strict=True)])
    part.thumbnail(SIZE)
    card = Image.new("RGB", SIZE, "white")
    card.paste(part, ((SIZE[0] - part.width) // 2, (SIZE[1] - part.height) // 2))
    card.save(images / "thumb" / f"sphx_glr_{name}_thumb.png")


def wrap_pictures(app, doctree):
    """Put every picture without a dark variant into a box, in which a phone scrolls wide ones."""
    for image in list(doctree.findall(is_picture)):
        path = Path(app.srcdir) / image["uri"].lstrip("/")
        wide = path.suffix == ".png" and path.exists() and Image.open(path).width > WIDE
        box = nodes.container(classes=["picture", "wide"] if wide else ["picture"])
        shown = image.parent if isinstance(image.parent, nodes.reference) else image
        shown.replace_self(box)
        # What it shows is its caption too, where a page gives none.
        if not isinstance(box.parent, nodes.figure) and "auto_examples" not in doctree["source"]:
            lesson = nodes.caption("", image["alt"])
            shown = nodes.figure("", shown, lesson, ids=[nodes.make_id(path.stem)])
        box += shown


def is_picture(node):
    """Whether a node is a single picture: no thumbnail, and not one of two for light and dark."""
    if node.tagname not in ("image", "imgsgnode"):
        return False
    if {"only-light", "only-dark"} & set(node["classes"]):
        return False
    around = node.parent
    while isinstance(around, nodes.reference | nodes.figure):
        around = around.parent
    return isinstance(around, nodes.section)


def with_sections(text):
    """The index with a heading above the examples of each section."""
    if SECTIONS_WRITTEN in text:
        return text
    cards = re.split(r"(?=\.\. raw:: html\n\n    <div class=\"sphx-glr-thumbcontainer\")", text)
    head, cards = cards[0], cards[1:]
    last, tail = cards[-1].split(".. thumbnail-parent-div-close", 1)
    of = {re.search(r":doc:`/auto_examples/(\w+)`", card)[1]: card for card in [*cards[:-1], last]}
    opened = head.split(OPEN.split(".. thumbnail")[0].rstrip(), 1)[0]
    placed = {name for names in SECTIONS.values() for name in names}
    wanted = {**SECTIONS, "Others": [name for name in of if name not in placed]}
    parts = [opened, SECTIONS_WRITTEN]
    for title, names in wanted.items():
        if names:
            parts += [f"{title}\n{'-' * len(title)}\n", OPEN, *(of[name] for name in names), CLOSE]
    return "\n".join(parts) + tail.split("</div>", 1)[-1]


SECTIONS_WRITTEN = ".. sections are written\n"
OPEN = '.. raw:: html\n\n    <div class="sphx-glr-thumbnails">\n\n.. thumbnail-parent-div-open\n'
CLOSE = ".. thumbnail-parent-div-close\n\n.. raw:: html\n\n    </div>\n"
