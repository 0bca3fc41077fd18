"""PrivPfC: one grid, selected among many for how well it classifies under noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.linear_model import LogisticRegression

from .._validation import as_integer, check_choice
from ..domain import Level
from ..kernels.privpfc import (
    TUNING,
    Line,
    Options,
    cell_limit,
    max_useful_groups,
    merged_groupings,
    merging_budget,
    privpfc_parts,
    select_grid,
)
from ..mechanisms import discrete_laplace, discrete_laplace_variance
from .base import GridRelease, GridTransformer, one_hot

__all__ = ["PrivPfCClassifier", "PrivPfCTransformer"]

# Pseudo-count of the additive model in each cell: standard deviations of a noisy count, and records
# besides, of which the number that predicts best is taken.
_PRIOR = 4
_RECORDS = (0.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
# Where the differences between cells look like chance, they keep this part, for the order of rows.
_LEAST_EVIDENCE = 0.05


class _PrivPfC(GridRelease):
    """Selection of the grid, for the transformer and the classifier."""

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        classes=None,
        max_grids=10_000,
        selection="auto",
        shares=(0.03, 0.37, 0.60),
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ) -> None:
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.classes = classes
        self.max_grids = max_grids
        self.selection = selection
        self.shares = shares
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self):
        super()._check_parameters()
        check_choice(self.selection, "selection", ("auto", "paper"))
        as_integer(self.max_grids, "max_grids", 1)

    def _parts(self, epsilon):
        return privpfc_parts(epsilon, self.shares)

    def _choose(self, table, predictors, parts, source):
        # Privacy. Released: the number of records with noise of sensitivity 1 (part "total"); with
        # many records counts of each predictor by label (two fifths of the part "grid", see
        # `merged_groupings`); a grid (the rest of it, see `select_grid`); and its counts (part
        # "counts", see `measure_grid_counts`). All are composed sequentially; which groupings are
        # offered depends on the domain and on what was released before.
        n_records = int(discrete_laplace(table.n, parts["total"], random_state=source))
        limit = cell_limit(n_records, parts["counts"], table.shape[-1], self.selection)
        most = max_useful_groups(limit, self.selection)
        lines = [_line(attribute) for attribute in predictors]
        merging = Fraction(0)
        if self.selection == "auto":
            merging = merging_budget(lines, n_records, parts["grid"])
        if merging:
            merged = merged_groupings(table, lines, most, merging, random_state=source)
            offered = [
                _offers_merged(attribute, most, groupings)
                for attribute, groupings in zip(predictors, merged, strict=True)
            ]
            parts = {**parts, "grid": parts["grid"] - merging}
        else:
            offered = [_offers(attribute, most) for attribute in predictors]
        options = [
            Options(tuple(level.groups for level in levels), n_first) for levels, n_first in offered
        ]
        grid = select_grid(
            table,
            options,
            n_records,
            parts,
            max_grids=int(self.max_grids),
            selection=self.selection,
            merged=bool(merging),
            random_state=source,
        )
        axes = np.flatnonzero(grid).tolist()
        levels = [offered[axis][0][grid[axis] - 1] for axis in axes]
        labels = [
            level.labels or _texts(predictors[axis], level.groups, lines[axis].ordered)
            for axis, level in zip(axes, levels, strict=True)
        ]
        return n_records, axes, [level.groups for level in levels], labels

    def _post_process(self, noisy, n_records, parts):
        if self.selection == "paper":
            return np.maximum(noisy, 0).astype(np.float64)
        return super()._post_process(noisy, n_records, parts)


def _offers(attribute, most):
    """Public groupings into at most ``most`` groups, and how many of them a first selection gets.

    Each category against the others is left to the second selection: there are many of these
    groupings and most are useless, and a selection among few good candidates is more accurate.
    """
    if most < 2:
        return [], 0
    n_first = sum(map(len, attribute.groupings(most)))
    families = attribute.groupings(most, against_rest=True)
    return [level for family in families for level in family], n_first


def _line(attribute):
    """The finest public groups of a predictor, which may be merged."""
    families = attribute.groupings(TUNING.finest)
    if not families:
        return Line(np.zeros(attribute.size, dtype=np.int64), 1, True)
    # Each value alone, if there are not too many; otherwise intervals that grow, where offered.
    groups = families[0 if attribute.size <= TUNING.finest else -1][-1].groups
    # Special values and the missing cell stay alone.
    alone = attribute.size - len(attribute.hierarchy()[1])
    return Line(groups, int(groups.max()) + 1 - alone, attribute.order() is not None)


def _offers_merged(attribute, most, merged):
    """As `_offers`, with merged groupings, yet without texts, instead of those in two."""
    levels = [Level(groups, []) for groups in merged]
    seen = {level.groups.tobytes() for level in levels}
    families = attribute.groupings(most) if most >= 2 else ()
    for family in families:
        levels += [level for level in family if level.groups.tobytes() not in seen]
    return levels, len(levels)


def _texts(attribute, groups, ordered):
    """A text for each group of a merged grouping."""
    own = attribute.labels()
    places = attribute.hierarchy()[1]
    texts = []
    for group in range(int(groups.max()) + 1):
        codes = places[groups[places] == group]
        if not len(codes):
            # A special value or the missing cell.
            codes = np.flatnonzero(groups == group)
        first, last = int(codes[0]), int(codes[-1])
        if len(codes) == 1:
            texts.append(own[first])
        elif not ordered:
            texts.append(", ".join(own[code] for code in codes.tolist()))
        elif hasattr(attribute, "span_label") and not attribute.one_each:
            texts.append(attribute.span_label(first, last + 1))
        else:
            texts.append(f"{own[first]} to {own[last]}")
    return texts


class PrivPfCTransformer(_PrivPfC, GridTransformer):
    """Publish data for classification: one privately selected grid with noisy counts (PrivPfC).

    A grid groups the values of a few predictors (halves, quarters, levels of a taxonomy) and
    ignores the others. A single private selection among up to ``max_grids`` candidates takes one
    whose histogram classifies well *with the noise that its counts will have*. Then the counts of
    all cells and labels are released. Classifiers trained on them are post-processing.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label. Giving both this
        and ``target`` is an error.
    max_grids : int, default=10_000
        Largest number of candidates of one selection. The grid with a single cell is always a
        candidate.
    selection : {"auto", "paper"}, default="auto"
        "auto" draws candidates regardless of the order of columns, and selects by a noisy maximum
        with the exact range of an integer quality. With enough data it merges values with similar
        noisy shares of the labels first, selects again, once to six times, among the neighbours of
        the choice before, and the quality takes off a part of what a grid gains by fitting its own
        records. "paper" follows the dissertation: candidates level by
        level in the order of columns with a fifth of the cells, the exponential mechanism with
        its bound of 1.1, and negative counts set to zero.
    shares : tuple of three numbers, default=(0.03, 0.37, 0.60)
        How epsilon is divided among the number of records, the choice of the grid and the counts,
        in proportion. The dissertation also tries (0.03, 0.10, 0.87).
    encoding : {"ordinal", "onehot"}, default="ordinal"
        What ``transform`` returns. The training set is always one-hot.
    max_contributions : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``unit``. None: epsilon protects one row.
    unit : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise. None: the operating system's random source. An int is for experiments
        only: the release is then marked "seeded: no guarantee".

    Attributes
    ----------
    grid_ : Grid
        The predictors that the grid uses, and how their values are grouped.
    histogram_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        Counts of all cells and labels: ``noisy_counts_`` made non-negative by the smallest
        change that keeps the noisy total.
    noisy_counts_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        The counts as released, unbiased integers.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted. They never come from ``y``.
    domain_ : Domain
        The domain, spelled out for every column, the label included.
    target_ : str
        The label's column in ``domain_``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "total" (number of records), "grid", "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain,
    parameters, list of labels. *Released*: grid and noisy counts, and with many records the merged
    groups. *Cost*: the parts "total", "grid" and "counts" are composed one after the other; merging
    spends two fifths of "grid". The dissertation bounds the change of
    the quality by 1.1 in either direction; in fact the qualities of all candidates change within
    one interval of length at most 1.178, so the same epsilon selects 1.87 times as accurately. The
    quality that takes off the gain by fitting has an interval of length 1.93 at most.

    In an ordinary ``Pipeline``, a step after ``transform`` sees the true labels and is not
    private: use :class:`skdp.PrivateClassifier` or :class:`skdp.PrivPfCClassifier`.

    References
    ----------
    D. Su, "Differentially Private Data Publishing for Data Analysis", dissertation, Purdue
    University, 2016, chapter 3.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp import Numeric, PrivateClassifier, PrivPfCTransformer
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> release = PrivPfCTransformer(1.0, domain=Numeric(0, 1, bins=4))
    >>> model = PrivateClassifier(LogisticRegression(), release, classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    """

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        classes=None,
        max_grids=10_000,
        selection="auto",
        shares=(0.03, 0.37, 0.60),
        encoding="ordinal",
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ) -> None:
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.classes = classes
        self.max_grids = max_grids
        self.selection = selection
        self.shares = shares
        self.encoding = encoding
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state


class PrivPfCClassifier(ClassifierMixin, _PrivPfC):
    """Histogram classifier on a privately selected grid (PrivPfC).

    In each cell of the grid of :class:`PrivPfCTransformer` it predicts the label with the largest
    noisy count. In cells with few records noise would decide; therefore pseudo-counts are added
    that follow an additive (logistic) model trained on the same release. There are four standard
    deviations of the noise of them in each cell, and up to 64 more if records that are left out of
    their cells are predicted better with them. Then the shares are pulled to those of all records,
    as far as their differences may be chance, so that they are about as sure as they should be.
    With ``selection="paper"`` the counts alone decide.

    Parameters
    ----------
    epsilon, domain, target, classes, max_grids, selection, shares, max_contributions, unit, \
    ledger, random_state
        As for :class:`PrivPfCTransformer`.

    Attributes
    ----------
    grid_ : Grid
        The predictors that the grid uses, and how their values are grouped.
    histogram_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        Non-negative counts that keep the noisy total.
    smoothed_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        ``histogram_`` plus the pseudo-counts of the additive model; predictions use it.
    evidence_ : float
        Estimated part of the differences between cells that is not chance, from 0.05 to 1, by which
        predictions multiply the logarithms of the ratios to the overall shares.
    noisy_counts_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        The counts as released, unbiased integers.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted. They never come from ``y``.
    domain_ : Domain
        The domain, spelled out for every column, the label included.
    target_ : str
        The label's column in ``domain_``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "total" (number of records), "grid", "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    Privacy is as for :class:`PrivPfCTransformer`; prediction is post-processing. A score computed
    on true held-out rows is exact and not private.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivPfCClassifier
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> model = PrivPfCClassifier(1.0, domain=Numeric(0, 1, bins=4), classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    """

    def predict(self, X) -> np.ndarray:
        """Predict the label of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        shares = self.predict_proba(X)
        return self.classes_[np.argmax(shares, axis=1)]

    def predict_proba(self, X) -> np.ndarray:
        """Share of each label in the row's cell.

        If the domain has no code for a value, the cells along that predictor are summed.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns as in ``classes_``.
        """
        coordinates = self._coordinates(X)
        result = np.empty((len(coordinates), len(self.classes_)))
        known = coordinates >= 0
        for pattern in np.unique(known, axis=0):
            mine = np.flatnonzero((known == pattern).all(axis=1))
            unknown = tuple(np.flatnonzero(~pattern).tolist())
            view = self.smoothed_.sum(axis=unknown) if unknown else self.smoothed_
            cells = view[tuple(coordinates[np.ix_(mine, np.flatnonzero(pattern))].T)]
            result[mine] = cells / cells.sum(axis=-1, keepdims=True)
        # Pulled to the overall shares, on the scale of logarithms.
        result = result**self.evidence_ * _overall(self.histogram_) ** (1 - self.evidence_)
        return result / result.sum(axis=1, keepdims=True)

    def _finish(self):
        # Post-processing of the release.
        noise = np.sqrt(discrete_laplace_variance(self.privacy_loss_.of_record.parts["counts"]))
        if self.selection == "paper":
            # The largest count decides; the overall shares decide if all counts are zero.
            weight, shares = 1e-9, _overall(self.histogram_)
        else:
            shares = _additive(self)
            weight = _best_weight(self.histogram_, shares, _PRIOR * noise)
        self.smoothed_ = self.histogram_ + weight * shares
        self.evidence_ = 1.0 if self.selection == "paper" else _evidence(self, noise**2)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # On the few rows of a small table the noise dominates.
        tags.classifier_tags.poor_score = True
        return tags


def _overall(histogram):
    """Share of each label over all cells, never zero."""
    totals = histogram.reshape(-1, histogram.shape[-1]).sum(axis=0) + 1e-9
    return totals / totals.sum()


def _best_weight(histogram, shares, least):
    """Pseudo-count of at least ``least`` with which the cells predict their records best.

    Each record is left out of its cell while it is predicted (logarithmic score).
    """
    present = histogram > 0
    counts, prior = histogram[present], np.broadcast_to(shares, histogram.shape)[present]
    totals = np.broadcast_to(histogram.sum(axis=-1, keepdims=True), histogram.shape)[present]
    # Part of a record is left out of a cell with less than one.
    one = np.minimum(counts, 1.0)
    # Above zero even if the noise is practically nothing.
    weights = np.maximum(least + np.array(_RECORDS), 1e-9)
    scores = [
        np.sum(counts * np.log((counts - one + weight * prior) / (totals - one + weight)))
        for weight in weights
    ]
    return weights[int(np.argmax(scores))]


def _evidence(release, variance):
    """Part of the differences between cells that neither chance nor noise made, above 0.

    Predicted differences from the overall shares are regressed on the released ones, whose variance
    is known. They were learnt from the same counts: that adds to the sum of their products, in
    units of the variance, how many numbers were fitted (as in Stein's estimate of risk): one for a
    cell as far as its own counts decide, and for the rest those of the additive model.
    """
    *shape, n_classes = release.histogram_.shape
    overall = _overall(release.histogram_)
    noisy, counts, smoothed = (
        each.reshape(-1, n_classes)
        for each in (release.noisy_counts_, release.histogram_, release.smoothed_)
    )
    n, total = (each.sum(axis=1, keepdims=True) for each in (counts, smoothed))
    released = noisy - overall * noisy.sum(axis=1, keepdims=True)
    predicted = n * (smoothed / total - overall)
    noise = variance * ((1 - overall) ** 2 + (n_classes - 1) * overall**2)
    spread = n * overall * (1 - overall) + noise
    own = n / total
    fitted = own.sum() + (1 - own).mean() * sum(size - 1 for size in shape)
    gain = (released * predicted / spread).sum() - n_classes * min(fitted, len(n) - 1)
    return float(np.clip(gain / max((predicted**2 / spread).sum(), 1e-9), _LEAST_EVIDENCE, 1))


def _additive(release):
    """Share of each label in every cell by logistic regression on the groups of the cells."""
    rows, labels, weight = release.make_training_set()
    histogram, classes = release.histogram_, release.classes_
    present = np.isin(classes, labels)
    shape = histogram.shape[:-1]
    if not shape or present.sum() < 2:
        return _overall(histogram)
    cells = np.indices(shape).reshape(len(shape), -1).T
    model = LogisticRegression(max_iter=300).fit(rows, labels, sample_weight=weight)
    shares = np.full((len(cells), len(classes)), 1e-9)
    shares[:, present] += model.predict_proba(one_hot(cells, shape))
    return shares.reshape(histogram.shape)
