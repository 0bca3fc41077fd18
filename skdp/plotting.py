"""Plots of releases, from plain arrays; matplotlib is imported only when one is drawn.

Pictures follow the style of matplotlib: with ``pyplot.style.use("dark_background")`` they are dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from ._validation import as_level

__all__ = [
    "Inks",
    "PlotAxis",
    "axes_or_new",
    "current_inks",
    "loss_title",
    "plot_beside",
    "plot_centroids",
    "plot_distances",
    "plot_errors",
    "plot_intervals",
    "plot_lattice",
    "plot_network",
    "plot_shapes",
    "plot_tree",
    "plot_validity",
    "plot_view",
]

_MAX_LABELS = 30
_MAX_CELLS = 1000
_MAX_BLOCKS = 5000
# A picture whose largest cell is more than so many times the mean one gets a skewed colour scale.
_SKEWED = 10.0
# Colour-blind people can distinguish them too, and each line has its own mark.
_LINE_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
# With more bars than this, intervals are drawn as a band instead of a line each.
_MAX_WHISKERS = 60
_BAND = {"alpha": 0.35, "linewidth": 0}
# Pictures of distances have numbers in their cells up to this many columns.
_MAX_NUMBERED = 16


class PlotAxis(NamedTuple):
    """How the codes of one column lie along an axis of a picture.

    Attributes
    ----------
    name : str
        The column.
    edges : ndarray of float, shape (n_values + 1,)
        Borders of the cells, ascending; in units of the column for numbers.
    labels : sequence of str or None
        One for each cell of a column of categories; None for numbers.
    missing : bool
        Whether there is one more code, after those of the edges, for missing values.
    zone : str or None
        Time zone of dates, whose edges are days since 1970; None for other columns.
    log : bool
        Whether numbers are declared on a logarithmic scale.
    """

    name: str
    edges: np.ndarray
    labels: Sequence[str] | None
    missing: bool
    zone: str | None = None
    log: bool = False


class Inks(NamedTuple):
    """Colours that can be read on the paper of the current style of matplotlib.

    Attributes
    ----------
    ink, paper : str
        Of texts, and behind them.
    main, bad, grey, faint : str
        Of what is shown, of what is wrong, of lines beside it, of areas behind it.
    """

    ink: Any
    paper: Any
    main: str
    bad: str
    grey: str
    faint: str


def current_inks() -> Inks:
    """Dark inks for light paper, and light ones for dark paper."""
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb

    ink, paper = rcParams["text.color"], rcParams["axes.facecolor"]
    if sum(to_rgb(ink)) < 1.5:
        paper = "white" if paper == "none" else paper
        return Inks(ink, paper, "#31688e", "#c1272d", "#767676", "#d9d9d9")
    paper = "black" if paper == "none" else paper
    return Inks(ink, paper, "#6fb7f2", "#ff7f6e", "#a0a0a0", "#484848")


def axes_or_new(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """The axes that were given, or those of a new figure of a width and a height in inches.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "Plotting needs matplotlib, which cannot be imported. Install it with "
            "pip install 'skdp[plot]'."
        ) from error
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def plot_view(
    table: np.ndarray,
    axes: Sequence[PlotAxis],
    *,
    ax: Any = None,
    blocks: np.ndarray | None = None,
    norm: Any = None,
    title: str = "",
    label: str = "expected records",
) -> Any:
    """Draw expected counts: over one column as bars, over two as a heat map.

    Parameters
    ----------
    table : ndarray of float with one or two axes
        Expected records for each code, or pair of codes.
    axes : sequence of PlotAxis
        One for each axis of the table; the first is drawn from left to right.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.
    blocks : ndarray of int, shape (n_blocks, 2, 2), default=None
        Rectangles to outline: first code and one past the last code, ``[block, axis]``.
    norm : matplotlib Normalize or str, default=None
        Colour scale of a heat map, or its name. None: linear from zero; for skewed counts, whose
        largest cell is more than ten times the mean, linear up to the mean and logarithmic above.
    title : str, default=""
        Above axes that have no title yet.
    label : str, default="expected records"
        What is counted.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If there are more than 5,000 rectangles to outline.
    """
    if blocks is not None and len(blocks) > _MAX_BLOCKS:
        raise ValueError(
            f"There are {len(blocks):,} different blocks on these columns, too many to outline "
            f"(at most {_MAX_BLOCKS:,}). Draw them with blocks=False."
        )
    ax = axes_or_new(ax, _size(axes))
    borders = [_with_missing(axis) for axis in axes]
    for axis, border, set_scale in zip(axes, borders, (ax.set_xscale, ax.set_yscale), strict=False):
        if axis.log and border[0] > 0:
            set_scale("log")
        elif axis.log:
            # From 0 to the end of the first bin evenly.
            set_scale("symlog", linthresh=float(border[border > 0][0]))
    if len(axes) == 1:
        _bars(ax, table, axes[0], borders[0])
        ax.set_ylabel(label)
    else:
        _heat_map(ax, table, borders, blocks, norm, label)
        for axis, border, line in zip(axes, borders, (ax.axvline, ax.axhline), strict=True):
            if axis.missing and axis.labels is None:
                line(border[-2], color="white", linewidth=1.5)
    _ticks(ax.xaxis, axes[0], borders[0])
    ax.set_xlabel(axes[0].name)
    if len(axes) == 2:
        _ticks(ax.yaxis, axes[1], borders[1])
        ax.set_ylabel(axes[1].name)
    if title and not ax.get_title():
        ax.set_title(title, fontsize="medium")
    return ax


def plot_beside(
    exact: np.ndarray,
    released: np.ndarray,
    axes: Sequence[PlotAxis],
    *,
    ax: Any = None,
    blocks: np.ndarray | None = None,
    norm: Any = None,
    title: str = "",
) -> Any:
    """Draw exact counts and, beside them on the same scale, released ones. NOT private.

    Parameters
    ----------
    exact, released : ndarray of float with one or two axes
        Of the same shape.
    axes, blocks, norm, title
        As in `plot_view`; blocks and the title are of the release.
    ax : sequence of two matplotlib Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    ndarray of two matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    ValueError
        If ``ax`` is not a pair, or as in `plot_view`.
    """
    if ax is None:
        first = axes_or_new(None, (11.0, 4.2))
        figure = first.figure
        first.remove()
        ax = figure.subplots(1, 2, sharex=True, sharey=True)
    pair = np.asarray(ax, dtype=object).ravel()
    if len(pair) != 2:
        raise ValueError(f"ax must hold two axes, for records and release; got {len(pair)}.")
    if norm is None and len(axes) == 2:
        # One scale for both panels.
        norm = _colour_scale(_fewer_cells(exact))
    warned = "NOT PRIVATE: the records, for the data owner only"
    plot_view(exact, axes, ax=pair[0], norm=norm, title=warned, label="records")
    plot_view(released, axes, ax=pair[1], blocks=blocks, norm=norm, title=title)
    return pair


def loss_title(what: str, loss: Any) -> str:
    """What was released, and what it cost.

    Parameters
    ----------
    what : str
    loss : PrivacyLoss or None
        None if nothing is known of it.
    """
    if loss is None:
        return what
    seeded = ", seeded: no guarantee" if loss.seeded else ""
    person = "" if loss.max_contributions is None else " for a person"
    text = f"epsilon = {float(loss.epsilon):.4g}{person}{seeded}"
    # Names of mechanisms are long: two short lines fit above a small picture.
    return f"{what}\n{text}" if what else text


def plot_intervals(ax: Any, axis: PlotAxis, low: np.ndarray, high: np.ndarray) -> None:
    """Draw intervals over the bars of `plot_view`: a line each, or a band if there are many.

    Parameters
    ----------
    ax : matplotlib Axes
    axis : PlotAxis
        That of the bars.
    low, high : ndarray of float, shape (n_bars,)
    """
    if len(low) > _MAX_WHISKERS:
        bars = slice(0, len(axis.edges) - 1)
        ink = current_inks().ink
        ax.stairs(high[bars], axis.edges, baseline=low[bars], fill=True, color=ink, **_BAND)
    else:
        borders = _with_missing(axis)
        middles = (borders[:-1] + borders[1:]) / 2
        ax.vlines(middles, low, high, color=current_inks().ink, linewidth=1.0)


def plot_centroids(centers: np.ndarray, names: Sequence[str], *, ax: Any = None) -> Any:
    """Draw centroids as numbered marks over two columns, on top of what ``ax`` shows.

    Parameters
    ----------
    centers : ndarray of float, shape (n_clusters, 2)
    names : sequence of two str
        The columns.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    if ax is None:
        ax = axes_or_new(None)
        ax.set_xlabel(names[0])
        ax.set_ylabel(names[1])
    ax.scatter(*centers.T, s=140, color="white", edgecolor="black", linewidth=1.0, zorder=3)
    for number, place in enumerate(centers):
        ax.annotate(
            str(number), place, ha="center", va="center", fontsize=7, color="black", zorder=4
        )
    return ax


def plot_validity(validity: Mapping[int, float], *, title: str = "", ax: Any = None) -> Any:
    """Draw the validity of every number of clusters tried, and mark the best.

    Parameters
    ----------
    validity : mapping of int to float
        The smaller the better; infinite ones are left out.
    title : str, default=""
        Above the picture.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    ax = axes_or_new(ax)
    known = {k: value for k, value in sorted(validity.items()) if np.isfinite(value)}
    ax.plot(list(known), list(known.values()), marker="o", color=current_inks().main)
    if known:
        best, ink = min(known, key=lambda k: known[k]), current_inks().ink
        ax.plot([best], [known[best]], marker="o", markersize=12, fillstyle="none", color=ink)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("clusters")
    ax.set_ylabel("validity (smaller is better)")
    ax.set_title(title, fontsize="medium")
    return ax


def plot_distances(matrix: np.ndarray, names: Sequence[str], *, title: str, ax: Any = None) -> Any:
    """Draw distances between 0 and 1 of columns (on the diagonal) and of their pairs.

    The colours are the same in every picture: from 0 to 1, on the scale of the square root, so that
    small distances differ too. Pictures of up to 16 columns have the numbers in their cells.

    Parameters
    ----------
    matrix : ndarray of float, shape (n_columns, n_columns)
        NaN where nothing is known.
    names : sequence of str
        The columns.
    title : str
        Above the picture.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    numbered = len(names) <= _MAX_NUMBERED
    side = min(2.5 + (0.45 if numbered else 0.25) * len(names), 14.0)
    ax = axes_or_new(ax, (side + 1, side))
    from matplotlib.colors import PowerNorm

    norm = PowerNorm(0.5, 0.0, 1.0)
    image = ax.imshow(matrix, cmap="viridis_r", norm=norm)
    ax.set_xticks(range(len(names)), names, rotation=90)
    ax.set_yticks(range(len(names)), names)
    ax.set_title(title, fontsize="medium")
    scale = ax.figure.colorbar(image, ax=ax, label="distance (0 equal, 1 disjoint)")
    scale.set_ticks([0, 0.02, 0.05, 0.1, 0.2, 0.5, 1])
    for (row, column), value in np.ndenumerate(matrix):
        if numbered and np.isfinite(value):
            ink = "white" if norm(value) > 0.5 else "black"
            style = {"ha": "center", "va": "center", "fontsize": 7, "color": ink}
            ax.text(column, row, f"{value:.2f}", **style)
    return ax


def plot_shapes(
    shapes: Mapping[str, Any],
    score: str,
    *,
    level: float,
    title: str = "",
    outputs: Sequence[str] = (),
    zones: Mapping[str, str] | None = None,
) -> Any:
    """Draw functions of columns, a panel each, with bands of noise; of pairs, maps of colours.

    In a map the cells whose bands hold 0 are crossed.

    Parameters
    ----------
    shapes : mapping of str to ShapeFunction or PairFunction
        By column or pair.
    score : str
        What the scores are.
    level : float
        Of the bands.
    title : str, default=""
        Above the picture.
    outputs : sequence of str, default=()
        Names of the classes; with more than two each has a score, and a legend names them.
    zones : mapping of str to str, default=None
        Time zones of the columns whose ``edges`` are days since 1970.

    Returns
    -------
    matplotlib Figure

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    n_columns = min(len(shapes), 3) or 1
    n_rows = -(-len(shapes) // n_columns) or 1
    first = axes_or_new(None, (3.6 * n_columns, 2.8 * n_rows))
    figure = first.figure
    first.remove()
    grid = figure.subplots(n_rows, n_columns, squeeze=False)
    reach = NormalDist().inv_cdf((1 + as_level(level)) / 2)
    lines = []
    for ax, (name, shape) in zip(grid.flat, shapes.items(), strict=False):
        if np.ndim(shape.sizes) == 2:
            _pair_panel(ax, shape, reach, score)
            continue
        lines.append(ax)
        n_left_out = _shape_panel(ax, shape, reach)
        if zones and name in zones:
            axis = PlotAxis(name, shape.edges, None, False, zones[name])
            _date_ticks(ax.xaxis, axis, shape.edges)
            # Panels are narrow.
            ax.tick_params(axis="x", labelsize=7)
            ax.set_xticks(ax.get_xticks()[::2], labels=ax.get_xticklabels()[::2])
        ax.axhline(0.0, color=current_inks().grey, linewidth=0.8)
        n_groups = len(shape.labels)
        ax.set_xlabel(f"{name} ({n_groups - n_left_out} of {n_groups})" if n_left_out else name)
        ax.sharey(lines[0])
    for ax in list(grid.flat)[len(shapes) :]:
        ax.remove()
    if lines and len(outputs) > 2:
        handles = [
            lines[0].plot([], [], color=f"C{place}", label=_short(name))[0]
            for place, name in enumerate(outputs)
        ]
        lines[0].legend(handles=handles, fontsize=7)
    # All scores are on one scale, written at the left end of each row.
    if lines:
        lines[0].autoscale(axis="y")
    for row in grid:
        first, *others = [ax for ax in row if ax in lines] or [None]
        if first is not None:
            first.set_ylabel(score)
        for ax in others:
            ax.tick_params(labelleft=False)
    figure.suptitle(title, fontsize="medium")
    return figure


def _shape_panel(ax: Any, shape: Any, reach: float) -> int:
    """Steps over a number; dots with whiskers over categories; how many of these are left out."""
    order = _category_order(shape)
    scores, errors = np.atleast_2d(shape.scores.T), np.atleast_2d(shape.std_errors.T)
    n_steps = 0 if shape.edges is None else len(shape.edges) - 1
    for output, (score, error) in enumerate(zip(scores, errors, strict=True)):
        colour = current_inks().main if len(scores) == 1 else f"C{output}"
        if n_steps:
            low, high = (score + sign * reach * error for sign in (-1, 1))
            ax.stairs(
                high[:n_steps], shape.edges, baseline=low[:n_steps], fill=True, color=colour,
                alpha=0.25, linewidth=0,
            )  # fmt: skip
            ax.stairs(score[:n_steps], shape.edges, baseline=None, color=colour)
        else:
            ax.errorbar(
                np.arange(len(order)), score[order], reach * error[order], fmt="o", color=colour,
                markersize=4,
            )  # fmt: skip
            ax.set_xticks(np.arange(len(order)))
            # Few categories would stand at the very edges of the panel.
            ax.margins(x=max(0.05, 0.5 / len(order)))
            names = [_short(shape.labels[group], 12) for group in order]
            ax.set_xticklabels(names, rotation=90, fontsize=7)
    return 0 if n_steps else len(shape.labels) - len(order)


def _category_order(shape: Any) -> np.ndarray:
    """Categories in their own order, or by score; of many those with the largest scores."""
    scores = shape.scores.reshape(len(shape.labels), -1)
    # Of several classes the one that the column says most about.
    order = np.argsort(-scores[:, np.abs(scores).sum(axis=0).argmax()], kind="stable")
    if shape.chain is not None:
        order = np.array([*shape.chain, *np.setdiff1d(order, shape.chain)], dtype=np.int64)
    kept = np.argsort(-np.abs(scores).max(axis=1), kind="stable")[:_MAX_LABELS]
    return order[np.isin(order, kept)]


def _pair_panel(ax: Any, pair: Any, reach: float, score: str) -> None:
    """A function of two columns as colours, in cells of equal size; of several classes the last."""
    scores, errors = pair.scores, pair.std_errors
    if scores.ndim == 3:
        scores, errors = scores[..., -1], errors[..., -1]
    most = max(float(np.abs(scores).max()), 1e-9)
    mesh = ax.pcolormesh(scores.T, cmap="RdBu_r", vmin=-most, vmax=most, rasterized=True)
    bar = ax.figure.colorbar(mesh, ax=ax)
    bar.ax.tick_params(labelsize=7)
    bar.set_label(score, fontsize=7)
    rows, columns = np.nonzero(np.abs(scores) <= reach * errors)
    ax.scatter(rows + 0.5, columns + 0.5, marker="x", s=9, linewidth=0.7, color="#767676")
    for axis, labels, edges, name in zip(
        (ax.xaxis, ax.yaxis), pair.labels, pair.edges, pair.columns, strict=True
    ):
        # Numbers stand at the borders, other values in the middle of their cells.
        borders = [] if edges is None else [f"{edge:.3g}" for edge in edges]
        others = range(max(len(borders) - 1, 0), len(labels))
        axis.set_ticks([*range(len(borders)), *(place + 0.5 for place in others)])
        axis.set_ticklabels([*borders, *(_short(labels[place], 12) for place in others)])
        axis.set_tick_params(labelsize=7, rotation=90 if axis is ax.xaxis else 0)
        axis.set_label_text(name)


def _size(axes: Sequence[PlotAxis]) -> tuple[float, float]:
    """Inches of a new picture, with room for names: 640 to 1,400 pixels by 480 to 1,400."""
    room = [0.22 * len(axis.labels or ()) + 2 for axis in axes]
    height = min(max(room[1], 4.8), 14.0) if len(axes) == 2 else 4.8
    return min(max(room[0], 6.4), 14.0), height


def _with_missing(axis: PlotAxis) -> np.ndarray:
    """Borders of all codes; missing values get an extra strip at the end."""
    if not axis.missing:
        return axis.edges
    span = axis.edges[-1] - axis.edges[0]
    if axis.log:
        positive = axis.edges[axis.edges > 0]
        return np.append(axis.edges, axis.edges[-1] * (axis.edges[-1] / positive[0]) ** 0.05)
    strip = max(span / 20, (axis.edges[1] - axis.edges[0]) if axis.labels is not None else 0.0)
    return np.append(axis.edges, axis.edges[-1] + strip)


def _bars(ax: Any, table: np.ndarray, axis: PlotAxis, borders: np.ndarray) -> None:
    inks = current_inks()
    if len(table) <= _MAX_LABELS or axis.labels is not None:
        ax.bar(
            (borders[:-1] + borders[1:]) / 2,
            table,
            width=np.diff(borders) * (0.8 if axis.labels is not None else 1.0),
            color=inks.main,
            edgecolor=inks.paper,
            linewidth=0.5,
        )
    else:
        ax.stairs(table, borders, fill=True, color=inks.main)
    if axis.missing and axis.labels is None:
        ax.axvline(borders[-2], color=inks.ink, linewidth=0.8)
    ax.axhline(0, color=inks.ink, linewidth=0.8)
    ax.margins(x=0.01)


def _heat_map(
    ax: Any,
    table: np.ndarray,
    borders: Sequence[np.ndarray],
    blocks: np.ndarray | None,
    norm: Any,
    label: str,
) -> None:
    from matplotlib import colormaps
    from matplotlib.collections import PatchCollection
    from matplotlib.colors import AsinhNorm
    from matplotlib.patches import Rectangle

    drawn = _fewer_cells(table)
    drawn_borders = [
        np.append(border[:-1][:: _cells_added(size)], border[-1])
        for border, size in zip(borders, table.shape, strict=True)
    ]
    scale = _colour_scale(drawn) if norm is None else norm
    # A logarithmic scale knows no numbers that are not positive: they look like its lowest one.
    colours = colormaps["viridis"]
    colours = colours.with_extremes(bad=colours(0.0), under=colours(0.0))
    mesh = ax.pcolormesh(*drawn_borders, drawn.T, cmap=colours, norm=scale, rasterized=True)
    extend = "min" if mesh.norm.vmin == 0 and drawn.min() < 0 else "neither"
    bar = ax.figure.colorbar(mesh, ax=ax, label=label, extend=extend)
    if isinstance(scale, AsinhNorm):
        ticks = [t for k in range(-3, 12) for t in (10.0**k, 3 * 10.0**k)]
        ticks = [t for t in ticks if scale.linear_width / 2 <= t <= mesh.norm.vmax]
        bar.set_ticks([0.0, *ticks], labels=["0", *(f"{t:,g}" for t in ticks)])
    if blocks is not None:
        low = [borders[side][blocks[:, side, 0]] for side in (0, 1)]
        high = [borders[side][blocks[:, side, 1]] for side in (0, 1)]
        outlines = [
            Rectangle((x, y), width, height)
            for x, y, width, height in zip(
                low[0], low[1], high[0] - low[0], high[1] - low[1], strict=True
            )
        ]
        ax.add_collection(
            PatchCollection(outlines, facecolor="none", edgecolor="white", linewidth=0.4)
        )


def _cells_added(size: int) -> int:
    """How many cells of an axis are drawn as one."""
    return -(-size // _MAX_CELLS)


def _fewer_cells(table: np.ndarray) -> np.ndarray:
    """More cells than pixels are added up, so that none is dropped."""
    for side, size in enumerate(table.shape):
        if _cells_added(size) > 1:
            table = np.add.reduceat(table, np.arange(0, size, _cells_added(size)), axis=side)
    return table


def _colour_scale(table: np.ndarray) -> Any:
    """Colours from zero to the largest cell; half of them below the mean where that is far below.

    The drawn table alone decides: for a release this is post-processing.
    """
    from matplotlib.colors import AsinhNorm, Normalize

    top = max(float(table.max()), 1e-12)
    # No narrower than a thousandth of the top, so that the noise of empty cells stays dark.
    mean = max(float(table.clip(min=0.0).mean()), top / 1000)
    if top <= _SKEWED * mean:
        return Normalize(0.0, top)
    return AsinhNorm(mean, 0.0, top)


def _ticks(axis: Any, described: PlotAxis, borders: np.ndarray) -> None:
    """Names of categories, values of numbers, and "missing"."""
    if described.labels is not None:
        labels = [*described.labels, *(["missing"] if described.missing else [])]
        side = axis.get_figure().get_size_inches()[int(axis.axis_name == "y")]
        every = -(-len(labels) // max(_MAX_LABELS, int(4 * side)))
        middles = (borders[:-1] + borders[1:]) / 2
        axis.set_ticks(middles[::every], labels=[_short(text) for text in labels[::every]])
        crowded = len(labels) > 4 or max(map(len, labels)) > 8
        if axis.axis_name == "x" and crowded:
            axis.set_tick_params(rotation=45)
            for label in axis.get_ticklabels():
                label.set_horizontalalignment("right")
                label.set_rotation_mode("anchor")
        return
    if described.zone is not None:
        _date_ticks(axis, described, borders)
    elif described.missing:
        from matplotlib.ticker import LogLocator, MaxNLocator

        low, high = described.edges[0], described.edges[-1]
        first = next(edge for edge in described.edges if edge > 0) if described.log else low
        locator = LogLocator(numticks=8) if described.log else MaxNLocator(6)
        values = [v for v in locator.tick_values(max(first, low), high) if low <= v <= high]
        # The last number must leave room for the word after it.
        values = [
            v for v in values if v < (high / 2 if described.log else high - (high - low) / 12)
        ]
        middle = (borders[-2] + borders[-1]) / 2
        axis.set_ticks([*values, middle], labels=[*(f"{v:g}" for v in values), "missing"])


def _date_ticks(axis: Any, described: PlotAxis, borders: np.ndarray) -> None:
    """Dates, and "missing"."""
    from zoneinfo import ZoneInfo

    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, get_epoch, num2date

    # Matplotlib counts days too, but a user may have moved its first one.
    first = (np.datetime64("1970-01-01") - np.datetime64(get_epoch())) / np.timedelta64(1, "D")
    low, high = described.edges[0], described.edges[-1]
    zone = ZoneInfo(str(described.zone))
    locator = AutoDateLocator(maxticks=8, tz=zone)
    values = [
        value - first
        for value in locator.tick_values(*(num2date(end + first, zone) for end in (low, high)))
        if low <= value - first <= high
    ]
    texts = ConciseDateFormatter(locator, tz=zone).format_ticks([v + first for v in values])
    if described.missing:
        # The last date must leave room for the word after it.
        kept = [place for place, v in enumerate(values) if v < high - (high - low) / 12]
        values = [*(values[place] for place in kept), (borders[-2] + borders[-1]) / 2]
        texts = [*(texts[place] for place in kept), "missing"]
    axis.set_ticks(values, labels=texts)


def _short(text: str, length: int = 18) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


Cuboid = tuple[str, ...]
Point = tuple[float, float]

# Lattices of at most this many cuboids are drawn with labels and lines.
_MAX_NAMED = 40
_MAX_JOINED = 300


def plot_lattice(
    names: Sequence[str],
    errors: Mapping[tuple[str, ...], float],
    shares: Mapping[tuple[str, ...], float],
    *,
    title: str = "",
    ax: Any = None,
) -> Any:
    """Draw the cuboids of a cube as a lattice, the total at the bottom.

    Parameters
    ----------
    names : sequence of str
        The dimensions.
    errors : mapping of tuple of str to float
        Standard error of each published cuboid, shown by colour.
    shares : mapping of tuple of str to float
        Share of the budget of each measured cuboid, which gets a ring.
    title : str, default=""
        Above the picture.
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    nodes = sorted({*errors, *shares}, key=lambda node: (len(node), [names.index(n) for n in node]))
    rows = {order: [node for node in nodes if len(node) == order] for order in map(len, nodes)}
    widest = max(map(len, rows.values()))
    named = len(nodes) <= _MAX_NAMED
    size = (max(6.0, 1.25 * widest), 1.3 * len(rows) + 0.8) if named else (9.0, 6.0)
    ax = axes_or_new(ax, size)
    from matplotlib.colors import LogNorm, Normalize

    place = {
        node: ((i - (len(row) - 1) / 2) * widest / len(row), order)
        for order, row in rows.items()
        for i, node in enumerate(row)
    }
    if len(nodes) <= _MAX_JOINED:
        _join(ax, place, width=0.8 if named else 0.25)
    values = list(errors.values())
    spread = min(values) > 0 and max(values) > 1.5 * min(values)
    norm = (LogNorm if spread else Normalize)(min(values), max(values))
    area = 700.0 if named else max(12.0, 3000.0 / widest)
    if unpublished := [node for node in nodes if node not in errors]:
        ax.scatter(*_points(place, unpublished), area, current_inks().paper, zorder=2)
    dots = ax.scatter(
        *_points(place, errors), s=area, c=values, norm=norm, cmap="viridis_r", zorder=2
    )
    ax.scatter(
        *_points(place, shares),
        s=1.5 * area,
        facecolors="none",
        edgecolors="#d55e00",
        linewidths=2.0 if named else 1.2,
        zorder=3,
        label="measured",
    )
    if named:
        _name_cuboids(ax, place, errors, shares, norm)
    scale = ax.figure.colorbar(dots, ax=ax, label="standard error of a cell")
    scale.ax.yaxis.set_major_formatter("{x:g}")
    scale.ax.yaxis.set_minor_formatter("{x:g}")
    ax.set_ylabel("dimensions of the cuboid")
    ax.set_yticks(sorted(rows))
    ax.set_xticks([])
    ax.set_xlim(-widest / 2 - 0.2, widest / 2 + 0.2)
    ax.set_ylim(-0.75, max(rows) + 0.5)
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)
    ax.legend(loc="upper left", frameon=False, markerscale=0.4 if named else 1.0)
    ax.set_title(title, fontsize="medium")
    return ax


def plot_network(
    edges: Iterable[tuple[int, int]], names: Sequence[str], *, title: str = "", ax: Any = None
) -> Any:
    """Draw a Bayesian network, parents above their children.

    Parameters
    ----------
    edges : iterable of (int, int)
        Parent and child of every edge, by position; all edges into a node before those out of it.
    names : sequence of str
        Names of the nodes.
    title : str, default=""
        Above the picture.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
    """
    edges = list(edges)
    depth = np.zeros(len(names), dtype=int)
    for parent, child in edges:
        depth[child] = max(depth[child], depth[parent] + 1)
    width = int(np.bincount(depth).max())
    ax = axes_or_new(ax, (max(5.0, 1.6 * width), max(3.0, 0.9 * (int(depth.max()) + 1))))
    place = np.zeros((len(names), 2))
    for layer in range(int(depth.max()) + 1):
        members = np.flatnonzero(depth == layer)
        # Every second layer is shifted: an edge over two layers passes between the names.
        place[members, 0] = (np.arange(len(members)) + 0.5) / len(members) + 0.04 * (layer % 2)
        place[members, 1] = -layer
    inks = current_inks()
    for parent, child in edges:
        style = {"arrowstyle": "->", "color": inks.main, "alpha": 0.6, "shrinkA": 8, "shrinkB": 8}
        ax.annotate("", place[child], place[parent], arrowprops=style)
    box = {"boxstyle": "round", "facecolor": inks.paper, "edgecolor": inks.main}
    for name, (x, y) in zip(names, place, strict=True):
        ax.text(x, y, _short(str(name)), ha="center", va="center", bbox=box)
    ax.set_xlim(-0.05, 1.1)
    ax.set_ylim(-depth.max() - 0.5, 0.5)
    ax.axis("off")
    ax.set_title(title, fontsize="medium")
    return ax


def _points(place: Mapping[Cuboid, Point], nodes: Iterable[Cuboid]) -> Iterable[tuple[float, ...]]:
    """Horizontal and vertical positions of cuboids."""
    return zip(*(place[node] for node in nodes), strict=True)


def _join(ax: Any, place: Mapping[Cuboid, Point], width: float) -> None:
    """Draw a line from each cuboid to those with one dimension less."""
    from matplotlib.collections import LineCollection

    segments = [
        (place[node], place[smaller])
        for node in place
        for smaller in (tuple(n for n in node if n != dropped) for dropped in node)
        if smaller in place
    ]
    ax.add_collection(LineCollection(segments, colors="0.75", linewidths=width, zorder=1))


def _name_cuboids(
    ax: Any,
    place: Mapping[Cuboid, Point],
    errors: Mapping[Cuboid, float],
    shares: Mapping[Cuboid, float],
    norm: Any,
) -> None:
    """Write the dimensions and the share below each cuboid, and the error into it."""
    paper = current_inks().paper
    for node, (x, y) in place.items():
        text = "\n".join(_short(name, 14) for name in node) or "total"
        if node in shares:
            text += f"\n({shares[node]:.0%})"
        ax.annotate(
            text,
            (x, y),
            (0, -19),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=7,
            bbox={"facecolor": paper, "edgecolor": "none", "alpha": 0.7, "pad": 0.5},
            zorder=4,
        )
        if node in errors:
            ax.annotate(
                f"{errors[node]:.3g}",
                (x, y),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if norm(errors[node]) > 0.45 else "black",
                zorder=4,
            )


def plot_errors(table: Any, *, unit: str, title: str, ax: Any = None) -> Any:
    """Draw expected errors against epsilon, a line for each kind of question.

    Parameters
    ----------
    table : DataFrame
        Columns ``question``, ``epsilon``, ``error``, ``lowest`` and ``highest``.
    unit : str
        Of the errors.
    title : str
    ax : matplotlib Axes, default=None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    ax = axes_or_new(ax, (6.4, 4.2))
    from matplotlib.ticker import FuncFormatter, LogLocator

    for number, (question, rows) in enumerate(table.groupby("question", sort=False)):
        rows = rows.sort_values("epsilon")
        colour, marker = _LINE_COLOURS[number % len(_LINE_COLOURS)], "osD^vP"[number % 6]
        ax.plot(rows.epsilon, rows.error, marker=marker, color=colour, label=str(question))
        if len(rows) > 1:
            ax.fill_between(
                rows.epsilon, rows.lowest, rows.highest, color=colour, alpha=0.12, linewidth=0
            )
    ax.set_xscale("log")
    epsilons = sorted(table.epsilon.unique())
    ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    if (table.error > 0).all():
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    ax.minorticks_off()
    ax.set_xlabel("epsilon")
    ax.set_ylabel(f"expected error ({unit})")
    ax.set_title(title)
    ax.grid(True, alpha=0.3)
    ax.legend(frameon=False)
    return ax


def plot_tree(
    rows: Sequence[tuple[int, int, int, str, str]], *, title: str = "", ax: Any = None
) -> Any:
    """Draw a tree from the top down.

    Parameters
    ----------
    rows : sequence of (node, parent, level, condition, text)
        Each after its parent; the root has the parent -1.
    title : str, default=""
        Above the picture.
    ax : matplotlib Axes, default=None
        None: those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    children: dict[int, list[int]] = {}
    for node, parent, *_ in rows:
        children.setdefault(parent, []).append(node)
    # Leaves stand side by side, and a parent above the middle of its children.
    places: dict[int, float] = {}
    n_leaves = 0
    for node in _children_first(children):
        if node in children:
            mine = [places[child] for child in children[node]]
            places[node] = (min(mine) + max(mine)) / 2
        else:
            places[node] = n_leaves
            n_leaves += 1
    levels = {node: level for node, _, level, *_ in rows}
    ax = axes_or_new(ax, (2.0 * max(n_leaves, 2), 1.5 * (max(levels.values()) + 1)))
    inks = current_inks()
    box = {"boxstyle": "round", "facecolor": inks.paper, "edgecolor": inks.main}
    for node, parent, level, words, text in rows:
        ax.text(places[node], -level, text.replace(" (", "\n("), ha="center", va="center", bbox=box)
        if parent >= 0:
            line = [places[parent], places[node]], [-levels[parent], -level]
            ax.plot(*line, color=inks.grey, linewidth=0.8, zorder=0)
            # Above the child: conditions of neighbours then never overlap.
            ax.text(
                places[node], -level + 0.24, _short(words, 26), ha="center", va="bottom",
                fontsize="small", bbox={"facecolor": inks.paper, "edgecolor": "none", "pad": 0.5},
            )  # fmt: skip
    ax.set_xlim(-0.6, max(n_leaves, 1) - 0.4)
    ax.set_ylim(-max(levels.values()) - 0.5, 0.5)
    ax.axis("off")
    ax.set_title(title)
    return ax


def _children_first(children: Mapping[int, Sequence[int]]) -> list[int]:
    """All nodes below -1, each after its children, which stand from left to right."""
    order, waiting = [], [-1]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += children.get(node, [])
    return order[:0:-1]
