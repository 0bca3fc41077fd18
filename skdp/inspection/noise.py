"""How the noise of a release moves the coefficients of a linear model."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .._types import FloatArray
from ..mechanisms import discrete_laplace_variance
from ..release import BoxModel, Synopsis, TreeModel
from .moments import Column, Moments

__all__ = ["coefficient_covariance"]

K_MEASURED = 1.0
K_MISSING = 1.0
BOXES = 60


def coefficient_covariance(
    synopsis, columns, beta, inverse, moments, detail=False
):
    model = synopsis.model
    blocks = moments.blocks
    n = len(beta)
    # residual = target - sum phi beta
    means = moments.mean
    coef = np.r_[-beta, 1.0]
    centred = [c.values - means[b] for c, b in zip(columns, blocks)]
    parts = [v @ coef[b] for v, b in zip(centred, blocks)]
    shares = [np.maximum(model.view([c.axis]), 0) / moments.total for c in columns]
    budget = model.budget
    pairs = {tuple(sorted(p)) for p in model.pairs}
    nviews = max(len(pairs), 1)
    if "classes" in budget:
        t = columns[-1].axis
    known = {}
    eps = (budget.get("views", 0) + budget.get("forest", 0) + budget.get("extra", 0))
    labelled = [p for p in pairs if "classes" in budget and columns[-1].axis in p]
    n_other = max(nviews - len(labelled), 1)
    K = np.zeros((len(blocks[-1:]) and blocks[-1].stop, ) * 2)
    un = 0 * K
    for a, b in itertools.combinations(range(len(columns)), 2):
        A, B = columns[a], columns[b]
        pair = tuple(sorted((A.axis, B.axis)))
        cells = len(centred[a]) * len(centred[b])
        is_known = pair in pairs
        e = eps / n_other
        if "classes" in budget and pair in labelled:
            e = budget["classes"] / len(labelled)
        if not e:
            e = budget["single"] / len(columns) / 2
        v = discrete_laplace_variance(Fraction(e).limit_denominator(10**9))
        if is_known:
            w = np.full((len(centred[a]), len(centred[b])), v * min(1, BOXES / cells))
        else:
            w = np.outer(shares[a], shares[b]) * v * min(cells, BOXES)
        out = K if is_known else un
        fa, fb = parts[a], parts[b]
        sa, sb = blocks[a], blocks[b]
        out[sa, sa] += centred[a].T @ ((w @ fb**2)[:, None] * centred[a])
        out[sb, sb] += centred[b].T @ ((w.T @ fa**2)[:, None] * centred[b])
        c = centred[a].T @ (w * np.outer(fa, fb)) @ centred[b]
        out[sa, sb] += c
        out[sb, sa] += c.T
    if detail:
        f = lambda M: inverse @ M[:n, :n] @ inverse / moments.total**2
        return f(K), f(un)
    return inverse @ (K_MEASURED * K + K_MISSING * un)[:n, :n] @ inverse / moments.total**2
