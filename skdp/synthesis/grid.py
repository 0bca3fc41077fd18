"""UG and related rules: every column cut into equal parts, and a noisy count of each box."""

from __future__ import annotations

import math
import numbers

from .._validation import is_word, split_epsilon
from ..kernels.dpcube import MOST_CELLS
from ..kernels.grid import GRID_RULES, as_theta, grid_sides, grid_size
from ..mechanisms import discrete_laplace
from .base import Synthesizer, cells_synopsis, check_n_cells

__all__ = ["GridSynthesizer"]


# Share of epsilon for the number of records, where the size of a grid depends on it.
_TOTAL_SHARE = 0.02


class GridSynthesizer(Synthesizer):
    """Private counts over a grid: every column is cut into parts of equal width.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
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

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        rule="extended",
        theta=10,
        max_contributions=None,
        unit=None,
        on_loss="warn",
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.rule = rule
        self.theta = theta
        self.max_contributions = max_contributions
        self.unit = unit
        self.on_loss = on_loss
        self.ledger = ledger
        self.random_state = random_state

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
        mechanism = f"grid, rule={self.rule!r}"
        return cells_synopsis(table, domain, sides, "counts", loss, source, mechanism)

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
