"""Linear models: coefficients of public features."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import as_integer, check_choice
from ..kernels.linear import (
    check_moments,
    fit_auto,
    fit_functional,
    fit_genetic,
    fit_local_search,
)
from .base import ModelOfLabels, plain
from .features import check_pairs, coded_features, design_of, feature_columns

__all__ = ["LinearEstimator"]

_SOLVERS = ("auto", "functional", "local-search", "genetic")


class LinearEstimator(ModelOfLabels):
    """Fitting and scoring; subclasses define the label, the loss and the predictions."""

    # What the searches minimise: one of the losses of `skdp.kernels.linear`.
    _loss: str
    _solvers: tuple[str, ...] = _SOLVERS

    def _plan(self, domain):
        check_choice(self.solver, "solver", self._solvers)
        max_groups = as_integer(self.max_groups, "max_groups", 2)
        columns = feature_columns(domain, self.one_hot, max_groups)
        if self.solver == "functional":
            check_pairs(columns)
        return columns

    def _groups(self, columns):
        return [(each.groups, len(each.column.values)) for each in columns]

    def _solver(self):
        """A function of records, design, link, epsilon, total and source."""
        if self.solver == "genetic":
            return partial(fit_genetic, loss=self._loss, crossover=self.crossover)
        if self.solver == "local-search":
            return partial(fit_local_search, loss=self._loss)
        solve = fit_functional if self.solver == "functional" else fit_auto
        return partial(solve, alpha=self._penalty())

    def _penalty(self):
        """Weight of the squared coefficients."""
        return 0.0

    def _check_noise(self, columns, link, epsilon):
        super()._check_noise(columns, link, epsilon)
        if self.solver == "functional":
            check_moments(design_of(columns), link, epsilon)

    def _learn(self, records, columns, link, epsilon, total, source):
        return self._solver()(records, design_of(columns), link, epsilon, total, source)

    def _publish(self, model, columns):
        factor, shift = self._units()
        scales = np.concatenate([each.scale for each in columns])
        shifts = np.concatenate([each.shift for each in columns])
        coef = model.coef / scales
        self.intercept_ = self._shown((model.intercept - coef @ shifts) * factor + shift)
        self.coef_ = self._shown(coef * factor)
        self.coef_std_ = self._shown(model.std / scales * factor)
        self.feature_labels_ = np.array(
            [label for each in columns for label in each.labels], dtype=object
        )
        self._columns = tuple(columns)

    def _shown(self, values):
        """Released arrays, outputs first, in the shape that users see."""
        return values

    def _scores(self, X):
        """Intercept plus coefficients times features, (n_rows,) or (n_rows, n_outputs)."""
        check_is_fitted(self)
        codes = self._codes(X, [each.name for each in self._columns])
        coef = np.atleast_2d(self.coef_)
        result = np.tile(np.atleast_1d(self.intercept_).astype(np.float64), (len(codes), 1))
        start = 0
        for each, scaled in zip(self._columns, coded_features(self._columns, codes), strict=True):
            features = each.shift + each.scale * scaled
            result += features @ coef[:, start : start + len(each.labels)].T
            start += len(each.labels)
        return plain(result)
