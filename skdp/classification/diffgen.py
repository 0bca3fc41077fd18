"""DiffGen: private top-down specialisation of the taxonomies of the predictors."""

from __future__ import annotations

from .._validation import as_integer
from ..kernels.diffgen import diffgen, diffgen_parts
from .base import GridTransformer

__all__ = ["DiffGenTransformer"]


class DiffGenTransformer(GridTransformer):
    """Publish data for classification by private top-down specialisation (DiffGen).

    Starting from one cell, a node of a predictor's taxonomy is selected privately and replaced by
    its children, ``n_specializations`` times. The counts of the resulting grid are released.

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
    n_specializations : int, default=10
        Number of nodes that are specialised; the selections share half of epsilon equally.
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
        Epsilon and its parts: "grid", "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record. *Public*: domain, parameters. *Released*: grid and
    noisy counts. *Cost*: the selections share "grid" evenly, the counts cost "counts". The score
    of a node is the number of its records that have the majority label of their child. It rises by
    0 or 1 when a record is added; the paper assumes twice that range. The paper splits numbers at
    points that it selects privately; here numbers have a dyadic taxonomy.

    References
    ----------
    N. Mohammed, R. Chen, B. Fung, P. Yu, "Differentially private data release for data mining",
    KDD 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DiffGenTransformer, Numeric
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat([0, 1], 5_000)
    >>> release = DiffGenTransformer(
    ...     1.0, domain=Numeric(0, 1, bins=4), classes=[0, 1], n_specializations=2
    ... )
    >>> release.fit(X, y).histogram_.shape[-1]
    2
    """

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        classes=None,
        n_specializations=10,
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
        self.n_specializations = n_specializations
        self.encoding = encoding
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _check_parameters(self):
        super()._check_parameters()
        as_integer(self.n_specializations, "n_specializations", 1)

    def _parts(self, epsilon):
        return diffgen_parts(epsilon)

    def _choose(self, table, predictors, parts, source):
        axes, groups, labels = diffgen(
            table,
            predictors,
            parts["grid"],
            n_specializations=int(self.n_specializations),
            random_state=source,
        )
        return None, axes, groups, labels
