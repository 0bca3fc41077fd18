"""Plots of releases, from plain arrays; matplotlib is imported only when one is drawn.

Pictures follow the style of matplotlib: with ``pyplot.style.use("dark_background")`` they are dark.
They fit figures from 400 pixels on: names are shortened, the smallest of many categories and every
second or third of many names are left out.
"""

from __future__ import annotations

import datetime
import textwrap
from collections.abc import Collection, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from ._validation import as_level
from .domain import Categorical, Date, Datetime, Numeric

_COUNTED = "expected records"
_MAX_LABELS = 20
_MAIN = "C0"
# Finer bins are added up: noise of thousands of cells says nothing, and a bar needs some pixels.
_MAX_BINS = 128
_MAX_BLOCKS = 5000
# Inches for a name in a new picture and, at least, in a given one; for what surrounds names; of the
# largest new picture.
_ROW, _NARROW, _AROUND, _LARGEST = 0.22, 0.175, 1.05, 14.0
# Share of a picture that names of categories may take.
_NAMES = 0.34
# Inches that a number takes below an axis, and of an em that a letter takes.
_NUMBER, _LETTER = 0.85, 0.52


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
    dates : bool
        Whether edges are days since 1970.
    log : bool
        Whether numbers are declared on a logarithmic scale.
    ordered : bool
        Whether the order of the labels has a meaning. Of many others the largest alone are drawn.
    """

    name: str
    edges: np.ndarray
    labels: Sequence[str] | None
    missing: bool
    dates: bool = False
    log: bool = False
    ordered: bool = False


def plot_axis(name: str, attribute: Numeric | Categorical) -> PlotAxis:
    """How the codes of a column lie along an axis of a picture."""
    dates, log = False, False
    labels: list[str] | None = None
    if isinstance(attribute, Categorical) or attribute.special:
        # Special values lie anywhere on the number line: each code has a bar of its own.
        edges = np.arange(attribute.n_values + 1) - 0.5
        labels = attribute.labels()[: attribute.n_values]
    elif dates := isinstance(attribute, Date | Datetime):
        edges = attribute.days(attribute.edges)
    else:
        # A bar stands over its integers, the first one included.
        edges, log = attribute.edges - 0.5 * attribute.integer, attribute.scale == "log"
    ordered = getattr(attribute, "ordered", True)
    return PlotAxis(name, edges, labels, attribute.nullable, dates, log, ordered)


def _ink() -> Any:
    """Colour of texts in the current style of matplotlib."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def axes_or_new(ax: Any, size: tuple[float, float] | None = None) -> Any:
    """The axes that were given, or those of a new figure of a width and a height in inches.

    A figure of subplots without a layout gets one that keeps all texts inside the figure.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    if ax is not None:
        figure = ax.get_figure()
        if ax.get_subplotspec() is not None and figure.get_layout_engine() is None:
            figure.set_layout_engine("constrained")
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
    interval: Sequence[np.ndarray] | None = None,
) -> Any:
    """Draw expected counts: over one column as bars, over two as a heat map.

    Bars of categories lie, one below the other.

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
        Colour scale of a heat map, or its name. None: the square root of counts, from zero.
    title : str, default=""
        Above axes that have no title yet.
    interval : sequence of two ndarray of float, default=None
        Lowest and highest count of every bar: a line each, or a band if there are many.

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
    tables = [np.asarray(each, dtype=float) for each in (table, *(interval or ()))]
    if blocks is None:
        tables, axes = _pooled(tables, axes, ax)
    lying = len(axes) == 1 and axes[0].labels is not None
    sides = [ax.yaxis] if lying else [ax.xaxis, ax.yaxis]
    borders = [_with_missing(axis) for axis in axes]
    for axis, border, set_scale in zip(axes, borders, (ax.set_xscale, ax.set_yscale), strict=False):
        if axis.log and border[0] > 0:
            set_scale("log")
        elif axis.log:
            # From 0 to the end of the first bin evenly.
            set_scale("symlog", linthresh=float(border[border > 0][0]))
    if len(axes) == 1:
        _bars(ax, tables, axes[0], borders[0], lying)
        counts = ax.xaxis if lying else ax.yaxis
        _number_ticks(counts)
        counts.set_label_text(_COUNTED)
    else:
        if norm is None:
            from matplotlib.colors import PowerNorm

            # The drawn table alone decides: for a release this is post-processing.
            top = float(tables[0].max())
            norm = PowerNorm(0.5, 0.0, top if top > 0 else 1.0)
        _heat_map(ax, tables[0], borders, blocks, norm)
        for axis, border, line in zip(axes, borders, (ax.axvline, ax.axhline), strict=True):
            if axis.missing and axis.labels is None:
                line(border[-2], color="white", linewidth=1.5)
        if axes[1].labels is not None:
            ax.set_ylim(borders[1][[-1, 0]])
    for axis, border, side in zip(axes, borders, sides, strict=False):
        side.set_label_text(axis.name)
        _ticks(side, axis, border)
    _wrap(ax, title)
    return ax


def plot_release(
    release: Any,
    columns: Sequence[str] | str | None = None,
    *,
    ax: Any = None,
    blocks: bool = False,
    norm: Any = None,
) -> Any:
    """Draw a synopsis over one or two columns; see `Synopsis.plot`."""
    domain = release.counted
    columns = domain.names[:2] if columns is None else columns
    columns = [columns] if isinstance(columns, str) else list(columns)
    table, rectangles = release.view(columns), None
    if blocks:
        if not hasattr(release.model, "rectangles") or len(columns) != 2:
            raise ValueError(
                "blocks=True outlines boxes over two columns; this release or view has none."
            )
        rectangles = release.model.rectangles([domain.index(name) for name in columns])
    axes = [plot_axis(name, domain[name].declared) for name in columns]
    title = loss_title(release.mechanism, release.privacy_loss)
    return plot_view(table, axes, blocks=rectangles, title=title, ax=ax, norm=norm)


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
    person = "" if loss.max_rows_per_id is None else " for a person"
    text = f"epsilon = {float(loss.epsilon):.4g}{person}{seeded}"
    # Names of mechanisms are long: two short lines fit above a small picture.
    return f"{what}\n{text}" if what else text


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


def plot_shapes(
    shapes: Mapping[str, Any],
    score: str,
    *,
    level: float,
    title: str = "",
    outputs: Sequence[str] = (),
    dates: Collection[str] = (),
) -> Any:
    """Draw functions of columns, a panel each, with bands of noise.

    Parameters
    ----------
    shapes : mapping of str to ShapeFunction
    score : str
        What the scores are.
    level : float
        Of the bands.
    title : str, default=""
        Above the picture.
    outputs : sequence of str, default=()
        Names of the classes; with more than two each has a score, and a legend names them.
    dates : collection of str, default=()
        Columns whose ``edges`` are days since 1970.

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
    for ax, (name, shape) in zip(grid.flat, shapes.items(), strict=False):
        n_left_out = _shape_panel(ax, shape, reach)
        if name in dates:
            _ticks(ax.xaxis, PlotAxis(name, shape.edges, None, False, dates=True), shape.edges)
        elif shape.edges is not None and len(shape.edges) > 1:
            _number_ticks(ax.xaxis)
        ax.axhline(0.0, color=_ink(), alpha=0.6, linewidth=0.8)
        n_groups = len(shape.labels)
        if ax.get_xlabel() == "":
            ax.set_xlabel(f"{name} ({n_groups - n_left_out} of {n_groups})" if n_left_out else name)
        _wrap(ax)
        if ax is not grid[0, 0]:
            ax.sharey(grid[0, 0])
    for ax in list(grid.flat)[len(shapes) :]:
        ax.remove()
    if shapes and len(outputs) > 2:
        names = _cut(outputs, 72.0, 7)
        handles = [
            grid[0, 0].plot([], [], color=f"C{place}", label=name)[0]
            for place, name in enumerate(names)
        ]
        grid[0, 0].legend(handles=handles, fontsize=7)
    # All scores are on one scale, written at the left end of each row.
    if shapes:
        grid[0, 0].autoscale(axis="y")
    for first, *others in grid:
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
        colour = f"C{output}"
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
            ax.tick_params(axis="x", labelsize=7)
            _name_ticks(ax.xaxis, [shape.labels[group] for group in order])
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


def _size(axes: Sequence[PlotAxis]) -> tuple[float, float]:
    """Inches of a new picture, with room for names: 640 to 1,400 pixels by 480 to 1,400."""
    room = [_ROW * len(axis.labels or ()) + _AROUND + 0.4 for axis in axes]
    if len(axes) == 1:
        return 6.4, min(max(room[0], 4.8), _LARGEST)
    return min(max(room[0] + 1.5, 6.4), _LARGEST), min(max(room[1] + 1.5, 4.8), _LARGEST)


def _cell(ax: Any) -> tuple[float, float]:
    """Inches of a figure that belong to axes, before there is anything in them."""
    box, (width, height) = ax.get_position(original=True), ax.get_figure().get_size_inches()
    return width * box.width / 0.775, height * box.height / 0.77


def _pooled(
    tables: list[np.ndarray], axes: Sequence[PlotAxis], ax: Any
) -> tuple[list[np.ndarray], list[PlotAxis]]:
    """Of too many categories the largest of the first table; fewer bins.

    The tables after the first with one axis may be ends of intervals.
    """
    axes, room = list(axes), _cell(ax)
    for side, axis in enumerate(axes):
        if axis.labels is None:
            if len(tables) < 3:
                tables, axes[side] = _coarser(tables, side, axis)
            continue
        inches = room[1] - _AROUND if len(axes) == 1 else room[side] * (1 - _NAMES) - _AROUND
        most = max(int(inches / _NARROW) - axis.missing, 4)
        n = len(axis.labels)
        if n <= most or axis.ordered:
            continue
        counts = np.moveaxis(tables[0], side, 0)[:n].reshape(n, -1).sum(axis=1)
        kept = [*np.argsort(-counts, kind="stable")[:most], *range(n, tables[0].shape[side])]
        tables = [np.take(table, kept, axis=side) for table in tables]
        labels = [axis.labels[code] for code in kept[:most]]
        name, edges = f"{axis.name} ({most} of {n})", np.arange(most + 1) - 0.5
        axes[side] = axis._replace(name=name, labels=labels, edges=edges)
    return tables, axes


def _coarser(
    tables: list[np.ndarray], side: int, axis: PlotAxis
) -> tuple[list[np.ndarray], PlotAxis]:
    """Neighbouring bins added up, so many that a bar can be seen."""
    n = len(axis.edges) - 1
    if n <= _MAX_BINS:
        return tables, axis
    firsts = np.arange(0, n, -(-n // _MAX_BINS))
    starts = np.append(firsts, np.arange(n, tables[0].shape[side]))
    tables = [np.add.reduceat(table, starts, axis=side) for table in tables]
    return tables, axis._replace(edges=axis.edges[np.append(firsts, n)])


def _with_missing(axis: PlotAxis) -> np.ndarray:
    """Borders of all codes; missing values get an extra strip at the end."""
    if not axis.missing:
        return axis.edges
    span = axis.edges[-1] - axis.edges[0]
    if axis.log:
        positive = axis.edges[axis.edges > 0]
        return np.append(axis.edges, axis.edges[-1] * (axis.edges[-1] / positive[0]) ** 0.05)
    strip = span / 20 if axis.labels is None else axis.edges[1] - axis.edges[0]
    return np.append(axis.edges, axis.edges[-1] + strip)


def _bars(
    ax: Any, tables: Sequence[np.ndarray], axis: PlotAxis, borders: np.ndarray, lying: bool
) -> None:
    """Bars from zero, and over them their intervals."""
    ink, table = _ink(), tables[0]
    bars, line = (ax.barh, ax.hlines) if lying else (ax.bar, ax.vlines)
    middles = (borders[:-1] + borders[1:]) / 2
    if axis.labels is not None:
        bars(middles, table, 0.8 * np.diff(borders), color=_MAIN)
    else:
        ax.stairs(table, borders, fill=True, color=_MAIN)
    if len(tables) > 1:
        line(middles, *tables[1:], color=ink, linewidth=1.0)
    if axis.missing and axis.labels is None:
        ax.axvline(borders[-2], color=ink, alpha=0.6, linewidth=0.8)
    (ax.axvline if lying else ax.axhline)(0, color=ink, linewidth=0.8)
    ax.grid(True, axis="x" if lying else "y", color=ink, alpha=0.2, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    counts, values = (ax.set_xlim, ax.set_ylim) if lying else (ax.set_ylim, ax.set_xlim)
    values(borders[[-1, 0]] if lying else borders[[0, -1]])
    if not table.any():
        counts(0, 1)


def _heat_map(
    ax: Any, table: np.ndarray, borders: Sequence[np.ndarray], blocks: np.ndarray | None, norm: Any
) -> None:
    from matplotlib import colormaps
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    # A logarithmic scale knows no numbers that are not positive: they look like its lowest one.
    colours = colormaps["viridis"]
    colours = colours.with_extremes(bad=colours(0.0), under=colours(0.0))
    mesh = ax.pcolormesh(*borders, table.T, cmap=colours, norm=norm, rasterized=True)
    extend = "min" if mesh.norm.vmin == 0 and table.min() < 0 else "neither"
    bar = ax.figure.colorbar(mesh, ax=ax, label=_COUNTED, extend=extend)
    _number_ticks(bar.ax.yaxis)
    if blocks is not None:
        low, high = (
            np.stack([borders[side][blocks[:, side, end]] for side in (0, 1)], axis=1)
            for end in (0, 1)
        )
        outlines = [Rectangle(xy, *size) for xy, size in zip(low, high - low, strict=True)]
        ax.add_collection(
            PatchCollection(outlines, facecolor="none", edgecolor="white", linewidth=0.4)
        )


def _ticks(axis: Any, described: PlotAxis, borders: np.ndarray) -> None:
    """Names of categories, values of numbers, and "missing"."""
    middles = (borders[:-1] + borders[1:]) / 2
    if described.labels is not None:
        axis.set_ticks(middles)
        _name_ticks(axis, [*described.labels, *["missing"] * described.missing])
        return
    if described.dates:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        most = max(int(_cell(axis.axes)[0] / _NUMBER), 3)
        locator = AutoDateLocator(minticks=2, maxticks=most, tz=datetime.UTC)
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator, tz=datetime.UTC))
    elif described.log:
        positive = described.edges[described.edges > 0]
        if positive[-1] < 100.0 * positive[0]:
            axis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
        axis.set_major_formatter(_number)
    else:
        _number_ticks(axis)
    axis.set_minor_formatter("")
    if described.missing:
        # The last number might touch it.
        low, high = described.edges[[0, -1]]
        values = [each for each in axis.get_majorticklocs() if low <= each <= high][:-1]
        formatter = axis.get_major_formatter()
        texts = formatter.format_ticks(values)
        axis.set_ticks([*values, middles[-1]], labels=[*texts, "missing"])
        if formatter.get_offset():
            axis.set_label_text(f"{described.name} ({formatter.get_offset()})")


def _number(value: float, _: Any = None) -> str:
    """As people write it; years have no comma."""
    return f"{value:,.10g}" if abs(value) >= 10_000 else f"{value:.10g}"


def _number_ticks(axis: Any) -> None:
    """Numbers as people write them, below an axis no more than there is room for."""
    axis.set_major_formatter(_number)
    if axis.axis_name == "x":
        axis.get_major_locator().set_params(nbins=max(int(_cell(axis.axes)[0] / _NUMBER), 2))


def _name_ticks(axis: Any, texts: Sequence[str]) -> None:
    """Name the ticks of an axis: of too many every second, third and so on."""
    size, below = axis.get_major_ticks(1)[0].label1.get_size(), axis.axis_name == "x"
    along, across = _cell(axis.axes)[:: 1 if below else -1]
    every = -(-len(texts) // max(int(72 * along / (1.25 * size)), 1))
    names = _cut(texts, 72 * _NAMES * across, size)
    axis.set_ticklabels([name if k % every == 0 else "" for k, name in enumerate(names)])
    axis.set_tick_params(labelrotation=90 if below else 0, length=0)


def _cut(texts: Sequence[Any], room: float, size: float) -> list[str]:
    """Names in about so many points; of long ones the beginning and the end."""
    most, names = max(int(room / (_LETTER * size)), 3), [" ".join(str(t).split()) for t in texts]
    half = most // 2
    short = [n if len(n) <= most else f"{n[:half].rstrip()}…{n[-half:].lstrip()}" for n in names]
    return [_plain(name) for name in short]


def _plain(text: str) -> str:
    """Two dollars in a name do not make a formula of it."""
    return text.replace("$", r"\$") if text.count("$") > 1 else text


def _wrap(ax: Any, title: str = "") -> None:
    """Break the title and the names of axes into lines that stay inside the figure."""
    width, height = _cell(ax)
    sides = [(ax.xaxis.label, 0.62 * width), (ax.yaxis.label, 0.7 * height)]
    if title and not ax.get_title():
        ax.set_title(title, fontsize="medium")
        sides.append((ax.title, 0.75 * width))
    for text, inches in sides:
        most = max(int(72 * inches / (_LETTER * text.get_size())), 8)
        lines = [
            textwrap.fill(line, most, max_lines=3, placeholder="…")
            for line in text.get_text().split("\n")
        ]
        text.set_text(_plain("\n".join(lines)))
