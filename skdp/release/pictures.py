"""What a picture of a release shows: counts, axes, outlines, and a title with epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .box_model import BoxModel
from .labels import plot_axis

__all__ = ["plot_parts"]


def plot_parts(synopsis: Any, columns: Sequence[str] | str | None, blocks: bool) -> dict[str, Any]:
    """Parameters of `skdp.plotting.plot_view` for one or two columns of a synopsis.

    Raises
    ------
    ValueError
        As in `Synopsis.view`, or if there are no boxes to outline.
    """
    from ..plotting import PlotAxis, loss_title

    domain, model = synopsis.domain, synopsis.model
    if columns is None:
        columns = domain.names[:2]
    columns = [columns] if isinstance(columns, str) else list(columns)
    table = synopsis.view(columns)
    rectangles = None
    if blocks:
        if not isinstance(model, BoxModel) or len(columns) != 2:
            raise ValueError(
                "blocks=True outlines boxes over two columns; this release or view has none."
            )
        rectangles = model.rectangles([domain.index(name) for name in columns])
    return {
        "table": table,
        "axes": [PlotAxis(**plot_axis(name, domain[name])) for name in columns],
        "blocks": rectangles,
        "title": loss_title(synopsis.mechanism, synopsis.privacy_loss),
    }
