"""DPKMeans: private k-means, from a noisy grid or tree, noisy rounds, or both."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ._random import sampling_generator, warn_after_charge
from ._validation import as_integer
from .algorithms.grid import as_theta, even_edges
from .algorithms.kmeans.algorithms import ALGORITHMS, GRID_ALGORITHMS, algorithm_parts
from .algorithms.kmeans.lloyd import Task, nearest
from .algorithms.kmeans.sketch import cover
from .base import (
    PrivateEstimator,
    feature_ranges,
    match_rows,
    warn_of_emptiness,
    warn_of_score,
    without_id,
)
from .domain import Domain, Numeric
from .domain.bins import N_CODES
from .exceptions import DomainError
from .mechanisms import discrete_laplace_variance
from .release import Boxes, BoxModel, Intervals, Synopsis
from .tables import Coded, read_rows

__all__ = ["DPKMeans"]

_MOST_FEATURES = 512
# Squared distances between numbers up to this fit into float64.
_FARTHEST = 1e150
# Blocks of sample and aggregate: each is clustered, so that this many take minutes.
_MOST_BLOCKS = 2**16


@dataclass(eq=False, repr=False, kw_only=True)
class DPKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, PrivateEstimator):
    """Private k-means clustering.

    The default releases noisy counts of boxes and runs k-means with many starts on them, which
    costs no privacy. One or two rounds over the rows then improve the centroids: each row adds its
    difference to its centroid, clipped to a length that is typical of the boxes, and noise is added
    to the sums.

    Distances are Euclidean in the units of ``X``, as for `sklearn.cluster.KMeans`: first rescale
    features with different units to comparable ranges, with public factors.

    Parameters
    ----------
    n_clusters : int or iterable of int, default=8
        Number of clusters, or several numbers to choose from, at least 2 each: the one with the
        best validity on the released grid or tree is taken, which costs no privacy.
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : (low, high), list, dict, Domain or Numeric, default=None
        Public range of the features, required: a pair of real numbers or a `Numeric` for all
        features, a list or a dict by name with one of these for each, or a `Domain`. Values outside
        are clipped. Where there are many records for each feature, "auto" finds their range first,
        and far too wide ones cost little accuracy.
    algorithm : str, default="auto"
        - "auto": a noisy tree of boxes, or in up to three dimensions a noisy grid that keeps its
          filled cells; k-means with many starts on it; and rounds over the rows in
          which distances to the centroids are clipped. With more than 50 columns clusters are found
          in a random projection of the columns. With more than three columns, and less than 20
          records times epsilon for each, one center. The most accurate.
        - "lloyd": Lloyd's algorithm, each of ``n_rounds`` rounds under noise (DPLloyd).
        - "lloyd-improved": the same with starts that are spread out, the best split of a round's
          budget, and a number of rounds computed from epsilon (DPLloyd-Impr).
        - "uniform-grid", "m-estimator", "extended-grid": k-means with ``n_init`` starts on a noisy
          grid of N epsilon / theta, (N / sqrt(log N))^(2d / (2 + d)) or
          (N epsilon / theta)^(2d / (2 + d)) cells (UGkM, MkM, EUGkM), at most 2^18.
        - "hybrid": "extended-grid", then one round of "lloyd-improved" if that is expected to
          reduce the error (Hybrid).
        - "sample-aggregate": the mean of the centroids of random blocks of rows (GkM).
        - "genetic": selection, crossover and mutation of sets of centroids (PGkM); takes minutes
          for a million rows.
    n_init : int, default=30
        Number of starts on the grid or tree. More starts cost time, but no privacy.
    init : array-like of shape (n_clusters, n_features), default=None
        Public starting centroids in place of drawn ones. Never take them from the data.
    n_rounds : int, default=None
        Rounds of "lloyd", "lloyd-improved" and "genetic". None: 5 of "lloyd", and the published
        numbers of the others, from the public or noisy number of rows.
    theta : float, default=10
        Rows times epsilon for one cell of "uniform-grid"; also a constant of "extended-grid" and
        "hybrid". Smaller values make finer grids. From 0.001 to 1,000,000.
    n_blocks : int, default=None
        Public number of blocks of "sample-aggregate", at most 65,536. None: N^0.4, as published, of
        the public or noisy number of rows. More blocks need less noise, but each sees fewer rows.
    n_samples : int, default=None
        Number of rows, if it is public. By default, algorithms that need it spend one fiftieth of
        epsilon to estimate it.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: the release is then marked "seeded: no guarantee".
    verbose : int, default=0
        Print the steps of a fit to standard error, with numbers that are public or released.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (`n_clusters_`, n_features)
        In the units of ``X``. With more than three columns fewer clusters are found where the noise
        of more would hide what they gain: further centroids repeat them, and get no rows.
    cluster_counts_ : ndarray of shape (`n_clusters_`,) or None
        Noisy numbers of rows of the clusters, where the algorithm measures them; they may be
        negative.
    n_clusters_ : int
    validity_ : dict of int to float, or None
        Validity of every number of clusters tried, the smaller the better: with "auto" and up to 50
        columns the share of the squared distances that is left, times k^(2/d + 0.15), else the
        validity of Ray and Turi. None where ``n_clusters`` is one number.
    synopsis_ : Synopsis or None
        The noisy grid or tree, where the algorithm has one: query it or draw rows from it. None
        for more than 50 columns with "auto", and for one center. There are no intervals for a tree,
        nor for a large grid, where only the cells that rise above the noise are kept and the others
        count as empty.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain,
    parameters, ``n_samples`` and ``init`` if given. *Released*: centroids, noisy counts, the noisy
    grid or tree. Labels and inertia of the rows are not stored: ``labels_`` and ``inertia_`` would
    be exact. *Cost*: a record lies in one cell of the grid, or on one path of the tree, and in one
    cluster of a round, because all assignments of a round use the same frozen centroids; grid and
    rounds add up to epsilon. Empty clusters and empty cells get the same noise as all others. Rows
    with a missing value are skipped. In the dissertation's algorithms 3 and 13, as printed,
    centroids move during a round, and in algorithm 13 the noise of the sums is too small by the
    range of a feature; see the pages on theory.

    References
    ----------
    D. Su, "Differentially private data publishing for data analysis", Purdue University, 2016,
    chapter 4.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 0.5, size=(5_000, 2)) for m in (-4, 0, 5)])
    >>> model = DPKMeans(3, epsilon=1.0, domain=(-10, 10)).fit(X)
    >>> sorted(model.cluster_centers_[:, 0].round().astype(int).tolist())
    [-4, 0, 5]
    """

    cluster_centers_: np.ndarray = field(init=False)

    n_clusters: Any = field(default=8, kw_only=False)
    domain: Any = None
    algorithm: Any = "auto"
    n_init: Any = 30
    init: Any = None
    n_rounds: Any = None
    theta: Any = 10
    n_blocks: Any = None
    n_samples: Any = None
    max_rows_per_id: Any = None
    privacy_id: Any = None
    verbose: Any = 0

    # -- the release

    def fit(self, X, y=None, **fit_params) -> Self:
        """Charge epsilon, then release centroids.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            One row per record, numbers only: NumPy array; pandas, Polars or PyArrow table; or a
            lazy frame of Polars, DuckDB, Dask or PySpark, whose features are fetched and coded in
            one pass; where they are many, into a file that nobody else can open.
        y : Ignored
        **fit_params
            Refused. A record of ``sample_weight`` w would need noise w times as large.

        Returns
        -------
        self

        Raises
        ------
        DomainError, TypeError, ValueError
            If the schema or a parameter does not fit; nothing is spent. Values never raise: out
            of the domain is clipped, rows with a missing value are skipped.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        EngineError
            If the engine of a lazy frame fails while it counts; the charge stands.
        """
        if fit_params:
            raise TypeError(
                f"DPKMeans.fit takes X alone, got {sorted(fit_params)}. A sample_weight is refused "
                "because the noise hides records of weight 1: larger weights would need more noise "
                "for all records."
            )
        rows = read_rows(X)
        names = without_id(rows, self._privacy_id()).names
        low, high = self._limits(names)
        rows, domain = match_rows(
            rows, None, _coded(names, low, high), None, lazy=True, privacy_id=self._privacy_id()
        )
        clusters, init = self._wanted(domain, low, high)
        parts = algorithm_parts(
            self.algorithm, self._record_epsilon(), self.n_samples, self.n_blocks
        )
        loss, source = self._spend(rows, parts)

        task = Task(
            points=Coded(rows, domain, self._contributions(loss, source, rows, domain)).codes,
            shape=domain.shape,
            clusters=clusters,
            parts=loss.of_record.parts,
            n_records=None if self.n_samples is None else int(self.n_samples),
            n_init=int(self.n_init),
            n_rounds=self.n_rounds,
            init=init,
            theta=as_theta(self.theta),
            n_blocks=self.n_blocks,
            source=source,
            generator=sampling_generator(source),
            progress=self._progress,
        )
        # Released totals, with their standard deviations.
        totals = []
        if "records" in task.parts:
            # The part is spent here; the algorithm takes the number as known.
            task = replace(task, n_records=task.measure_total())
            variance = discrete_laplace_variance(task.parts["records"])
            totals.append((task.n_records, math.sqrt(variance)))
        self._warn_of_many_clusters(task)
        found = ALGORITHMS[self.algorithm][0](task)
        unit = (high - low) / np.array(domain.shape)
        centers = np.clip(low + (found.centroids + 0.5) * unit, low, high)
        synopsis = None
        if found.edges is not None:
            synopsis = _as_synopsis(found, names, low, high, loss, self.algorithm)

        self._remember_columns(X, rows)
        self.cluster_centers_ = centers
        self.cluster_counts_ = found.counts
        self.n_clusters_ = len(centers)
        self.validity_ = found.validity
        self.synopsis_ = synopsis
        self.privacy_loss_ = loss
        if synopsis is not None and synopsis.model.intervals.epsilons:
            totals.append((synopsis.total, synopsis.total_std))
        if totals:
            warn_of_emptiness(self, *min(totals, key=lambda total: total[1]))
        return self

    def _warn_of_many_clusters(self, task):
        """Warn of more clusters than noise leaves, by a released or public number of records."""
        most, epsilon = max(task.clusters), float(self._record_epsilon())
        if task.n_records is not None and most > task.n_records * epsilon:
            warn_after_charge(
                f"n_clusters={most} at epsilon={epsilon:.4g} for about {task.n_records} records: "
                "a cluster has less than one record times epsilon, and noise hides it. Most "
                "centroids will be noise or equal to each other. Ask for fewer clusters, some "
                "hundred records times epsilon each."
            )

    def _limits(self, names):
        """Both ends of the ranges, one number for each feature."""
        n_features = len(names)
        if n_features > _MOST_FEATURES:
            raise ValueError(
                f"X has {n_features} features, more than {_MOST_FEATURES}: keep the columns that "
                "distances should depend on, or project it first, by a public map."
            )
        low, high = feature_ranges(self.domain, names)
        if max(np.abs(low).max(), np.abs(high).max()) > _FARTHEST:
            raise DomainError(
                f"Ranges beyond {_FARTHEST:g} are refused, because squared distances would exceed "
                f"float64, got {self.domain!r}. Declare the range that values can have, or divide "
                "the features by public numbers."
            )
        # Half a code of the widest feature, against neighbouring floats.
        finest = (high - low).max() / N_CODES / 2
        for name, a, b in zip(names, low, high, strict=True):
            if np.spacing(max(abs(a), abs(b))) > finest:
                raise DomainError(
                    f"The range ({a:g}, {b:g}) of {name!r} are too far from zero for their width: "
                    "float64 cannot tell close values apart. Subtract a public number from the "
                    "column and its range."
                )
        return low, high

    def _wanted(self, domain, low, high):
        """Numbers of clusters, and starting centroids in codes."""
        if not isinstance(self.algorithm, str) or self.algorithm not in ALGORITHMS:
            raise ValueError(
                f"algorithm must be one of {tuple(ALGORITHMS)}, got {self.algorithm!r}."
            )
        as_integer(self.n_init, "n_init", 1)
        if self.n_rounds is not None:
            as_integer(self.n_rounds, "n_rounds", 1)
        if self.n_samples is not None:
            as_integer(self.n_samples, "n_samples", 0)
        as_theta(self.theta)
        if self.n_blocks is not None and as_integer(self.n_blocks, "n_blocks", 1) > _MOST_BLOCKS:
            raise ValueError(f"n_blocks must be at most {_MOST_BLOCKS:,}, got {self.n_blocks!r}.")
        several = not isinstance(self.n_clusters, str) and isinstance(self.n_clusters, Iterable)
        clusters = tuple(self.n_clusters) if several else (self.n_clusters,)
        for k in clusters:
            as_integer(k, "n_clusters", 2 if several else 1)
        if not clusters:
            raise ValueError("n_clusters is empty: give at least one number.")
        if several and self.algorithm not in GRID_ALGORITHMS:
            raise ValueError(
                f"algorithm={self.algorithm!r} releases no grid on which to choose among several "
                f"n_clusters; give one number, or take one of {GRID_ALGORITHMS}."
            )
        clusters = tuple(sorted({int(k) for k in clusters}))
        if self.init is None:
            return clusters, None
        init = np.asarray(self.init, dtype=np.float64)
        if len(clusters) > 1 or init.shape != (clusters[0], len(domain.shape)):
            raise ValueError(
                f"init must hold one row for each of n_clusters={self.n_clusters!r} clusters and "
                f"{len(domain.shape)} features, got the shape {init.shape}."
            )
        if not np.isfinite(init).all():
            raise ValueError("init must be finite.")
        shape = np.array(domain.shape)
        codes = (np.clip(init, low, high) - low) / (high - low) * shape - 0.5
        return clusters, np.clip(codes, 0, shape - 1)

    # -- using the centroids

    def _matrix(self, X):
        """Rows as floats, clipped to the bounds of float64; NaN where missing."""
        return np.clip(self._rows_as_fitted(X).numbers(), -_FARTHEST, _FARTHEST)

    def predict(self, X) -> np.ndarray:
        """Index of the nearest centroid of every row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of int, shape (n_rows,)
            -1 for rows with a missing value. The labels of the training rows are computed from
            the rows: for the data owner only, not private.
        """
        values = self._matrix(X)
        missing = np.isnan(values).any(axis=1)
        labels = nearest(np.nan_to_num(values), self.cluster_centers_)
        labels[missing] = -1
        return labels

    def transform(self, X) -> np.ndarray:
        """Distances to the centroids.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, `n_clusters_`)
            NaN for rows with a missing value.
        """
        values = self._matrix(X)
        distances = np.empty((len(values), self.n_clusters_))
        for j, center in enumerate(self.cluster_centers_):
            distances[:, j] = np.sqrt(((values - center) ** 2).sum(axis=1))
        return distances

    def score_samples(self, X) -> np.ndarray:
        """Minus the squared distance of every row to its nearest centroid.

        ``private_score(X, model, metric="nicv")`` releases the mean with noise.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
            NaN for rows with a missing value.
        """
        return -(self.transform(X).min(axis=1) ** 2)

    def _farthest_squared(self):
        """Squared distance of the most central centroid to the corner farthest from it."""
        low, high = feature_ranges(self.domain, self._feature_names())
        centers = self.cluster_centers_
        return float((np.maximum(centers - low, high - centers) ** 2).sum(axis=1).min())

    def fit_predict(self, X, y=None, **fit_params) -> np.ndarray:
        """Fit, and return the labels of the rows themselves; these are not a private release."""
        return self.fit(X, **fit_params).predict(X)

    def score(self, X, y=None) -> float:
        """Minus the sum of squared distances of the rows to their nearest centroids.

        It is computed from the rows, exactly: for the data owner only, not private. Rows with a
        missing value are left out.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : Ignored

        Returns
        -------
        float

        Warns
        -----
        PrivacyLeakWarning
            Once in a process.
        """
        found = self.score_samples(X)
        warn_of_score(self)
        return float(np.nansum(found))

    @property
    def _n_features_out(self):
        return self.n_clusters_

    def plot(self, columns=None, *, ax=None, blocks=False, norm=None) -> Any:
        """Draw the centroids over two features, on the released grid if there is one.

        Parameters
        ----------
        columns : sequence of two str, default=None
            Names of features (x0, x1, ... for arrays); the first two by default.
        ax : matplotlib Axes, default=None
            A new figure by default.
        blocks : bool, default=False
            Outline the boxes of the grid or tree, as far as they differ in the two features.
        norm : matplotlib Normalize or str, default=None
            Colour scale of the grid; see :meth:`skdp.Synopsis.plot`.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ValueError
            If ``columns`` are not two of the features, or there are no boxes to outline.
        """
        check_is_fitted(self)
        names = self._feature_names()
        columns = list(names[:2]) if columns is None else list(columns)
        if len(columns) != 2 or not set(columns) <= set(names):
            raise ValueError(f"plot needs two of the features {names}, got {columns!r}.")
        from .plotting import loss_title, plot_centroids

        if self.synopsis_ is not None:
            ax = self.synopsis_.plot(columns, ax=ax, blocks=blocks, norm=norm)
        elif blocks:
            raise ValueError(f"algorithm={self.algorithm!r} releases no boxes to outline.")
        places = [names.index(column) for column in columns]
        ax = plot_centroids(self.cluster_centers_[:, places], columns, ax=ax)
        if not ax.get_title():
            ax.set_title(loss_title("", self.privacy_loss_), fontsize="medium")
        return ax


def _coded(names, low, high):
    """Domain that turns each feature into fine codes, of nearly the same width for all."""
    width = high - low
    bins = np.maximum(1, np.rint(width / width.max() * N_CODES)).astype(int)
    # Equal ranges share their bins, which are many.
    made = functools.cache(lambda a, b, n: Numeric(a, b, bins=n))
    ends = zip(names, low.tolist(), high.tolist(), bins.tolist(), strict=True)
    return Domain({name: made(a, b, n) for name, a, b, n in ends})


def _binned(low, high, edge):
    """Bins of a feature, of equal width unless the range of the records was divided again."""
    if np.array_equal(edge, even_edges(int(edge[-1]), len(edge) - 1)):
        return Numeric(low, high, bins=len(edge) - 1)
    return Numeric(edges=[low, *(low + edge[1:-1] * ((high - low) / edge[-1])).tolist(), high])


def _as_synopsis(found, names, low, high, loss, algorithm):
    """The noisy grid or tree as a release that can be queried."""
    sides = [len(edge) - 1 for edge in found.edges]
    domain = Domain(
        {
            name: _binned(float(a), float(b), edge)
            for name, a, b, edge in zip(names, low, high, found.edges, strict=True)
        }
    )
    if found.leaves is not None:
        form, known, (lower, upper, counts) = "tree", None, found.leaves
    else:
        lower, upper, index = cover(found.cells.places, sides)
        counts = np.where(index >= 0, np.append(found.cells.counts, 0)[index], 0)
        form, known = "grid", Intervals(found.cell_epsilon) if (index >= 0).all() else None
    mechanism = f"k-means {form}, algorithm={algorithm!r}"
    model = BoxModel(Boxes(lower, upper), counts, domain.shape, known)
    return Synopsis(domain, model, privacy_loss=loss, mechanism=mechanism)
