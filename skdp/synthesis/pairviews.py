"""Pair views: single columns and privately selected pairs, joined into one model."""

from __future__ import annotations

from ..kernels.pairviews import pair_views
from .views import ViewSynthesizer

__all__ = ["PairViewSynthesizer"]


class PairViewSynthesizer(ViewSynthesizer):
    """Private views of single columns and of privately chosen pairs, joined into one model.

    It measures the total, every single column, and the pairs of columns that are farthest from
    independence. Pair tables consist of boxes that are smaller where there are more records. The
    pairs form a forest that answers queries on any number of columns and yields synthetic rows;
    where the budget allows, further pairs are measured and a sample of the forest is weighted to
    agree with them. Start with this release for anything from two to a hundred columns.

    Rules of the domain (``structure=``) are honoured: what they forbid has the count 0, and no
    synthetic row breaks one. Records that break a rule are skipped.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``. The records of each class are then measured
        separately, which gives the best training sets; counts over all classes have more noise.
        If the column has more than 20 codes, all selected pairs contain it instead.
    error_share : float, default=0.05
        Share of epsilon for error bars; 0 releases none.
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
    synopsis_ : Synopsis
        The release: views and a quantile of their errors. Everything computed from it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "total" (the number of records), "views" (single columns, selection
        of pairs, pairs; ``synopsis_.model.budget`` says how it was divided), "errors".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Warns
    -----
    UserWarning
        If a column has more codes than pair tables distinguish (512; 2,048 if there are two
        columns). The view of the column alone keeps all codes.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain
    and parameters. *Released*: a noisy total, noisy views, which pairs were selected, and one noisy
    quantile of the errors. *Cost*: a record changes the total by one, one cell of each view of
    one column, one box per level of each pair view, every score of a pair by one up or down, and
    every error by one; these are measured one after the other and their budgets add up to epsilon.

    Unordered categories are cut in the order of the taxonomy, or of their released frequencies.
    Intervals of ``count`` come from the published quantile of the errors of 2,000 random queries
    on two columns: on average over such queries they cover noise and misfit of the model
    together. See the user guide.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import Categorical, Domain, Numeric, PairViewSynthesizer
    >>> domain = Domain({"age": Numeric(18, 90, integer=True), "sex": Categorical(["F", "M"])})
    >>> people = pd.DataFrame({"age": [30, 41, 52, 35] * 500, "sex": ["F", "M"] * 1000})
    >>> view = PairViewSynthesizer(epsilon=1.0, domain=domain).fit(people)
    >>> answer = view.count({"age": (30, 45), "sex": "F"}, return_interval=True)
    >>> answer.lower < answer.value < answer.upper
    True
    >>> list(view.sample(5).columns)
    ['age', 'sex']
    """

    _mechanism = "pair views"
    _tables = "pair tables"

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        error_share=0.05,
        max_contributions=None,
        unit=None,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.error_share = error_share
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def _measure(self, table, domain, parts, **known):
        return pair_views(table, parts, **known)
