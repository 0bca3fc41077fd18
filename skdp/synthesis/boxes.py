"""Synthesizers that count boxes: HDPView, PrivTree, kd-trees, and grids of equal width."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import Any

from .._validation import as_between, check_choice, is_word, split_epsilon
from ..algorithms.dpcube import (
    MOST_CELLS,
    hierarchical_kdtree,
    hierarchical_parts,
    two_step_kdtree,
    two_step_parts,
)
from ..algorithms.grid import GRID_RULES, as_theta, grid_sides, grid_size, measure_grid
from ..algorithms.hdpview import hdpview, hdpview_parts, published
from ..algorithms.privtree import privtree, privtree_parameters, privtree_parts
from ..exceptions import DomainError
from ..expected import require_columns
from ..mechanisms import discrete_laplace, discrete_laplace_variance
from ..release import Boxes, BoxModel, Intervals, Synopsis
from ..workloads import Workload, measure_strategy, planned_strategy
from .base import Synthesizer


def check_n_cells(sides, what, remedy):
    """Raise DomainError if there are more boxes than can be counted; from public facts alone."""
    cells = math.prod(sides)
    if cells > MOST_CELLS:
        raise DomainError(
            f"{what}, and there are {' x '.join(map(str, sides))} = {cells:.4g} of them, more than "
            f"{MOST_CELLS:,}. Nothing was read or spent. {remedy}"
        )


@dataclass(eq=False, repr=False, kw_only=True)
class HDPViewSynthesizer(Synthesizer):
    """Private materialised view of a wide table by recursive bisection (HDPView).

    Starting from the whole domain, a block of cells is bisected while its noisy aggregation error
    (the sum over its cells of the distance to the mean count) is large. A noisy maximum picks the
    cut among all cuts of all columns. Each final block gets a noisy count; range queries are
    answered as if counts were spread evenly inside blocks.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute or pair is for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``.
    calibration : {"tight", "paper"}, default="tight"
        "tight" uses the exact worst case of the converge tests and its own floor, and cuts where
        the two sides differ most. "paper" uses the formulas of the paper, with the four parameters
        below, cuts where the remaining aggregation error is least, and spends nothing on counts of
        skipped records. Both are epsilon-DP. With epsilon above about 2.7 the paper's constants
        split every block; a large domain then raises an error before anything is spent.
    ratio : float, default=0.9
        For "paper": share of epsilon for finding the blocks; the rest is for their counts.
    gamma : float, default=0.9
        For "paper": share of that for the tests whether to stop; the rest is for choosing cuts.
    alpha : float, default=1.6
        For "paper": the bias for each level is log(alpha) times the noise scale of a test, and the
        noise scale is in proportion to (3 alpha - 2) / (alpha - 1). From 1.01 to 1000.
    beta : float, default=1.2
        For "paper": cuts are chosen privately on the first beta log2(number of cells) levels, at
        least one, and drawn at random below. From 0.01 to 100.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped.
    on_loss : {"warn", "stop"}, default="warn"
        What to do if the released counts of skipped records say that more than a tenth of the
        records is lost: "stop" raises :class:`skdp.RecordsLostError` before the other 99% of
        epsilon are charged, "warn" goes on.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: the release is then marked "seeded: no guarantee".

    Attributes
    ----------
    synopsis_ : Synopsis
        The release: blocks and noisy counts. Everything computed from it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "skipped", "converge" (when to stop), "cut" (where to cut), "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain,
    parameters, number of private cuts on a path. *Released*: blocks and noisy counts, nothing
    else. *Cost*: the tests along one path lose at most the part "converge" whatever their number
    (a bias makes the tested error fall with depth); the private cuts of a path and the count of its
    leaf lose at most "cut" and "counts" together: with ``calibration="tight"`` the count gets what
    a path of few cuts left. A record lies on one path, so the parts add up to epsilon. The paper
    adds its noise to floats, scores cuts with half of the sensitivity budget unused and bounds
    errors by a theorem whose proof has wrong steps; see the pages on theory.

    References
    ----------
    F. Kato et al., "HDPView: Differentially Private Materialized View for Exploring High
    Dimensional Relational Data", PVLDB 15(9), 2022.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import Categorical, Domain, HDPViewSynthesizer, Numeric
    >>> domain = Domain({"age": Numeric(18, 90, integer=True), "sex": Categorical(["F", "M"])})
    >>> people = pd.DataFrame({"age": [30, 41, 52, 35] * 500, "sex": ["F", "M"] * 1000})
    >>> view = HDPViewSynthesizer(epsilon=1.0, domain=domain).fit(people)
    >>> answer = view.count({"age": (30, 45), "sex": "F"}, return_interval=True)
    >>> answer.lower < answer.value < answer.upper
    True
    >>> list(view.sample(5).columns)
    ['age', 'sex']
    """

    calibration: Any = "tight"
    ratio: Any = 0.9
    gamma: Any = 0.9
    alpha: Any = 1.6
    beta: Any = 1.2

    def _parts(self, epsilon, domain):
        return hdpview_parts(epsilon, domain.shape, calibration=self._rule())

    def _rule(self):
        """The calibration as the kernel takes it; parameters are checked even where unused."""
        paper = published(self.alpha, self.beta, self.gamma, self.ratio)
        return paper if is_word(self.calibration, "paper") else self.calibration

    def _release(self, table, domain, loss, source):
        model = hdpview(table, loss.parts, calibration=self._rule(), random_state=source)
        mechanism = f"HDPView, calibration={self.calibration!r}"
        return Synopsis(domain, model, privacy_loss=loss, mechanism=mechanism)


# --- privTree: halve boxes while their number of records looks positive under noise


@dataclass(eq=False, repr=False, kw_only=True)
class PrivTreeSynthesizer(Synthesizer):
    """Private boxes that are halved where there are many records (PrivTree).

    Starting from the whole domain, a box is divided while its noisy number of records, minus a bias
    that grows with the depth, is positive. A box is halved in the middle along some columns, which
    take turns. Each final box gets a noisy count. It works best on two or three dense columns.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``: half for the tree, half for the counts.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute or pair is for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``.
    split_attributes : int, default=None
        Columns halved at a time, at most 10: a box is divided into ``2**split_attributes`` parts,
        which are very many empty boxes in a wide table. None: all columns, as in the paper, but at
        most 6 with ``calibration="tight"``.
    calibration : {"tight", "paper"}, default="tight"
        How the noise of the tests is scaled: "tight" by their exact worst case on a path, "paper"
        by the published formula, with nothing spent on counts of skipped records. Both are
        epsilon-DP.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped.
    on_loss : {"warn", "stop"}, default="warn"
        What to do if the released counts of skipped records say that more than a tenth of the
        records is lost: "stop" raises :class:`skdp.RecordsLostError` before the other 99% of
        epsilon are charged, "warn" goes on.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: the release is then marked "seeded: no guarantee".

    Attributes
    ----------
    synopsis_ : Synopsis
        The release: boxes and noisy counts. Everything computed from it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "skipped", "tree" (which boxes are divided), "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain,
    parameters, where a box would be cut. *Released*: boxes and noisy counts. *Cost*: a record
    lies in one box of every level; the tests of these boxes lose at most the part "tree",
    whatever their number, because no box has more records than the one it came from and the bias
    makes the tested number fall with depth; the count of the one final box loses "counts".
    Intervals cover the noise and any spread of the records inside boxes that a query cuts.

    References
    ----------
    J. Zhang, X. Xiao, X. Xie, "PrivTree: A Differentially Private Algorithm for Hierarchical
    Decompositions", SIGMOD 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivTreeSynthesizer
    >>> rng = np.random.default_rng(0)
    >>> places = rng.normal([0.2, 0.7], 0.05, size=(5000, 2))
    >>> view = PrivTreeSynthesizer(epsilon=1.0, domain=Numeric(0, 1, bins=256)).fit(places)
    >>> 4000 < view.count("x0 < 0.5 and x1 > 0.5") < 6000
    True
    """

    split_attributes: Any = None
    calibration: Any = "tight"

    def _how(self):
        return {"n_split": self.split_attributes, "calibration": self.calibration}

    def _parts(self, epsilon, domain):
        return privtree_parts(epsilon, domain.shape, **self._how())

    def _release(self, table, domain, loss, source):
        model = privtree(table, loss.parts, **self._how(), random_state=source)
        n_split = privtree_parameters(loss.parts, domain.shape, **self._how()).n_split
        mechanism = f"PrivTree, {n_split} columns at a time, calibration={self.calibration!r}"
        return Synopsis(domain, model, privacy_loss=loss, mechanism=mechanism)


# --- DPCube: a kd-tree on noisy cells, or on the records a level at a time; or every cell

# Strategies that spend epsilon level by level.
_LEVEL_BY_LEVEL = ("hierarchical", "range-tree")


@dataclass(eq=False, repr=False, kw_only=True)
class KDTreeSynthesizer(Synthesizer):
    """Private boxes of a kd-tree (DPCube), or the cells of the domain one by one.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute or pair is for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``.
    strategy : {"two-step", "cell", "hierarchical", "range-tree"}, default="two-step"
        "two-step" counts every cell with noise, grows a kd-tree on the noisy cells, and counts
        the boxes of the tree again. "cell" counts every cell: the baseline. Both need a domain of
        at most 4,194,304 cells. "hierarchical" grows the tree on the records, one level at a time,
        each with its part of epsilon; the domain may have any size. "range-tree" does the same
        with all cuts in the middle, so that only the two halves of a box are counted.
    xi0, xi1 : float, default=None
        For "two-step": a box is divided while the sum of its noisy cells exceeds ``xi0``, or their
        unevenness H (the sum of their distances to the mean) exceeds ``xi1``. None: 10 and 5
        times the mean noise of a box.
    calibration : {"tight", "paper"}, default="tight"
        "tight" subtracts from H what the noise of the cells adds to it, and estimates the count of
        a box from everything that was measured. "paper" does neither, as published: every box of
        many cells is uneven then, and counts are the last ones alone. It spends nothing on counts
        of skipped records.
    unevenness : {"deviation", "entropy"}, default="deviation"
        For "two-step": "entropy" makes H the sum of count log(count / mean count) over the cells,
        the number of records times what the entropy of the box lacks to that of an even one.
    cell_share : float, default=0.5
        For "two-step": share of epsilon for the cells, from 0.001 to 0.999.
    height : int, default=None
        For "hierarchical" and "range-tree": number of levels, at most 16. None: 12, or fewer in a
        small domain.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped.
    on_loss : {"warn", "stop"}, default="warn"
        What to do if the released counts of skipped records say that more than a tenth of the
        records is lost: "stop" raises :class:`skdp.RecordsLostError` before the other 99% of
        epsilon are charged, "warn" goes on.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: the release is then marked "seeded: no guarantee".

    Attributes
    ----------
    synopsis_ : Synopsis
        The release: boxes and counts. Everything computed from it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "skipped"; and "cells" and "boxes", "cells" alone, or
        "level 1" and so on and "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Raises
    ------
    DomainError
        By ``fit``, if every cell is to be counted and the domain has too many; nothing is spent.

    See Also
    --------
    skdp.inspection.usefulness : Error bound for counts over noisy cells.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain
    and parameters. *Released*: boxes, the last noisy count of each, and an estimate from all its
    noisy counts. *Cost*: a record lies in one cell and in one box, or in one box of every level
    and at one value of the attribute counted there; each of these counts has the noise of its
    part of epsilon, and the parts add up. The tree of "two-step" is grown on noisy cells and costs
    nothing. Intervals cover the noise and any spread of the records inside boxes that a query cuts.
    They use the last counts alone, because the boxes depend on the noise of the others.

    References
    ----------
    Y. Xiao, L. Xiong, C. Yuan, "Differentially Private Data Release through Multidimensional
    Partitioning", SDM 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import KDTreeSynthesizer, Numeric
    >>> rng = np.random.default_rng(0)
    >>> places = rng.normal([0.2, 0.7], 0.05, size=(5000, 2))
    >>> view = KDTreeSynthesizer(epsilon=1.0, domain=Numeric(0, 1, bins=64)).fit(places)
    >>> 4000 < view.count("x0 < 0.5 and x1 > 0.5") < 6000
    True
    """

    strategy: Any = "two-step"
    xi0: Any = None
    xi1: Any = None
    calibration: Any = "tight"
    unevenness: Any = "deviation"
    cell_share: Any = 0.5
    height: Any = None

    def _parts(self, epsilon, domain):
        check_choice(self.strategy, "strategy", ("two-step", "cell", *_LEVEL_BY_LEVEL))
        check_choice(self.unevenness, "unevenness", ("deviation", "entropy"))
        if self.strategy in _LEVEL_BY_LEVEL:
            return hierarchical_parts(epsilon, domain.shape, self.height)
        check_n_cells(
            domain.shape,
            f"strategy={self.strategy!r} counts every cell",
            "Take strategy='hierarchical', declare fewer columns or bins, or use "
            "MarginalSynthesizer, which measures single columns and sets of a few columns.",
        )
        if self.strategy == "cell":
            return split_epsilon(epsilon, {"cells": 1})
        for name in ("xi0", "xi1"):
            if getattr(self, name) is not None:
                as_between(getattr(self, name), name, 0, 1e300)
        return two_step_parts(epsilon, self.cell_share)

    def _release(self, table, domain, loss, source):
        mechanism = f"kd-tree, strategy={self.strategy!r}"
        if self.strategy == "cell":
            model = measure_grid(table, domain.shape, loss.parts["cells"], random_state=source)
            return Synopsis(domain, model, privacy_loss=loss, mechanism=mechanism)
        if self.strategy in _LEVEL_BY_LEVEL:
            middle = self.strategy == "range-tree"
            view = hierarchical_kdtree(
                table, loss.parts, middle=middle, calibration=self.calibration, random_state=source
            )
        else:
            view = two_step_kdtree(
                table,
                loss.parts,
                xi0=self.xi0,
                xi1=self.xi1,
                unevenness=self.unevenness,
                calibration=self.calibration,
                random_state=source,
            )
        boxes = Boxes(view.lower, view.upper)
        intervals = Intervals(view.epsilon, "any", view.measured)
        model = BoxModel(boxes, view.counts, domain.shape, intervals)
        return Synopsis(domain, model, privacy_loss=loss, mechanism=mechanism)


# --- UG and related rules: every column cut into equal parts, and a noisy count of each box

# Share of epsilon for the number of records, where the size of a grid depends on it.
_TOTAL_SHARE = 0.02


@dataclass(eq=False, repr=False, kw_only=True)
class GridSynthesizer(Synthesizer):
    """Private counts over a grid: every column is cut into parts of equal width.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute or pair is for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``.
    rule : {"extended", "uniform", "m-estimator", "identity"} or int, default="extended"
        Number of boxes, from N records, d columns and ``theta``. "uniform": N epsilon / theta.
        "extended": the same to the power 2 d / (2 + d), which balances noise and unevenness.
        "m-estimator": (N / sqrt(log N)) ** (2 d / (2 + d)), for any epsilon. N is measured
        with 2% of epsilon. "identity" keeps every cell of the domain. An int is the number of
        parts of every column (fewer where it has fewer codes). At most 4,194,304 boxes are made.
    theta : float, default=10
        For "uniform" and "extended": N epsilon for one box, from 0.001 to 1,000,000. Smaller values
        make more boxes.
    calibration : {"tight", "paper"}, default="tight"
        "paper" spends nothing on counts of skipped records.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped.
    on_loss : {"warn", "stop"}, default="warn"
        What to do if the released counts of skipped records say that more than a tenth of the
        records is lost: "stop" raises :class:`skdp.RecordsLostError` before the other 99% of
        epsilon are charged, "warn" goes on.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: the release is then marked "seeded: no guarantee".

    Attributes
    ----------
    synopsis_ : Synopsis
        The release: boxes and noisy counts. Everything computed from it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "skipped", "counts", and "total" where the rule needs
        the number of records.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Raises
    ------
    DomainError
        By ``fit``, if "identity" or an int asks for too many boxes; nothing is spent.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain
    and parameters. *Released*: the boxes, which follow from the domain and the noisy number of
    records, and a noisy count of each. *Cost*: one record changes the number of records by one
    ("total") and one count by one ("counts"). The published rules take the exact number of
    records as known; it is private where neighbours add or remove a record. Intervals cover the
    noise and any spread of the records inside boxes that a query cuts.

    References
    ----------
    W. Qardaji, W. Yang, N. Li, "Differentially private grids for geospatial data", ICDE 2013;
    J. Lei, "Differentially private M-estimators", NIPS 2011; D. Su, "Differentially private data
    publishing for data analysis", Purdue 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import GridSynthesizer, Numeric
    >>> rng = np.random.default_rng(0)
    >>> places = rng.normal([0.2, 0.7], 0.05, size=(5000, 2))
    >>> view = GridSynthesizer(epsilon=1.0, domain=Numeric(0, 1, bins=64), rule=16).fit(places)
    >>> len(view.synopsis_.to_frame())
    256
    """

    rule: Any = "extended"
    theta: Any = 10
    calibration: Any = "tight"

    def _parts(self, epsilon, domain):
        as_theta(self.theta)
        sides = self._public_sides(domain.shape)
        if sides is None:
            return split_epsilon(epsilon, {"total": _TOTAL_SHARE, "counts": 1 - _TOTAL_SHARE})
        check_n_cells(
            sides,
            f"rule={self.rule!r} makes a box of every cell",
            "Take a smaller rule, such as rule='extended', declare fewer columns or bins, or use "
            "MarginalSynthesizer, which measures single columns and sets of a few columns.",
        )
        return split_epsilon(epsilon, {"counts": 1})

    def _release(self, table, domain, loss, source):
        sides = self._public_sides(domain.shape)
        if sides is None:
            # Privacy. Released: the number of records. One record changes it by 1: the part
            # "total". The number of boxes is computed from it and public facts.
            total = discrete_laplace(table.n, loss.parts["total"], random_state=source)
            n_axes, theta = len(domain.shape), as_theta(self.theta)
            size = grid_size(self.rule, float(total), loss.parts["counts"], n_axes, theta)
            sides = _fitting_sides(domain.shape, size)
        model = measure_grid(table, sides, loss.parts["counts"], random_state=source)
        return Synopsis(domain, model, privacy_loss=loss, mechanism=f"grid, rule={self.rule!r}")

    def _public_sides(self, shape):
        """Number of parts of each column; None where the rule needs the number of records."""
        rule = self.rule
        if isinstance(rule, numbers.Integral) and not isinstance(rule, bool):
            if rule < 1:
                raise ValueError(f"rule={rule!r} asks for fewer than one part of a column.")
            return tuple(min(size, int(rule)) for size in shape)
        if not any(is_word(rule, each) for each in GRID_RULES):
            listed = ", ".join(map(repr, GRID_RULES))
            raise ValueError(f"rule must be {listed} or an integer, got {rule!r}.")
        return shape if rule == "identity" else None


def _fitting_sides(shape, size):
    """Parts of each column for a grid of about ``size`` boxes, and at most `MOST_CELLS`."""
    sides = grid_sides(shape, min(size, MOST_CELLS))
    longest = max(sides)
    while math.prod(sides) > MOST_CELLS:
        longest -= 1
        sides = tuple(min(side, longest) for side in sides)
    return sides


# --- HDMM: weighted sums of cells, chosen for a workload that is known beforehand

# Larger columns take minutes to plan for.
_MOST_CODES = 1024


@dataclass(eq=False, repr=False, kw_only=True)
class HDMMSynthesizer(Synthesizer):
    """Counts of all cells that answer one workload well, known beforehand (HDMM).

    Weighted sums of cells are measured whose weights have the least expected error on the workload,
    and the counts are estimated from them by least squares. It is for a few columns, as all cells
    have a count.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required, with at most 1,024 codes each. One
        attribute or pair is for all columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``.
    workload : skdp.workloads.Workload, default=None
        The queries that will be asked. None: random ranges on all pairs of columns.
    calibration : {"tight", "paper"}, default="tight"
        "paper" spends nothing on counts of skipped records.
    max_rows_per_id, privacy_id, on_loss, ledger, random_state
        As for :class:`GridSynthesizer`.

    Attributes
    ----------
    synopsis_ : Synopsis
        The release: estimated counts, and how they were measured. Everything computed from it is
        free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "skipped" and "sums".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Raises
    ------
    DomainError
        By ``fit``, if there are more than 4,194,304 cells or 1,024 codes of a column; nothing is
        spent.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain,
    workload and parameters, and the weights that follow from them. *Released*: noisy weighted sums
    of cells. *Cost*: weights are whole numbers, and those of a cell add up to the same number K in
    all sums together, so a record changes them by K in all (part "sums"). Of the paper's strategies
    this is one product of p-identity strategies.

    References
    ----------
    R. McKenna, G. Miklau, M. Hay, A. Machanavajjhala, "Optimizing error of high-dimensional
    statistical queries under differential privacy", PVLDB 11(10), 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import HDMMSynthesizer, Numeric
    >>> from skdp.workloads import Workload
    >>> places = np.random.default_rng(0).normal([0.2, 0.7], 0.05, size=(5000, 2))
    >>> hdmm = HDMMSynthesizer(domain=[Numeric(0, 1, bins=32)] * 2, workload=Workload("ranges", 2))
    >>> float(hdmm.expected_error(n=5000)[1.0].round(1)["workload"])
    14.6
    >>> 4000 < hdmm.fit(places).count("x0 < 0.5 and x1 > 0.5") < 6000
    True
    """

    workload: Any = None
    calibration: Any = "tight"

    def _strategy(self, domain):
        workload = Workload("random ranges") if self.workload is None else self.workload
        if not isinstance(workload, Workload):
            raise TypeError(f"workload must be a skdp.workloads.Workload, got {workload!r}.")
        remedy = "Declare fewer columns or bins, or take HDPViewSynthesizer or MarginalSynthesizer."
        check_n_cells(domain.shape, "HDMM estimates every cell", remedy)
        if max(domain.shape) > _MOST_CODES:
            raise DomainError(
                f"A column has {max(domain.shape):,} codes, and HDMM plans for at most "
                f"{_MOST_CODES:,}. Nothing was read or spent. {remedy}"
            )
        return planned_strategy(workload, domain.shape)

    def _parts(self, epsilon, domain):
        # What cannot be planned is refused here, before anything is spent.
        self._strategy(domain)
        return split_epsilon(epsilon, {"sums": 1})

    def _release(self, table, domain, loss, source):
        strategy = self._strategy(domain)
        model = measure_strategy(table, strategy, loss.parts["sums"], random_state=source)
        mechanism = "HDMM, one product of p-identity strategies"
        return Synopsis(domain, model, privacy_loss=loss, mechanism=mechanism)

    def _formula_errors(self, n):
        """Errors of a query of the workload, and of the total."""
        domain = require_columns(self.domain).resolved(self._most_bins)
        strategy = self._strategy(domain)
        epsilon = self._with_skipped(lambda rest: self._parts(rest, domain))["sums"]
        noise = discrete_laplace_variance(epsilon, strategy.sensitivity) / strategy.sensitivity**2
        total = math.prod(float(each.sum()) for each in strategy.inverses)
        return {"workload": math.sqrt(noise * strategy.error), "total": math.sqrt(noise * total)}
