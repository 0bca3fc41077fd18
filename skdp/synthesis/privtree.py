"""PrivTree: halve boxes while their number of records looks positive under noise."""

from __future__ import annotations

from ..kernels.privtree import privtree, privtree_parts
from ..release import AnySpread, Boxes, BoxModel, Synopsis
from .base import Synthesizer

__all__ = ["PrivTreeSynthesizer"]


class PrivTreeSynthesizer(Synthesizer):
    """Private boxes that are halved where there are many records (PrivTree).

    Starting from the whole domain, a box is divided while its noisy number of records, minus a bias
    that grows with the depth, is positive. A box is halved in the middle along some columns, which
    take turns. Each final box gets a noisy count. It works best on two or three dense columns.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``: half for the tree, half for the counts.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``.
    split_attributes : int, default=None
        Columns halved at a time, at most 10: a box is divided into ``2**split_attributes`` parts.
        None: all columns, but at most 6. The paper halves all columns at once, which makes very
        many empty boxes in a wide table.
    calibration : {"tight", "paper"}, default="tight"
        How the noise of the tests is scaled: "tight" by their exact worst case on a path, "paper"
        by the published formula. Both are epsilon-DP.
    max_contributions : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``unit``. None: epsilon protects one row.
    unit : str, default=None
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
        on_loss="warn",
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
        self.on_loss = on_loss
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
        boxes = Boxes(view.lower, view.upper)
        model = BoxModel(boxes, view.counts, domain.shape, AnySpread(loss.parts["counts"]))
        mechanism = (
            f"PrivTree, {view.parameters.n_split} columns at a time, "
            f"calibration={self.calibration!r}"
        )
        return Synopsis(domain, model, privacy_loss=loss, mechanism=mechanism)
