"""DPCube: a kd-tree on noisy cells, or on the records a level at a time; or every cell."""

from __future__ import annotations

from .._validation import as_between, check_choice, split_epsilon
from ..kernels.dpcube import (
    hierarchical_kdtree,
    hierarchical_parts,
    two_step_kdtree,
    two_step_parts,
)
from ..release import AnySpread, Boxes, BoxModel, Synopsis
from .base import Synthesizer, cells_synopsis, check_n_cells

__all__ = ["KDTreeSynthesizer"]


# Strategies that spend epsilon level by level.
_LEVEL_BY_LEVEL = ("hierarchical", "range-tree")


class KDTreeSynthesizer(Synthesizer):
    """Private boxes of a kd-tree (DPCube), or the cells of the domain one by one.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
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
    noise_correction : bool, default=True
        For "two-step": subtract from H what the noise of the cells adds to it. False compares as
        published; then every box of many cells looks uneven.
    unevenness : {"deviation", "entropy"}, default="deviation"
        For "two-step": "entropy" makes H the sum of count log(count / mean count) over the cells,
        the number of records times what the entropy of the box lacks to that of an even one.
    cell_share : float, default=0.5
        For "two-step": share of epsilon for the cells, from 0.001 to 0.999.
    height : int, default=None
        For "hierarchical" and "range-tree": number of levels, at most 16. None: 12, or fewer in a
        small domain.
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
    nothing. The paper discards the cells once the tree is grown, and also the counts that found
    the medians; here the count of a box is estimated from everything that was measured.
    Intervals cover the noise and any spread of the records inside boxes that a query cuts. They
    use the last counts alone, because the boxes depend on the noise of the others.

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
        unevenness="deviation",
        cell_share=0.5,
        height=None,
        max_contributions=None,
        unit=None,
        on_loss="warn",
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
        self.unevenness = unevenness
        self.cell_share = cell_share
        self.height = height
        self.max_contributions = max_contributions
        self.unit = unit
        self.on_loss = on_loss
        self.ledger = ledger
        self.random_state = random_state

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
            return cells_synopsis(table, domain, domain.shape, "cells", loss, source, mechanism)
        if self.strategy in _LEVEL_BY_LEVEL:
            middle = self.strategy == "range-tree"
            view = hierarchical_kdtree(table, loss.parts, middle=middle, random_state=source)
        else:
            view = two_step_kdtree(
                table,
                loss.parts,
                xi0=self.xi0,
                xi1=self.xi1,
                noise_correction=bool(self.noise_correction),
                unevenness=self.unevenness,
                random_state=source,
            )
        boxes = Boxes(view.lower, view.upper)
        intervals = AnySpread(view.epsilon, view.measured)
        model = BoxModel(boxes, view.counts, domain.shape, intervals)
        return Synopsis(domain, model, privacy_loss=loss, mechanism=mechanism)
