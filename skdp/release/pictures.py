"""What a picture of a release shows: counts or correlations, axes, and a title with epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .result import plot_axis


def plot_parts(synopsis: Any, columns: Sequence[str] | str | None, blocks: bool) -> dict[str, Any]:
    """Parameters of `skdp.plotting.plot_view` for one or two columns of a synopsis.

    Raises
    ------
    ValueError
        As in `Synopsis.view`, or if there are no boxes to outline.
    """
    from ..plotting import PlotAxis, loss_title

    domain, model = synopsis.counted, synopsis.model
    if columns is None:
        columns = domain.names[:2]
    columns = [columns] if isinstance(columns, str) else list(columns)
    table = synopsis.view(columns)
    rectangles = None
    if blocks:
        if not hasattr(model, "rectangles") or len(columns) != 2:
            raise ValueError(
                "blocks=True outlines boxes over two columns; this release or view has none."
            )
        rectangles = model.rectangles([domain.index(name) for name in columns])
    return {
        "table": table,
        "axes": [PlotAxis(**plot_axis(name, domain[name].declared)) for name in columns],
        "blocks": rectangles,
        "title": loss_title(synopsis.mechanism, synopsis.privacy_loss),
    }


def plot_correlation_parts(synopsis: Any, columns: Sequence[str]) -> dict[str, Any]:
    """Parameters of `skdp.plotting.plot_correlations`; without intervals if there are none.

    Raises
    ------
    ValueError
        As in `Synopsis.correlation`.
    """
    from ..plotting import loss_title

    what, interval = [synopsis.mechanism or ""], None
    try:
        found = synopsis.correlation(columns, return_interval=True)
        interval = [found[end].to_numpy() for end in ("lower", "upper")]
        what.append("95% intervals")
        found = found["value"]
    except ValueError:
        # Not every release has error bars; what is wrong with the columns is said here again.
        found = synopsis.correlation(columns)
    return {
        "matrix": found.to_numpy(),
        "names": columns,
        "interval": interval,
        "title": loss_title(", ".join(filter(None, what)), synopsis.privacy_loss),
    }
