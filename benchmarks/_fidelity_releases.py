"""Releases of the fidelity benchmark: synthesizers of the library by name, and baselines.

All of them are made by `release` and answer the same questions: `Release.answer` ranges,
`Release.view` marginals, `Release.codes` and `Release.frame` synthetic rows.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import skdp
from benchmarks._fidelity_tables import Table
from benchmarks.views import independence
from skdp import Synopsis
from skdp.release import Conditional, NetworkDensity, NetworkModel
from skdp.rows import CountTable

__all__ = ["BASELINES", "Release", "Unsupported", "attempts", "parsed", "release"]

Queries = Sequence[Mapping[int, NDArray[np.float64]]]

# Boxes, cells and grids refuse what is larger; PrivTree is meant for two dimensions.
_PRIVTREE_COLUMNS = 2


class Unsupported(ValueError):
    """A baseline that is not meant for this table."""


@dataclass
class Release:
    """A private release of a table, or rows in its place.

    Parameters
    ----------
    table : Table
    synopsis : Synopsis, default=None
    estimator : synthesizer, default=None
        Where a synthesizer of the library made the release.
    rows : callable, default=None
        Codes instead of a synopsis: a function from a seed to an array of shape (n, d).
    """

    table: Table
    synopsis: Synopsis | None = None
    estimator: Any = None
    rows: Callable[[int], NDArray[np.int32]] | None = None

    def frame(self, seed: int, n_samples: int | None = None) -> pd.DataFrame:
        """Synthetic rows, by default as many as the release estimates."""
        if self.estimator is not None:
            return self.estimator.sample(n_samples, random_state=seed)
        if self.synopsis is not None:
            return self.synopsis.sample(n_samples, random_state=seed)
        rng = np.random.default_rng(seed)
        return pd.DataFrame(dict(self.table.domain.decode(self._rows(seed, n_samples), rng)))

    def codes(self, seed: int, n_samples: int | None = None) -> NDArray[np.int32]:
        """Codes of the synthetic rows, (n, d)."""
        if self.rows is not None:
            return self._rows(seed, n_samples)
        return self.table.domain.encode(self.frame(seed, n_samples))

    def _rows(self, seed: int, n_samples: int | None) -> NDArray[np.int32]:
        assert self.rows is not None
        return self.rows(seed)[:n_samples]

    def answer(self, queries: Queries) -> NDArray[np.float64]:
        """Expected counts under weights of the codes of some columns."""
        if self.synopsis is not None:
            return self.synopsis.model.answer(queries)
        exact = self._counted()
        codes, counts = exact.codes, exact.counts
        return np.array(
            [
                np.prod([w[codes[:, axis]] for axis, w in query.items()], axis=0) @ counts
                for query in queries
            ]
        )

    def view(self, axes: Sequence[int]) -> NDArray[np.float64]:
        """Expected counts of all cells of a marginal."""
        if self.synopsis is not None:
            return self.synopsis.model.view(list(axes))
        return self._counted().dense(tuple(axes)).astype(np.float64)

    def _counted(self) -> CountTable:
        return CountTable.from_codes(self._rows(0, None), self.table.domain.shape)


def release(
    name: str, table: Table, epsilon: float, seed: int, *, target: str | None = None
) -> Release:
    """Release a table.

    Parameters
    ----------
    name : str
        One of `BASELINES`, or a synthesizer of the library: the name of its class, with parameters
        if they are not the defaults, such as "MarginalSynthesizer()".
    table : Table
    epsilon : float
    seed : int
        Makes the benchmark repeatable.
    target : str, default=None
        The label, for synthesizers in label mode; baselines ignore it.

    Raises
    ------
    Unsupported
        If a baseline is not meant for this table, or a synthesizer refuses it.
    SystemExit
        If there is neither a synthesizer nor a baseline of this name.
    """
    with warnings.catch_warnings():
        # Seeds, columns whose codes are grouped, and totals near zero are expected here.
        warnings.simplefilter("ignore", UserWarning)
        if name in BASELINES:
            return BASELINES[name](table, epsilon, seed)
        given = {} if target is None else {"target": target}
        return _synthesized(name, table, epsilon, seed, **given)


def _synthesized(name: str, table: Table, epsilon: float, seed: int, **given: Any) -> Release:
    title, parameters = parsed(name)
    made = getattr(skdp, title, None)
    if not title.endswith("Synthesizer") or made is None:
        here = sorted(each for each in skdp.__all__ if each.endswith("Synthesizer"))
        raise SystemExit(
            f"skdp has no synthesizer {title!r}. It has {', '.join(here)}; the baselines are "
            f"{', '.join(BASELINES)}."
        )
    given |= parameters
    try:
        estimator = made(epsilon, domain=table.domain, random_state=seed, **given)
        estimator.fit(table.rows)
    except (ValueError, MemoryError) as refused:
        raise Unsupported(str(refused)) from refused
    return Release(table, estimator.synopsis_, estimator)


def parsed(name: str) -> tuple[str, dict[str, Any]]:
    """The class and the keywords of "Class" or "Class(keyword=value, ...)"."""
    try:
        call = ast.parse(name, mode="eval").body
        if not isinstance(call, ast.Call):
            return name, {}
        keywords = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
        return ast.unparse(call.func), keywords
    except (SyntaxError, ValueError):
        raise SystemExit(
            f"The method {name!r} is not understood. Write the name of a class, with keywords in "
            "parentheses if it needs any."
        ) from None


def attempts(
    method: str,
    table: Table,
    epsilon: float,
    runs: int,
    *,
    target: str | None = None,
    quiet: bool = False,
) -> Iterator[Release]:
    """Releases with the seeds 0, 1, ...; none, with a line that says so, where it is unsupported.

    Parameters
    ----------
    method, table, epsilon, target
        As for `release`.
    runs : int
    quiet : bool, default=False
        Whether to leave out the line.
    """
    for seed in range(runs):
        try:
            yield release(method, table, epsilon, seed, target=target)
        except Unsupported as refused:
            if not quiet:
                print(f"{table.name}, {method}, epsilon {epsilon:g}: left out. {refused}")
            return


def _independent(table: Table, epsilon: float, seed: int) -> Release:
    """Single columns with all of epsilon, as if they were independent."""
    exact = CountTable.from_codes(table.codes, table.domain.shape)
    orders = [attribute.order() for attribute in table.domain.attributes]
    views = independence(exact, epsilon, seed, orders)
    total = float(views[0].sum())
    if total <= 0:
        shares = [np.full(len(view), 1 / len(view)) for view in views]
    else:
        shares = [view / view.sum() for view in views]
    nodes = [Conditional(axis, (), (), each[None]) for axis, each in enumerate(shares)]
    density = NetworkDensity(table.domain.shape, nodes)
    return Release(table, Synopsis(table.domain, NetworkModel(density, total)))


def _uniform(table: Table, epsilon: float, seed: int) -> Release:
    """One box with a noisy total."""
    return _synthesized("GridSynthesizer", table, epsilon, seed, rule=1)


def _cells(table: Table, epsilon: float, seed: int) -> Release:
    """Noise on every cell of the domain."""
    return _synthesized("GridSynthesizer", table, epsilon, seed, rule="identity")


def _privtree(table: Table, epsilon: float, seed: int) -> Release:
    if len(table.domain.shape) != _PRIVTREE_COLUMNS:
        raise Unsupported("PrivTree is compared on tables of two columns only.")
    return _synthesized("PrivTreeSynthesizer", table, epsilon, seed)


def _bootstrap(table: Table, epsilon: float, seed: int) -> Release:
    """The records drawn with replacement: no privacy, but the noise of a sample."""
    codes = table.codes

    def drawn(number: int) -> NDArray[np.int32]:
        rng = np.random.default_rng([seed, number])
        return codes[rng.integers(0, len(codes), len(codes))]

    return Release(table, rows=drawn)


def _true(table: Table, epsilon: float, seed: int) -> Release:
    """The records themselves, as far as the codes of the domain tell them apart."""
    codes = table.codes
    return Release(table, rows=lambda number: codes)


BASELINES: dict[str, Callable[[Table, float, int], Release]] = {
    "independent": _independent,
    "uniform": _uniform,
    "cells": _cells,
    "privtree": _privtree,
    "bootstrap": _bootstrap,
    "true": _true,
}
