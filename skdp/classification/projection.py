"""PPH: the histogram over a few privately selected predictors."""

from __future__ import annotations

from .._validation import as_integer
from ..kernels.projection import projected_histogram, projection_parts
from ..mechanisms import discrete_laplace
from .base import GridTransformer

__all__ = ["ProjectedHistogramTransformer"]


class ProjectedHistogramTransformer(GridTransformer):
    """Publish data for classification by projecting on few predictors (PPH).

    Predictors are selected privately, one after the other: each time the one that best separates
    records of different labels when combined with those already selected. The histogram over the
    selected predictors is released, with categories as they are and numbers in equal bins.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label.
    n_attributes : int, default=3
        Number of predictors that are selected; all, if the domain has fewer.
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
        only: no guarantee.

    Attributes
    ----------
    grid_ : Grid
        The predictors that the grid uses, and how their values are grouped.
    histogram_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        Non-negative counts that keep the noisy total.
    noisy_counts_ : ndarray of shape (n_groups_of_column_0, ..., n_classes)
        The counts as released, unbiased integers.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted.
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
    *Neighbours* add or remove one record. *Public*: domain, parameters. *Released*: the noisy
    number of records, the predictors, noisy counts. *Cost*: the selections share "grid" evenly;
    "total" and "counts" are composed with it. The paper's score is the number of pairs of records
    that a projection does not separate. One record changes it by up to the number of records, which
    is itself private. Here the pairs of a cell are counted relative to its size; that score changes
    by less than 1.

    References
    ----------
    S. Vinterbo, "Differentially private projected histograms: construction and use for
    prediction", ECML PKDD 2012; J. Lei, "Differentially private M-estimators", NeurIPS 2011 (the
    number of bins).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, ProjectedHistogramTransformer
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat([0, 1], 5_000)
    >>> release = ProjectedHistogramTransformer(
    ...     1.0, domain=Numeric(0, 1, bins=4), classes=[0, 1], n_attributes=1
    ... )
    >>> release.fit(X, y).histogram_.shape
    (4, 2)
    """

    # Every score uses all predictors.
    _projects = False

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        classes=None,
        n_attributes=3,
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
        self.n_attributes = n_attributes
        self.encoding = encoding
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self):
        super()._check_parameters()
        as_integer(self.n_attributes, "n_attributes", 1)

    def _parts(self, epsilon):
        return projection_parts(epsilon)

    def _choose(self, table, predictors, parts, source):
        n_records = int(discrete_laplace(table.n, parts["total"], random_state=source))
        axes, groups, labels = projected_histogram(
            table,
            predictors,
            n_records,
            parts["grid"],
            n_attributes=int(self.n_attributes),
            random_state=source,
        )
        return n_records, axes, groups, labels
