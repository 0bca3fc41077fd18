"""Releases of the fidelity benchmark: synthesizers of the library by name, and baselines.

All of them are made by `release` and answer the same questions: `Release.answer` ranges,
`Release.view` marginals, `Release.codes` and `Release.frame` synthetic rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import skdp
from benchmarks._fidelity_tables import Table
from benchmarks.views import independence
from skdp import Synopsis
from skdp.exceptions import InsecureSeedWarning
from skdp.release import TreeDensity, TreeModel
from skdp.rows import CountTable

__all__ = ["BASELINES", "Release", "Unsupported", "release"]

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
        A synthesizer of the library by the name of its class, or one of `BASELINES`.
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
        warnings.simplefilter("ignore", InsecureSeedWarning)
        if name in BASELINES:
            return BASELINES[name](table, epsilon, seed)
        given = {} if target is None else {"target": target}
        return _synthesized(name, table, epsilon, seed, **given)


def _synthesized(name: str, table: Table, epsilon: float, seed: int, **given: Any) -> Release:
    made = getattr(skdp, name, None)
    if not name.endswith("Synthesizer") or made is None:
        here = sorted(each for each in skdp.__all__ if each.endswith("Synthesizer"))
        raise SystemExit(
            f"skdp has no synthesizer {name!r}. It has {', '.join(here)}; the baselines are "
            f"{', '.join(BASELINES)}."
        )
    try:
        estimator = made(epsilon, domain=table.domain, random_state=seed, **given)
        estimator.fit(table.rows)
    except (ValueError, MemoryError) as refused:
        raise Unsupported(str(refused)) from refused
    return Release(table, estimator.synopsis_, estimator)


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
    return Release(table, Synopsis(table.domain, TreeModel(TreeDensity(shares), total)))


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
