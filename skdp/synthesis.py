"""Synthesizers: release a private synopsis of a table, query it, draw synthetic rows from it."""

from __future__ import annotations

import math
import numbers
import warnings

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from ._base import PrivateEstimator, match_rows, warn_of_emptiness
from ._random import sampling_generator
from ._validation import as_sample_size, split_epsilon
from .domain import Categorical
from .exceptions import DomainError, PrivacyLeakWarning
from .kernels.dpcube import (
    MOST_CELLS,
    hierarchical_kdtree,
    hierarchical_parts,
    two_step_kdtree,
    two_step_parts,
)
from .kernels.grid import GRID_RULES, grid_boxes, grid_sides, grid_size, measure_grid
from .kernels.hdpview import hdpview, hdpview_parts
from .kernels.privtree import privtree, privtree_parts
from .mechanisms import discrete_laplace
from .pairviews import MOST_CLASSES, coarse_attributes, pair_views, pair_views_parts
from .quality import compare
from .release import Boxes, Synopsis
from .rows import build_frame, count_rows

__all__ = [
    "GridSynthesizer",
    "HDPViewSynthesizer",
    "KDTreeSynthesizer",
    "PairViewSynthesizer",
    "PrivTreeSynthesizer",
]

# Share of epsilon for the number of records, where the size of a grid depends on it.
_TOTAL_SHARE = 0.02


class _Synthesizer(PrivateEstimator):
    """A release with a queryable synopsis; subclasses say how it is measured."""

    def fit(self, X, y=None):
        """Charge epsilon, then release a synopsis of the rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            One row per person: NumPy array; pandas, Polars or PyArrow table; or a lazy frame of
            Polars, DuckDB, Dask or PySpark, which is counted in its engine. Columns are matched
            to the domain by name, those of an array by position.
        y : array-like of shape (n_rows,), default=None
            Values of the column ``target``; ignored where ``target`` is None. With a lazy frame
            the target is a column of ``X``.

        Returns
        -------
        self

        Raises
        ------
        DomainError, TypeError, ValueError
            If the schema or a parameter does not fit; nothing is spent. Values never raise: out
            of range is clipped, an unknown category is `other` where declared, and a record that
            the domain cannot represent is skipped.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        EngineError
            If the engine of a lazy frame fails while it counts; the charge stands.
        """
        rows, domain = match_rows(X, y, self.domain, self.target, lazy=True, unit=self._unit())
        parts = self._parts(self._record_epsilon(), domain)
        together = self._together(domain)
        if together is None:
            self._warn_of_size(rows, domain)
        loss, source = self._spend(parts)
        table = count_rows(
            rows, domain, self._contributions(loss, source, rows, domain), together=together
        )
        synopsis = self._release(table, domain, loss.of_record, source)
        # What the noise was drawn for is one record; what is published is the whole price.
        synopsis.privacy_loss = loss

        self._remember_columns(X, rows)
        self._library = rows.library
        self.domain_ = domain
        self.synopsis_ = synopsis
        self.privacy_loss_ = loss
        warn_of_emptiness(self, synopsis.total, synopsis.total_std)
        return self

    def count(self, query=None, *, return_interval=False, level=0.95):
        """Expected number of records that satisfy a query; see :meth:`skdp.Synopsis.count`."""
        check_is_fitted(self)
        return self.synopsis_.count(query, return_interval=return_interval, level=level)

    def sum(self, column, query=None):
        """Sum of a numeric column over a query; see :meth:`skdp.Synopsis.sum`."""
        check_is_fitted(self)
        return self.synopsis_.sum(column, query)

    def mean(self, column, query=None):
        """Mean of a numeric column over a query; see :meth:`skdp.Synopsis.mean`."""
        check_is_fitted(self)
        return self.synopsis_.mean(column, query)

    def aggregate(self, by, column=None, query=None):
        """Counts, sums and means of groups; see :meth:`skdp.Synopsis.aggregate`."""
        check_is_fitted(self)
        return self.synopsis_.aggregate(by, column, query)

    def sample(self, n_samples=None, random_state=None):
        """Draw synthetic rows from the synopsis.

        Parameters
        ----------
        n_samples : int, default=None
            None draws max(0, round(noisy total)) rows; where that makes more than 500 million
            values (rows times columns), it is refused: give a number of rows.
        random_state : int, numpy.random.Generator or None, default=None
            Seeding the draw is harmless: it is post-processing of the release.

        Returns
        -------
        frame : table of the library that ``fit`` was given
            All columns of the domain, in its order and with its types.
        """
        check_is_fitted(self)
        return build_frame(self._sample_columns(n_samples, random_state), like=self._library)

    def make_training_set(self, n_samples=None, random_state=None):
        """Draw synthetic rows for training.

        Parameters
        ----------
        n_samples : int, default=None
            None draws max(0, round(noisy total)) rows, but at most 500 million values (rows times
            columns).
        random_state
            As in :meth:`sample`.

        Returns
        -------
        X : table of the library that ``fit`` was given
            The columns of the domain but ``target``.
        y : ndarray of shape (n_samples,) or None
            The column ``target``, or None where no target is set.
        sample_weight : None
            All synthetic rows weigh the same.
        """
        check_is_fitted(self)
        number = as_sample_size(n_samples, self.synopsis_.total, len(self.domain_), most=True)
        columns = self._sample_columns(number, random_state)
        y = None
        if self.target is not None:
            y = _label_array(columns.pop(self.target))
        return build_frame(columns, like=self._library), y, None

    def prepare(self, X):
        """Map test rows to what the training set looks like: here they are the same."""
        return X

    def fit_resample(self, X, y=None):
        """Fit, and return synthetic rows in place of the true ones.

        This makes every synthesizer a sampler of an imbalanced-learn ``Pipeline``: the steps
        behind it see synthetic rows only.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
            Values of the column ``target``.

        Returns
        -------
        X_resampled : table of the library of ``X``
        y_resampled : ndarray, or pandas Series where ``y`` is one
            Only where ``y`` is given.

        Raises
        ------
        ValueError
            If ``y`` is given but no ``target``; nothing is spent.
        """
        if y is None:
            self.fit(X)
            total, columns = self.synopsis_.total, len(self.domain_)
            return self.sample(as_sample_size(None, total, columns, most=True))
        if self.target is None:
            raise ValueError(
                "fit_resample was given y, but target is None. Add the label to the domain and "
                "name it in target=, so that synthetic rows carry it."
            )
        X_resampled, y_resampled, _ = self.fit(X, y).make_training_set()
        if isinstance(y, pd.Series):
            y_resampled = pd.Series(y_resampled, name=y.name)
        return X_resampled, y_resampled

    def plot(self, columns=None, *, ax=None):
        """Draw the released density over one or two columns; see :meth:`skdp.Synopsis.plot`."""
        check_is_fitted(self)
        return self.synopsis_.plot(columns, ax=ax)

    def quality_report(self, X, y=None, *, target="own", random_state=None):
        """Compare synthetic rows with the records. NOT private: for the data owner only.

        Nothing of the answer is stored on the estimator or charged to its ledger. Publishing it
        publishes exact numbers about the records.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            The records, as for ``fit``.
        y : array-like of shape (n_rows,), default=None
            Values of the column ``target``, if ``X`` does not hold them.
        target : str or None, default="own"
            Column with at most 20 codes that boosted trees learn to predict: from synthetic rows,
            and for comparison from records. "own" is the estimator's ``target``; None trains
            nothing.
        random_state : int, numpy.random.Generator or None, default=None
            For the synthetic rows and the halves of the records.

        Returns
        -------
        QualityReport
            ``columns``, ``pairs`` and ``training``, a readable repr and ``plot()``.

        Raises
        ------
        DomainError, ValueError
            If the schema does not fit, or ``target`` is not a column or has too many codes.

        Warns
        -----
        PrivacyLeakWarning
            Always.
        """
        check_is_fitted(self)
        rows, domain = match_rows(X, y, self.domain_, self.target)
        predicted = self.target if target == "own" and "own" not in domain.names else target
        if predicted is not None:
            domain.index(predicted)
        warnings.warn(
            "quality_report compares with the exact records: its answer is not private and must "
            "stay with the data owner.",
            PrivacyLeakWarning,
            stacklevel=2,
        )
        rng = sampling_generator(random_state)
        records = domain.encode(rows)
        records = records[(records >= 0).all(axis=1)]
        synthetic = self.synopsis_.sample_codes(max(len(records), 1), rng)
        return compare(records, synthetic, domain, predicted, rng)

    def _stand_in(self, domain, library):
        """Look fitted, to public rows of the domain: to try out what is to be trained."""
        self._library = library
        self.domain_ = domain
        self.synopsis_ = _PublicRows(domain, self.target)
        return self

    def _sample_columns(self, n_samples, random_state):
        rng = sampling_generator(random_state)
        codes = self.synopsis_.sample_codes(n_samples, rng)
        return dict(self.domain_.decode(codes, rng).items())

    def _together(self, domain):
        """Attributes that all its questions contain, or None where it needs the whole table."""
        return None

    def _parts(self, epsilon, domain):
        """Divide epsilon, from public facts alone."""
        raise NotImplementedError

    def _release(self, table, domain, loss, source):
        """Measure the table within ``loss.parts``."""
        raise NotImplementedError


class _PublicRows:
    """Draws codes of a domain, in place of a synopsis; they come from no record."""

    total = 0.0

    def __init__(self, domain, target):
        self._shape = domain.shape
        self._label = None if target is None else domain.index(target)
        self._n_labels = 0 if target is None else domain[target].n_values

    def sample_codes(self, n_samples, rng):
        """Every code equally often, and labels that follow from the other columns."""
        positions = np.arange(n_samples)
        codes = np.stack([rng.permutation(positions % size) for size in self._shape], axis=1)
        if self._label is not None:
            # Of what tells nothing, some estimators learn nothing, and raise.
            score = np.delete(codes / self._shape, self._label, axis=1).sum(axis=1)
            rank = np.argsort(np.argsort(score, kind="stable"), kind="stable")
            codes[:, self._label] = rank * self._n_labels // max(n_samples, 1)
        return codes


def _label_array(column):
    """Labels as NumPy has them; Python objects where some are missing."""
    values = column.astype(object).to_numpy()
    return values if column.isna().any() else np.array(values.tolist())


class HDPViewSynthesizer(_Synthesizer):
    """Private materialised view of a wide table by recursive bisection (HDPView).

    Starting from the whole domain, a block of cells is bisected while its aggregation error (the
    sum over its cells of the distance to the mean count) looks large under noise, at a cut that a
    noisy maximum picks among all cuts of all columns. Each final block gets a noisy count; counts
    spread evenly inside blocks answer any range query.

    Parameters
    ----------
    epsilon : float, default=1.0
        All of one ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``.
    calibration : {"tight", "paper"}, default="tight"
        "tight" uses the exact worst case of the converge tests, a floor of its own, and cuts
        where the two sides are most uneven; "paper" uses the constants of the paper (alpha 1.6,
        beta 1.2, gamma .9, ratio .9) and cuts where the least aggregation error is left. Both
        are epsilon-DP. Above an epsilon of about 2.7 the paper's constants split every block; a
        large domain is then refused before anything is spent.
    max_contributions : int, default=None
        How many rows of each person count at most, drawn in secret; epsilon is then that of the
        person. Needs ``unit``. None: epsilon is that of one row.
    unit : str, default=None
        Column of the data, not of the domain, that tells whose a row is. Rows without a value in
        it are skipped.
    ledger : PrivacyLedger, default=None
        Charged before any value is read.
    random_state : int or None, default=None
        None draws from the operating system. An int is for experiments only: the release is
        then marked "seeded: no guarantee".

    Attributes
    ----------
    synopsis_ : Synopsis
        The release: blocks and noisy counts. Everything computed from it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "converge" (when to stop), "cut" (where to cut), "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain,
    parameters, number of private cuts on a path. *Released*: blocks and noisy counts, nothing
    else. *Cost*: the tests along one path lose at most the part "converge" whatever their number
    (a bias makes the tested error fall with depth), the private cuts of a path at most "cut",
    the count of the one leaf that holds a record "counts"; a record meets one path, so the parts
    add up to epsilon. The paper adds its noise to floats, scores cuts with half of the
    sensitivity budget unused and bounds errors by a theorem whose proof has wrong steps; see the
    user guide.

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

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        calibration="tight",
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.calibration = calibration
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _parts(self, epsilon, domain):
        return hdpview_parts(epsilon, domain.shape, calibration=self.calibration)

    def _release(self, table, domain, loss, source):
        view = hdpview(table, loss.parts, calibration=self.calibration, random_state=source)
        return Synopsis(
            domain,
            Boxes(view.lower, view.upper),
            view.counts,
            noise_epsilon=loss.parts["counts"],
            leaf_errors=view.leaf_errors(),
            privacy_loss=loss,
            mechanism=f"HDPView, calibration={self.calibration!r}",
        )


class PrivTreeSynthesizer(_Synthesizer):
    """Private boxes that are halved where many records are (PrivTree).

    Starting from the whole domain, a box is divided while the number of its records, less a bias
    that grows with the depth, looks positive under noise. A box is halved in the middle along
    some columns, which take turns. Each final box gets a noisy count. It is at its best on two or
    three dense columns.

    Parameters
    ----------
    epsilon : float, default=1.0
        All of one ``fit``: half for the tree, half for the counts.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``.
    split_attributes : int, default=None
        Columns halved at a time, at most 10: a box is divided into ``2**split_attributes`` parts.
        None: all, but not more than 6. The paper halves all columns at once, which makes very
        many empty boxes of a wide table.
    calibration : {"tight", "paper"}, default="tight"
        "tight" draws the noise of the tests from their exact worst case on a path; "paper" by the
        published formula. Both are epsilon-DP.
    max_contributions : int, default=None
        How many rows of each person count at most, drawn in secret; epsilon is then that of the
        person. Needs ``unit``. None: epsilon is that of one row.
    unit : str, default=None
        Column of the data, not of the domain, that tells whose a row is. Rows without a value in
        it are skipped.
    ledger : PrivacyLedger, default=None
        Charged before any value is read.
    random_state : int or None, default=None
        None draws from the operating system. An int is for experiments only: the release is
        then marked "seeded: no guarantee".

    Attributes
    ----------
    synopsis_ : Synopsis
        The release: boxes and noisy counts. Everything computed from it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "tree" (which boxes are divided), "counts".
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

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        split_attributes=None,
        calibration="tight",
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.split_attributes = split_attributes
        self.calibration = calibration
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _parts(self, epsilon, domain):
        return privtree_parts(
            epsilon, domain.shape, n_split=self.split_attributes, calibration=self.calibration
        )

    def _release(self, table, domain, loss, source):
        view = privtree(
            table,
            loss.parts,
            n_split=self.split_attributes,
            calibration=self.calibration,
            random_state=source,
        )
        return Synopsis(
            domain,
            Boxes(view.lower, view.upper),
            view.counts,
            noise_epsilon=loss.parts["counts"],
            uneven=True,
            privacy_loss=loss,
            mechanism=(
                f"PrivTree, {view.parameters.n_split} columns at a time, "
                f"calibration={self.calibration!r}"
            ),
        )


class KDTreeSynthesizer(_Synthesizer):
    """Private boxes of a kd-tree (DPCube), or the cells of the domain one by one.

    Parameters
    ----------
    epsilon : float, default=1.0
        All of one ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``.
    strategy : {"two-step", "cell", "hierarchical"}, default="two-step"
        "two-step": count every cell with noise, grow a kd-tree on the noisy cells, count its
        boxes again. "cell": count every cell, the baseline. Both need a domain of at most
        4,194,304 cells. "hierarchical": grow the tree on the records, a level at a time, each with
        its part of epsilon; for domains of any size.
    xi0, xi1 : float, default=None
        "two-step": a box is divided while the sum of its noisy cells exceeds ``xi0`` or their
        unevenness H, the sum of their distances to the mean, exceeds ``xi1``. None: 10 and 5
        times the mean noise of a box.
    noise_correction : bool, default=True
        "two-step": take off H what the noise of the cells adds to it. False compares as published;
        then every box of many cells looks uneven.
    cell_share : float, default=0.5
        "two-step": share of epsilon for the cells.
    height : int, default=None
        "hierarchical": number of levels, at most 16. None: 12, or fewer in a small domain.
    max_contributions : int, default=None
        How many rows of each person count at most, drawn in secret; epsilon is then that of the
        person. Needs ``unit``. None: epsilon is that of one row.
    unit : str, default=None
        Column of the data, not of the domain, that tells whose a row is. Rows without a value in
        it are skipped.
    ledger : PrivacyLedger, default=None
        Charged before any value is read.
    random_state : int or None, default=None
        None draws from the operating system. An int is for experiments only: the release is
        then marked "seeded: no guarantee".

    Attributes
    ----------
    synopsis_ : Synopsis
        The release: boxes and counts. Everything computed from it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "cells" and "boxes"; "cells" alone; or "level 1" and so on, and
        "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Raises
    ------
    DomainError
        By ``fit``, if every cell shall be counted and the domain has too many; nothing is spent.

    See Also
    --------
    skdp.usefulness : How far off counts over cells can be.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain
    and parameters. *Released*: boxes, the last noisy count of each, and an estimate from
    all its noisy counts. *Cost*: a record lies in one cell and in one box, or in one
    box of every level and at one value of the attribute counted there; each of these counts has
    noise of its part of epsilon, and the parts add up. The tree of "two-step" is grown on noisy
    cells and costs nothing. The paper discards the cells once the tree is grown, and the counts
    that found the medians; here the count of a box is estimated from all that was measured.
    Intervals cover the noise and any spread of the records inside boxes that a query cuts. They
    are built on the last counts alone, because the boxes follow the noise of the others.

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

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        strategy="two-step",
        xi0=None,
        xi1=None,
        noise_correction=True,
        cell_share=0.5,
        height=None,
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.strategy = strategy
        self.xi0 = xi0
        self.xi1 = xi1
        self.noise_correction = noise_correction
        self.cell_share = cell_share
        self.height = height
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _parts(self, epsilon, domain):
        if self.strategy == "hierarchical":
            return hierarchical_parts(epsilon, domain.shape, self.height)
        if self.strategy not in ("two-step", "cell"):
            raise ValueError(
                f"strategy must be 'two-step', 'cell' or 'hierarchical', got {self.strategy!r}."
            )
        _check_cells(
            domain,
            f"strategy={self.strategy!r} counts every cell",
            "Take strategy='hierarchical', declare fewer columns or bins, or use "
            "PairViewSynthesizer, which measures columns and pairs of columns.",
        )
        if self.strategy == "cell":
            return split_epsilon(epsilon, {"cells": 1})
        for name in ("xi0", "xi1"):
            _check_threshold(name, getattr(self, name))
        return two_step_parts(epsilon, self.cell_share)

    def _release(self, table, domain, loss, source):
        mechanism = f"kd-tree, strategy={self.strategy!r}"
        if self.strategy == "cell":
            return _grid_synopsis(table, domain, domain.shape, "cells", loss, source, mechanism)
        if self.strategy == "hierarchical":
            view = hierarchical_kdtree(table, loss.parts, random_state=source)
        else:
            view = two_step_kdtree(
                table,
                loss.parts,
                xi0=self.xi0,
                xi1=self.xi1,
                noise_correction=bool(self.noise_correction),
                random_state=source,
            )
        return Synopsis(
            domain,
            Boxes(view.lower, view.upper),
            view.counts,
            noise_epsilon=view.epsilon,
            uneven=True,
            measured=view.measured,
            privacy_loss=loss,
            mechanism=mechanism,
        )


class GridSynthesizer(_Synthesizer):
    """Private counts over a grid: every column in parts of equal width.

    Parameters
    ----------
    epsilon : float, default=1.0
        All of one ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``.
    rule : {"extended", "uniform", "m-estimator", "identity"} or int, default="extended"
        How many boxes. With N records, d columns and theta = 10: "uniform" N epsilon / theta;
        "extended" the same to the power 2 d / (2 + d), which balances noise against unevenness;
        "m-estimator" (N / sqrt(log N)) ** (2 d / (2 + d)), blind to epsilon. N is measured with
        2% of epsilon. "identity" keeps every cell of the domain. An int is the number of parts
        of every column (fewer where it has fewer codes). At most 4,194,304 boxes are made.
    max_contributions : int, default=None
        How many rows of each person count at most, drawn in secret; epsilon is then that of the
        person. Needs ``unit``. None: epsilon is that of one row.
    unit : str, default=None
        Column of the data, not of the domain, that tells whose a row is. Rows without a value in
        it are skipped.
    ledger : PrivacyLedger, default=None
        Charged before any value is read.
    random_state : int or None, default=None
        None draws from the operating system. An int is for experiments only: the release is
        then marked "seeded: no guarantee".

    Attributes
    ----------
    synopsis_ : Synopsis
        The release: boxes and noisy counts. Everything computed from it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "counts", and "total" where the rule needs the number of records.
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
    records for known; it is not, where a record more or less must not show. Intervals cover the
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

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        rule="extended",
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.rule = rule
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _parts(self, epsilon, domain):
        rule = self.rule
        if isinstance(rule, numbers.Integral) and not isinstance(rule, bool):
            if rule < 1:
                raise ValueError(f"rule={rule!r} asks for fewer than one part of a column.")
            sides = [min(size, int(rule)) for size in domain.shape]
        elif isinstance(rule, str) and rule in GRID_RULES:
            sides = domain.shape
        else:
            raise ValueError(f"rule must be an integer or one of {GRID_RULES}, got {rule!r}.")
        if isinstance(rule, str) and rule != "identity":
            return split_epsilon(epsilon, {"total": _TOTAL_SHARE, "counts": 1 - _TOTAL_SHARE})
        _check_cells(
            domain,
            f"rule={rule!r} makes a box of every cell",
            "Take a smaller rule, such as rule='extended', declare fewer columns or bins, or use "
            "PairViewSynthesizer, which measures columns and pairs of columns.",
            sides,
        )
        return split_epsilon(epsilon, {"counts": 1})

    def _release(self, table, domain, loss, source):
        sides = domain.shape
        if "total" in loss.parts:
            # Privacy. Released: the number of records. One record changes it by 1: the part
            # "total". The number of boxes is computed from it and public facts.
            total = discrete_laplace(table.n, loss.parts["total"], random_state=source)
            size = grid_size(self.rule, float(total), loss.parts["counts"], len(domain.shape))
            sides = _fitting_sides(domain.shape, size)
        elif self.rule != "identity":
            sides = tuple(min(size, int(self.rule)) for size in domain.shape)
        mechanism = f"grid, rule={self.rule!r}"
        return _grid_synopsis(table, domain, sides, "counts", loss, source, mechanism)


def _fitting_sides(shape, size):
    """Sides of a grid of about so many boxes, and not more than may be counted."""
    sides = grid_sides(shape, min(size, MOST_CELLS))
    longest = max(sides)
    while math.prod(sides) > MOST_CELLS:
        longest -= 1
        sides = tuple(min(side, longest) for side in sides)
    return sides


def _grid_synopsis(table, domain, sides, part, loss, source, mechanism):
    epsilon = loss.parts[part]
    return Synopsis(
        domain,
        Boxes(*grid_boxes(domain.shape, sides)),
        measure_grid(table, sides, epsilon, random_state=source),
        noise_epsilon=epsilon,
        uneven=True,
        privacy_loss=loss,
        mechanism=mechanism,
    )


def _check_cells(domain, what, remedy, sides=None):
    """Refuse more boxes than may be counted; from public facts, before anything is spent."""
    sides = domain.shape if sides is None else sides
    cells = math.prod(sides)
    if cells > MOST_CELLS:
        raise DomainError(
            f"{what}, and there are {' x '.join(map(str, sides))} = {cells:.4g} of them, more than "
            f"{MOST_CELLS:,}. Nothing was read or spent. {remedy}"
        )


def _check_threshold(name, value):
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number or None, got {value!r}.")
    if not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{name} must be finite and not negative, got {value!r}.")


class PairViewSynthesizer(_Synthesizer):
    """Private views of single columns and of privately chosen pairs, joined into one model.

    The total, every column by itself, and the pairs of columns that differ most from being
    independent are measured; pair tables by boxes that get smaller where the records are. The
    pairs form a forest that answers any query on any number of columns and yields synthetic rows;
    where the budget allows, further pairs are measured and a sample of the forest is weighted to
    agree with them. This is the release to begin with, from two columns to a hundred.

    Parameters
    ----------
    epsilon : float, default=1.0
        All of one ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``. Records of each of its classes are then measured
        by themselves, which makes the best training sets; counts over all classes together
        carry more noise. With more than 20 codes the chosen pairs all contain it instead.
    error_share : float, default=0.05
        Share of epsilon kept for error bars; 0 releases none.
    max_contributions : int, default=None
        How many rows of each person count at most, drawn in secret; epsilon is then that of the
        person. Needs ``unit``. None: epsilon is that of one row.
    unit : str, default=None
        Column of the data, not of the domain, that tells whose a row is. Rows without a value in
        it are skipped.
    ledger : PrivacyLedger, default=None
        Charged before any value is read.
    random_state : int or None, default=None
        None draws from the operating system. An int is for experiments only: the release is
        then marked "seeded: no guarantee".

    Attributes
    ----------
    synopsis_ : Synopsis
        The release: views, and a quantile of their errors. Everything computed from it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "total" (the number of records), "views" (single columns, the
        choice of pairs, pairs; ``synopsis_.model.budget`` says how it was divided), "errors".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Warns
    -----
    UserWarning
        If a column has more codes than pair tables tell apart (512; 2,048 where there are two
        columns). Its own view keeps them all.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain
    and parameters. *Released*: a noisy total, noisy views, which pairs were chosen, and one noisy
    quantile of the errors. *Cost*: a record changes the total by one, one cell of each view of
    one column, one box a level of each pair view, every score of a pair by one up or down, and
    every error by one; these are asked one after the other and their budgets add up to epsilon.

    Unordered categories are cut in the order of the taxonomy, or of how frequent they were
    released to be. Intervals of ``count`` come from the published quantile of the errors of 2,000
    random queries on two columns: they cover noise and misfit of the model together, on average
    over such queries. See the user guide.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import Categorical, Domain, Numeric, PairViewSynthesizer
    >>> domain = Domain({"age": Numeric(18, 90, integer=True), "sex": Categorical(["F", "M"])})
    >>> people = pd.DataFrame({"age": [30, 41, 52, 35] * 500, "sex": ["F", "M"] * 1000})
    >>> view = PairViewSynthesizer(epsilon=1.0, domain=domain).fit(people)
    >>> answer = view.count({"age": (30, 45), "sex": "F"}, return_interval=True)
    >>> answer.lower < answer.value < answer.upper
    True
    >>> list(view.sample(5).columns)
    ['age', 'sex']
    """

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        error_share=0.05,
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.error_share = error_share
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _together(self, domain):
        if self.target is None or domain[self.target].size > MOST_CLASSES:
            return ()
        return (domain.index(self.target),)

    def _parts(self, epsilon, domain):
        return pair_views_parts(epsilon, domain.shape, self.error_share)

    def _release(self, table, domain, loss, source):
        coarse = coarse_attributes(domain.shape)
        mechanism = "pair views"
        if coarse:
            names = ", ".join(repr(domain.names[axis]) for axis in coarse)
            mechanism += f"; pair tables tell groups of codes apart in {names}"
            warnings.warn(
                f"Pair tables do not tell all codes of {names} apart, because they would not fit "
                "into memory: codes are grouped in them, about equal in number of records. "
                "Declare fewer bins or categories to choose the groups yourself.",
                UserWarning,
                stacklevel=3,
            )
        model = pair_views(
            table,
            loss.parts,
            orders=[_cutting_order(attribute) for attribute in domain.attributes],
            label=None if self.target is None else domain.index(self.target),
            random_state=source,
        )
        return Synopsis.from_model(domain, model, privacy_loss=loss, mechanism=mechanism)


def _cutting_order(attribute):
    """Codes in an order in which neighbours are alike, or None for unordered categories."""
    if isinstance(attribute, Categorical):
        if attribute.taxonomy is None and not attribute.ordered:
            return None
        _, codes = attribute.hierarchy()
        return np.concatenate([codes, np.arange(attribute.n_values, attribute.size)])
    return np.arange(attribute.size)
