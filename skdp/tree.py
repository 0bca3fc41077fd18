"""Private decision trees: DiffPID3, DiffPC-4.5, and better than both; forests; released trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._models import Grouping, ModelOfClasses, ModelOfGroups
from ._validation import FloatArray, IntArray, as_integer, check_choice, check_flag
from .algorithms.trees import (
    ALGORITHMS,
    QUALITIES,
    TreeModel,
    binary_splits,
    fit_trees,
    one_split,
    tree_parts,
)
from .base import label_classes
from .mechanisms import discrete_laplace_variance

__all__ = [
    "PrivateDecisionTreeClassifier",
    "PrivateRandomForestClassifier",
    "ReleasedTree",
    "condition",
]

# --- a released decision tree: its conditions in words, as text

# Groups that a condition names before it says how many more there are.
_MOST_NAMED = 4


@dataclass(frozen=True, eq=False)
class ReleasedTree:
    """A decision tree whose splits and counts are released; reading it is free.

    Attributes
    ----------
    columns : tuple of str
    classes : ndarray of shape (n_classes,)
    groupings : tuple
        The public groups of the values of each column.
    model : TreeModel
        Nodes, noisy counts and shares; node 0 is the root.
    """

    columns: tuple[str, ...]
    classes: np.ndarray
    groupings: tuple[Grouping, ...]
    model: TreeModel

    def importances(self) -> FloatArray:
        """Decrease of the Gini impurity by the splits of each column; they sum to 1, or are all 0.

        Returns
        -------
        ndarray of shape (n_columns,)
            From released counts and shares.
        """
        model, found = self.model, np.zeros(len(self.columns))
        sizes = np.maximum(model.class_counts, 0.0).sum(axis=1)
        gini = 1.0 - (model.shares**2).sum(axis=1)
        for place, node in enumerate(model.nodes):
            if node is not None:
                children = np.unique(node.children)
                gain = sizes[children] @ (gini[place] - gini[children])
                found[node.column] += max(float(gain), 0.0)
        return found / (found.sum() or 1.0)

    def to_text(self, max_depth: int | None = None) -> str:
        """The tree as text, like scikit-learn's ``export_text``.

        Parameters
        ----------
        max_depth : int, default=None
            Deeper conditions are left out, and the nodes above them shown like leaves. None: all.

        Returns
        -------
        str
        """
        return "".join(f"{line}\n" for line in self._lines(0, 0, max_depth))

    def _lines(self, place: int, level: int, max_depth: int | None) -> Iterator[str]:
        node, indent = self.model.nodes[place], "|   " * level
        if node is None or level == max_depth:
            share = self.model.shares[place]
            best, size = (
                int(np.argmax(share)),
                max(float(self.model.class_counts[place].sum()), 0.0),
            )
            yield f"{indent}|--- {self.classes[best]} ({share[best]:.0%} of about {size:,.0f})"
            return
        for child in np.unique(node.children).tolist():
            here = np.flatnonzero(node.children == child)
            words = condition(self.columns[node.column], self.groupings[node.column], here)
            yield f"{indent}|--- {words}"
            yield from self._lines(child, level + 1, max_depth)


def condition(column: str, grouping: Grouping, groups: IntArray) -> str:
    """Which values of a column belong to some of its groups, in words.

    Parameters
    ----------
    column : str
    grouping : Grouping
    groups : ndarray of int
        Ascending.
    """
    chain = [] if grouping.chain is None else list(grouping.chain)
    places = sorted(chain.index(group) for group in groups.tolist() if group in chain)
    others = [grouping.labels[group] for group in groups.tolist() if group not in chain]
    run = bool(places) and places == list(range(places[0], places[-1] + 1))
    if run and grouping.edges is not None:
        low, high = places[0], places[-1] + 1
        words = _between(column, grouping, low, high, len(chain))
        return " or ".join([words, *others[:_MOST_NAMED]])
    ordered = [*(chain[place] for place in places), *np.setdiff1d(groups, chain).tolist()]
    names = [grouping.labels[group] for group in ordered]
    more = f" or {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{column} is {' or '.join(names[:_MOST_NAMED])}{more}"


def _between(column: str, grouping: Grouping, low: int, high: int, n_groups: int) -> str:
    """Numbers between two borders; dates by the labels of their bins, which say them in words."""
    assert grouping.edges is not None
    labels: Sequence[str] = [grouping.labels[group] for group in grouping.chain or []]
    start, end = (f"{grouping.edges[place]:.6g}" for place in (low, high))
    below = "<"
    if " to " in labels[0]:
        start, end, below = labels[low].split(" to ")[0], labels[high - 1].split(" to ")[-1], "<="
    if low == 0:
        return f"{column} {below} {end}" if high < n_groups else f"{column} is a number"
    return f"{column} >= {start}" if high == n_groups else f"{start} <= {column} {below} {end}"


# --- the estimator of a tree

# Levels of the published algorithms, as in the experiments of Friedman and Schuster, and the most
# of any.
_PUBLISHED_DEPTH, _MOST_DEPTH = 5, 16


@dataclass(eq=False, repr=False, kw_only=True)
class _ModelOfTrees(ModelOfGroups, ModelOfClasses):
    """Fitting and predicting; subclasses define how many trees there are."""

    quality: Any = None
    max_depth: Any = None
    max_groups: Any = 32

    def _link(self, domain, target):
        # Trees count the classes themselves: how many there are is all they need.
        _, class_of = super()._link(domain, target)
        return len(label_classes(domain, target)[0]), class_of

    def _release(self, records, columns, link, parts, source):
        settings = self._settings()
        menu = [_splits(grouping, settings.get("algorithm")) for grouping in columns.values()]
        models, totals = fit_trees(records, menu, link, parts, source, **settings)
        std = np.sqrt(link * discrete_laplace_variance(parts["total"]))
        return models, float(totals.sum()), std

    def _parts(self, epsilon):
        settings = self._settings()
        return tree_parts(epsilon, settings.get("algorithm", "auto"), settings["max_depth"])

    def _publish(self, models, columns):
        self.classes_ = self._declared_classes()
        names, groupings = tuple(columns), tuple(columns.values())
        trees = [ReleasedTree(names, self.classes_, groupings, model) for model in models]
        self.feature_importances_ = np.mean([tree.importances() for tree in trees], axis=0)
        self._keep(trees)

    def _keep(self, trees):
        """Set the trees."""
        self.trees_ = trees

    @property
    def _trees(self):
        return vars(self).get("trees_") or [vars(self)["tree_"]]

    def _settings(self, **more):
        """Checked parameters of the kernel; raises before anything is spent."""
        check_choice(self.quality, "quality", (None, *QUALITIES))
        published = more.get("algorithm", "auto") != "auto"
        quality, depth = ("max", _PUBLISHED_DEPTH) if published else ("clipped", None)
        if self.max_depth is not None:
            depth = as_integer(self.max_depth, "max_depth", 1)
            if depth > _MOST_DEPTH:
                raise ValueError(f"max_depth must be at most {_MOST_DEPTH}, got {depth}.")
        return {"quality": self.quality or quality, "max_depth": depth, **more}

    def predict_proba(self, X) -> np.ndarray:
        """Probability of each class.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Columns as in ``classes_``. A row whose value the domain cannot represent stays at the
            node that asks for it.
        """
        check_is_fitted(self)
        codes = self._codes(X, list(self._trees[0].columns))
        maps = [np.append(grouping.groups, -1) for grouping in self._trees[0].groupings]
        groups = np.stack(
            [each[column] for each, column in zip(maps, codes.T, strict=True)], axis=1
        )
        shares = (tree.model.shares[tree.model.reach(groups)] for tree in self._trees)
        return np.mean(list(shares), axis=0)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateDecisionTreeClassifier(_ModelOfTrees):
    """Decision tree with exact noise and pure epsilon: DiffPID3, DiffPC-4.5, and better than both.

    Level by level, each node is divided by the split that wins a private selection; the classes
    of the leaves are counted with noise. The tree can be printed.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute or pair is for all
        columns of an array.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label. Giving both this
        and ``target`` is an error.
    algorithm : {"auto", "id3", "c4.5"}, default="auto"
        "auto": splits in two, as many levels as pay, and shares of the classes that are drawn
        towards those of the node above where noise is large. "id3": DiffPID3, each column once on
        a path, divided into all its groups. "c4.5": DiffPC-4.5, ordered columns in two, as often
        as they win, and pruning by pessimistic errors. The published ones divide epsilon equally
        over the levels and divide a node only if its noisy count is large enough.
    quality : {"max", "gini", "clipped"}, default=None
        What a good split is: many records of the most frequent class of their child, a small Gini
        impurity, or the same with shares near 0 and 1 left out. None: "clipped" for "auto", "max"
        for the others.
    max_depth : int, default=None
        Most conditions on a path, from 1 to 16. None: "auto" decides by the released number of
        records; the others take 5.
    prune : bool, default=True
        Whether splits that do not pay are taken back; not with "id3".
    max_groups : int, default=32
        Most groups of an ordered column. Numbers are cut where released counts are about equal.
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
        only: no guarantee.

    Attributes
    ----------
    tree_ : ReleasedTree
        Conditions, noisy counts and shares; ``tree_.to_text()``.
    feature_importances_ : ndarray of shape (n_columns,)
        How much the splits of each column lower the Gini impurity, by the released counts.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted. They never come from ``y``.
    domain_ : Domain
        The domain, spelled out for every column, the label included.
    target_ : str
        The label's column in ``domain_``.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "groups" (counts of numbers with more than 32 bins), "total"
        (records of each class), "model".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record. *Public*: domain, parameters. *Released*: noisy numbers
    of records of the classes; for each node the winner of a noisy selection ("max": one record
    moves scores by 0 or 1; "gini" and "clipped": by at most 1 either way); the noisy counts of the
    classes in the leaves, and with the published algorithms of the nodes. *Cost*: the nodes of a
    level hold different records, so a level costs what one node costs; levels add up to epsilon.

    References
    ----------
    A. Friedman and A. Schuster, "Data mining with differential privacy", KDD 2010; D. Su,
    "Differentially private data publication for data analysis", Purdue 2016 (Algorithm 4).

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Numeric, PrivateDecisionTreeClassifier
    >>> X = np.repeat([[0.2, 0.3], [0.8, 0.7]], 5_000, axis=0)
    >>> y = np.repeat(["low", "high"], 5_000)
    >>> domain = Numeric(0, 1, bins=4)
    >>> model = PrivateDecisionTreeClassifier(domain=domain, classes=["low", "high"])
    >>> model.fit(X, y).predict([[0.8, 0.7]]).tolist()
    ['high']
    """

    algorithm: Any = "auto"
    prune: Any = True

    def _settings(self, **more):
        check_choice(self.algorithm, "algorithm", ALGORITHMS)
        check_flag(self.prune, "prune")
        return super()._settings(algorithm=self.algorithm, prune=self.prune, **more)

    @property
    def _cuts(self):  # type: ignore[override]
        # The published algorithms know nothing of released groups.
        return self.algorithm == "auto"

    def _keep(self, trees):
        (self.tree_,) = trees


def _splits(grouping, algorithm):
    """The splits of a column that an algorithm knows."""
    if algorithm == "id3" or (algorithm == "c4.5" and grouping.chain is None):
        return one_split(len(grouping.labels))
    return binary_splits(len(grouping.labels), grouping.chain)


# --- private random forests


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateRandomForestClassifier(_ModelOfTrees):
    """Mean of several private decision trees: exact noise, pure epsilon.

    Each tree is a `PrivateDecisionTreeClassifier` with ``algorithm="auto"``. The noise makes trees
    different from each other; their mean ranks rows a little better than one tree does, and is
    wrong about as often.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute or pair is for all
        columns of an array.
    target : str, default=None
        Column of the domain that is the label and takes ``y``.
    classes : array-like of shape (n_classes,), default=None
        The public list of labels, where the domain has no column for the label. Giving both this
        and ``target`` is an error.
    n_trees : int, default=2
        Number of trees. More than a few cost more than they bring: each tree has less to learn
        from.
    quality : {"max", "gini", "clipped"}, default=None
        See `PrivateDecisionTreeClassifier`. None: "clipped".
    max_depth : int, default=None
        Most conditions on a path, from 1 to 16. None: as many as pay, by the released number of
        records.
    max_groups : int, default=32
        Most groups of an ordered column. Numbers are cut where released counts are about equal.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
        Column of the data, not of the domain, that identifies the person a row belongs to. Rows
        without a value in it are skipped.
    ledger : PrivacyLedger, default=None
        Privacy budget of the data set, charged before any value is read.
    random_state : int or None, default=None
        Seed of the noise. None: the operating system's random source. An int is
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
        Epsilon and its parts: "groups" (counts of numbers with more than 32 bins), "total"
        (records of each class), "model".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record. *Public*: domain, parameters. *Released*: noisy numbers
    of records of the classes, and the trees. *Cost*: all trees see all records, so they add up.

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

    n_trees: Any = 2

    def _settings(self, **more):
        return super()._settings(n_trees=as_integer(self.n_trees, "n_trees", 1), **more)
