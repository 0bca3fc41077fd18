"""Private random forests: trees on records of their own, or all trees on all records."""

from __future__ import annotations

import numpy as np

from .._validation import as_between, as_integer, check_choice
from ..kernels.trees import binary_splits, fit_forest, forest_parts
from .tree import ModelOfTrees, tree_settings

__all__ = ["PrivateRandomForestClassifier"]


class PrivateRandomForestClassifier(ModelOfTrees):
    """Mean of several private decision trees: exact noise, pure epsilon.

    Each tree is a `PrivateDecisionTreeClassifier` with ``algorithm="auto"``. The noise makes trees
    different from each other; their mean ranks rows a little better than one tree does, and is
    wrong about as often.

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
    n_trees : int, default=2
        Number of trees. More than a few cost more than they bring: each tree has less to learn
        from.
    rows : {"shared", "apart"}, default="shared"
        "shared": all trees see all records, at an equal share of epsilon. "apart": each record is
        in one tree, which its own secret coin draws, and each tree has all of epsilon.
    max_features : float, default=1.0
        Share of the columns that each tree may use, drawn in public; above 0, at most 1.
    quality : {"max", "gini", "clipped", "information"}, default=None
        See `PrivateDecisionTreeClassifier`. None: "clipped".
    max_depth : int, default=None
        Most conditions on a path, from 1 to 16. None: as many as pay, by the released number of
        records.
    max_groups : int, default=32
        Ordered columns are merged into at most so many equal parts.
    max_contributions : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``unit``. None: epsilon protects one row.
    unit : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise and of the coins. None: the operating system's random source. An int is
        for experiments only: no guarantee.

    Attributes
    ----------
    trees_ : list of ReleasedTree
        Conditions, noisy counts and shares of each tree.
    feature_importances_ : ndarray of shape (n_columns,)
        How much the splits of each column lower the Gini impurity, by the released counts; mean
        over the trees.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted. They never come from ``y``.
    domain_ : Domain
        The domain, spelled out for every column, the label included.
    target_ : str
        The label's column in ``domain_``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "total" (records of each class), "model".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record. *Public*: domain, parameters. *Released*: noisy numbers
    of records of the classes, and the trees. *Cost*: "shared" trees add up; trees on records
    "apart" compose in parallel, since the coin of a record does not depend on other records, as a
    division by position or into equal blocks would. The rows of a person draw each for itself:
    every one costs its share of epsilon in the one tree that holds it.

    References
    ----------
    A. Friedman and A. Schuster, "Data mining with differential privacy", KDD 2010 (the trees).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivateRandomForestClassifier
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> domain = Numeric(0, 1, bins=4)
    >>> model = PrivateRandomForestClassifier(domain=domain, classes=["low", "high"])
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
        n_trees=2,
        rows="shared",
        max_features=1.0,
        quality=None,
        max_depth=None,
        max_groups=32,
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.classes = classes
        self.n_trees = n_trees
        self.rows = rows
        self.max_features = max_features
        self.quality = quality
        self.max_depth = max_depth
        self.max_groups = max_groups
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _settings(self):
        settings = tree_settings(self.quality or "clipped", self.max_depth)
        check_choice(self.rows, "rows", ("shared", "apart"))
        n_trees = as_integer(self.n_trees, "n_trees", 1)
        max_features = float(as_between(self.max_features, "max_features", 1e-9, 1))
        return {**settings, "n_trees": n_trees, "rows": self.rows, "max_features": max_features}

    def _parts(self):
        return forest_parts(self._record_epsilon())

    def _learn_trees(self, records, groupings, n_classes, parts, source):
        menu = [binary_splits(len(each.labels), each.chain) for each in groupings]
        return fit_forest(records, menu, n_classes, parts, source, **self._settings())

    def _keep(self, trees):
        self.trees_ = trees
        self.feature_importances_ = np.mean([tree.importances() for tree in trees], axis=0)

    def _trees(self):
        return self.trees_
