"""How the noise and the model of a release move the coefficients of a linear model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._types import FloatArray
from ..release import BoxModel, Synopsis, ViewsModel
from .moments import Column, Moments

__all__ = ["coefficient_covariance"]

# Correlation between any function of one column and any of another that is not measured, in noise
# scales of a measured cell: pairs are measured where they depend on each other by more than that.
_UNMEASURED = 15.0
_MOST = 0.12
# Fewer records than this many standard deviations of the noise in their number say nothing.
_SURELY = 2.0
# Dependence in a model is smaller by about such a share than in the records, even where the table
# was measured: in rows that agree with all tables, and by boxes.
_MISFIT, _MISFIT_BOXES = 0.06, 0.1


class _Noise(NamedTuple):
    """What is known of the tables of pairs.

    Attributes
    ----------
    measured : dict of tuple of int to float
        Standard deviation of the noise in a cell, by the positions of both columns.
    scale : float
        That of a cell of another pair, if it were measured.
    misfit : float
        Share of the dependence that is lost.
    """

    measured: Mapping[tuple[int, ...], float]
    scale: float
    misfit: float = _MISFIT


def coefficient_covariance(
    synopsis: Synopsis,
    columns: Sequence[Column],
    beta: FloatArray,
    inverse: FloatArray,
    moments: Moments,
) -> FloatArray:
    """Covariance matrix of the errors of coefficients that noise and model of a release make.

    Coefficients solve the normal equations ``sum over records of feature * residual = 0``. The sum
    errs by the errors of the tables of each pair of columns, features and target, weighted with
    what the two columns contribute to feature and residual. The inverse of the covariances of the
    features turns the sum into coefficients. This is exact to first order in the errors of tables.

    Parameters
    ----------
    synopsis : Synopsis
    columns : sequence of Column
        Features, and the target last.
    beta, inverse : ndarray
        Coefficients, and the inverse of the covariances of the features.
    moments : Moments
        Of ``columns``.

    Returns
    -------
    ndarray of shape (n_features, n_features)
        NaN where the release does not say how much noise it has, infinite where the noise in the
        number of records is as large as this number, or the target has collapsed to one value.
    """
    noise = _noise_scales(synopsis, [each.axis for each in columns])
    n = len(beta)
    if noise is None:
        return np.full((n, n), np.nan)
    if _says_nothing(synopsis) or not moments.covariance[-1, -1] > 0:
        return np.full((n, n), np.inf)
    shares = np.append(-beta, 1.0)
    centred = [
        each.values - moments.mean[block]
        for each, block in zip(columns, moments.blocks, strict=True)
    ]
    residuals = [
        numbers @ shares[block] for numbers, block in zip(centred, moments.blocks, strict=True)
    ]
    masses = [_masses(synopsis, each.axis) for each in columns]
    sums = np.zeros((n + 1, n + 1))
    for a, b in itertools.combinations(range(len(columns)), 2):
        pair = columns[a].axis, columns[b].axis
        std = noise.measured.get(tuple(sorted(pair)))  # type: ignore[arg-type]
        if std is not None:
            errors = np.full((len(masses[a]), len(masses[b])), std**2)
            at_a, at_b = moments.blocks[a], moments.blocks[b]
            table = noise.misfit * moments.total * moments.covariance[at_a, at_b]
            lost = np.zeros(n + 1)
            lost[at_a], lost[at_b] = table @ shares[at_b], shares[at_a] @ table
            sums += np.outer(lost, lost)
        else:
            most = min(_UNMEASURED * noise.scale, _MOST * moments.total)
            errors = most**2 * np.outer(masses[a], masses[b])
        _add_pair(
            sums, errors, centred[a], centred[b], residuals[a], residuals[b],
            moments.blocks[a], moments.blocks[b],
        )  # fmt: skip
    covariance: FloatArray = inverse @ sums[:n, :n] @ inverse / moments.total**2
    unknown = np.diag(inverse) == 0.0
    # Categories without any record in the release: it says nothing of them.
    covariance[unknown, unknown] = np.inf
    return covariance


def _says_nothing(synopsis: Synopsis) -> bool:
    """Whether the number of records cannot be told from zero."""
    try:
        return synopsis.total <= _SURELY * synopsis.total_std
    except ValueError:  # the noise of the total was not recorded
        return synopsis.total <= 0


def _add_pair(
    sums: FloatArray,
    errors: FloatArray,
    first: FloatArray,
    second: FloatArray,
    residual_first: FloatArray,
    residual_second: FloatArray,
    at_first: slice,
    at_second: slice,
) -> None:
    """Add what independent errors of the cells of one table do to the normal equations."""
    sums[at_first, at_first] += first.T @ ((errors @ residual_second**2)[:, None] * first)
    sums[at_second, at_second] += second.T @ ((errors.T @ residual_first**2)[:, None] * second)
    both = first.T @ (errors * np.outer(residual_first, residual_second)) @ second
    sums[at_first, at_second] += both
    sums[at_second, at_first] += both.T


def _masses(synopsis: Synopsis, axis: int) -> FloatArray:
    counts = np.maximum(synopsis.model.view([axis]), 0.0)
    masses: FloatArray = counts / max(counts.sum(), 1e-300)
    return masses


def _noise_scales(synopsis: Synopsis, axes: Sequence[int]) -> _Noise | None:
    """What a release says of the noise in its tables; None if it does not."""
    model: Any = synopsis.model
    if isinstance(model, BoxModel):
        return _noise_of_boxes(model, axes)
    if not isinstance(model, ViewsModel):
        return None
    found: dict[tuple[int, ...], float] = {}
    for a, b in itertools.combinations(sorted(axes), 2):
        cells = model.shape[a] * model.shape[b]
        if model.cells is not None and model.rows is not None:
            found[a, b] = math.sqrt(model.cells[0] * len(model.rows) / cells)
        elif (a, b) in model.coefficients.looks:
            # Coefficients of an orthonormal basis: together they have the noise of all cells.
            look = model.coefficients.looks[a, b]
            told = look.precision > 0
            found[a, b] = math.sqrt(float(look.variances[told].sum()) / cells)
    own = [model.columns[axis].variance(np.ones(model.shape[axis])) for axis in model.columns]
    return _Noise(found, max(found.values(), default=math.sqrt(max(own, default=1.0))))


def _noise_of_boxes(model: BoxModel, axes: Sequence[int]) -> _Noise:
    """Tables of pairs are sums over boxes, all of them measured; each box is taken to be even."""
    whole = math.sqrt(float(model.noise_variances().sum()))
    found = {
        tuple(sorted((a, b))): whole / math.sqrt(model.shape[a] * model.shape[b])
        for a, b in itertools.combinations(axes, 2)
    }
    every_cell = len(model.boxes) == math.prod(model.shape)
    return _Noise(found, whole, 0.0 if every_cell else _MISFIT_BOXES)
