"""HDPView: bisect blocks of cells while they look uneven under noise."""

from __future__ import annotations

from .._validation import is_word
from ..kernels.hdpview import hdpview, hdpview_parts, published
from ..release import BoundedSpread, Boxes, BoxModel, Synopsis
from .base import Synthesizer

__all__ = ["HDPViewSynthesizer"]


class HDPViewSynthesizer(Synthesizer):
    """Private materialised view of a wide table by recursive bisection (HDPView).

    Starting from the whole domain, a block of cells is bisected while its noisy aggregation error
    (the sum over its cells of the distance to the mean count) is large. A noisy maximum picks the
    cut among all cuts of all columns. Each final block gets a noisy count; range queries are
    answered as if counts were spread evenly inside blocks.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``.
    calibration : {"tight", "paper"}, default="tight"
        "tight" uses the exact worst case of the converge tests and its own floor, and cuts where
        the two sides differ most. "paper" uses the formulas of the paper, with the four parameters
        below, and cuts where the remaining aggregation error is least. Both are epsilon-DP. With
        epsilon above about 2.7 the paper's constants split every block; a large domain then raises
        an error before anything is spent.
    ratio : float, default=0.9
        For "paper": share of epsilon for finding the blocks; the rest is for their counts.
    gamma : float, default=0.9
        For "paper": share of that for the tests whether to stop; the rest is for choosing cuts.
    alpha : float, default=1.6
        For "paper": the bias for each level is log(alpha) times the noise scale of a test, and the
        noise scale is in proportion to (3 alpha - 2) / (alpha - 1). From 1.01 to 1000.
    beta : float, default=1.2
        For "paper": cuts are chosen privately on the first beta log2(number of cells) levels, at
        least one, and drawn at random below. From 0.01 to 100.
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
        The release: blocks and noisy counts. Everything computed from it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "skipped", "converge" (when to stop), "cut" (where to cut), "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain,
    parameters, number of private cuts on a path. *Released*: blocks and noisy counts, nothing
    else. *Cost*: the tests along one path lose at most the part "converge" whatever their number
    (a bias makes the tested error fall with depth); the private cuts of a path and the count of its
    leaf lose at most "cut" and "counts" together: with ``calibration="tight"`` the count gets what
    a path of few cuts left. A record lies on one path, so the parts add up to epsilon. The paper
    adds its noise to floats, scores cuts with half of the sensitivity budget unused and bounds
    errors by a theorem whose proof has wrong steps; see the pages on theory.

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
        ratio=0.9,
        gamma=0.9,
        alpha=1.6,
        beta=1.2,
        max_contributions=None,
        unit=None,
        on_loss="warn",
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.calibration = calibration
        self.ratio = ratio
        self.gamma = gamma
        self.alpha = alpha
        self.beta = beta
        self.max_contributions = max_contributions
        self.unit = unit
        self.on_loss = on_loss
        self.ledger = ledger
        self.random_state = random_state

    def _parts(self, epsilon, domain):
        return hdpview_parts(epsilon, domain.shape, calibration=self._rule())

    def _rule(self):
        """The calibration as the kernel takes it; parameters are checked even where unused."""
        paper = published(self.alpha, self.beta, self.gamma, self.ratio)
        return paper if is_word(self.calibration, "paper") else self.calibration

    def _release(self, table, domain, loss, source):
        view = hdpview(table, loss.parts, calibration=self._rule(), random_state=source)
        boxes = Boxes(view.lower, view.upper)
        epsilon = view.epsilon if len(set(view.epsilon)) > 1 else view.epsilon[0]
        intervals = BoundedSpread(epsilon, view.leaf_errors())
        return Synopsis(
            domain,
            BoxModel(boxes, view.counts, domain.shape, intervals),
            privacy_loss=loss,
            mechanism=f"HDPView, calibration={self.calibration!r}",
        )
