"""Marginals: single columns and privately selected sets of columns, in one release.

Sets of columns are chosen and measured, as AIM, MST and PrivSyn do under guarantees with a delta;
here everything is pure epsilon-DP, and answers follow from what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from .._random import warn_after_charge
from .._validation import as_integer, check_choice, is_word
from ..exceptions import DomainError
from ..kernels.views import PLANS, Asked, Rules, measured_views, most_groups, used_attributes
from ..release import Synopsis
from .base import Synthesizer
from .priors import as_prior
from .workloads import as_workload, means_of, used_sets

__all__ = ["MarginalSynthesizer"]

# A wider table is hardly ever above the noise, and there are too many of them to choose among.
_MOST_COLUMNS = 4
# Share of epsilon for the number of records, with one column and with more.
_TOTAL_OF_ONE, _TOTAL = Fraction(5, 100), Fraction(2, 100)
# The least part of a budget, for each column. A part is divided further, into a few thousandths at
# least; noise of a rate below 2**-50 does not fit into 64-bit integers.
_LEAST_PART = Fraction(1, 10**12)


class MarginalSynthesizer(Synthesizer):
    """Private counts of single columns and of privately chosen sets of columns, in one release.

    It measures the total, every column, coarse tables of all pairs, and finer tables of sets of
    two and more columns, which it chooses where they tell most beyond what is known. The more
    records and epsilon, the more sets, and the finer their tables. A query on any columns is
    answered from weighted rows, corrected by everything measured, with an error bar of its own;
    synthetic rows are drawn from the weighted ones.

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
        Column of the domain that takes ``y``, to be predicted from the others. All pairs with it
        are measured first, then one table of it and the columns that tell most of it, in groups;
        sets without it count half. It changes nothing for a workload of sets.
    max_order : int, default=3
        Largest number of columns in a chosen set, 1 to 4. A number above the number of columns
        allows the set of all columns. 1 measures single columns only, which are then independent
        of each other.
    workload : {"all", "ranges", "cells"} or dict, default="all"
        Queries that the release shall serve. "ranges" gives single columns more of the budget,
        "cells" less than "all". A dict names the only sets that may be chosen, as tuples of at
        most ``max_order`` column names, with weights in (0, 1] by which their scores count, such
        as ``{("age", "sex"): 1, ("age", "pay"): 0.5}``. Tables of more than 2**22 cells, with at
        most 128 groups of codes a column (512 if there are two columns), are refused. The key
        "means", as in ``{"means": {"pay": ["sex", "region"]}}``, measures the sum of a numeric
        column for each value of the others, so that its means by these are as accurate as they can
        be; alone, it leaves the other queries as for "all". The workload is public.
    plan : {"adaptive", "mst", "aim"}, default="adaptive"
        How sets are chosen and what they cost. "mst" and "aim" are the plans of two papers, for
        comparisons: a spanning tree of pairs [3]_, whatever ``max_order`` is, and one set a round
        with costs that grow where a set told nothing new [1]_, among the sets of ``max_order``
        columns, or those of a workload, and the sets within them. Noise, answers and rows are the
        same. A target is a column like the others, and ``workload`` is "all" (or a dict, for
        "aim").
    prior : PublicTable or Synopsis, default=None
        What is known of the table beforehand, with the columns of the domain: rows that are public,
        such as ``PublicTable(last_year)``, or a release, of these records or of others, which costs
        nothing more. Rows then start from the prior instead of independent columns, and sets are
        chosen where it is wrong, as long as the noisy tables are clearly nearer to it: a good prior
        makes a small ``epsilon`` useful, a bad one costs little. Its rows that do not fit the
        domain are left out, with a warning; of more than 100,000 some are taken. Needs
        ``plan="adaptive"`` and ``max_order`` above 1.
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
    verbose : int, default=0
        Print the steps of a fit to standard error, with numbers that are public or released.

    Attributes
    ----------
    synopsis_ : Synopsis
        The release: noisy counts and their variances, and weighted rows. Everything computed from
        it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "skipped", "total" (the number of records) and "views"
        (everything else; ``synopsis_.model.budget`` says how it was divided).
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Only where the rows had column names.

    Warns
    -----
    UserWarning
        If a column has more codes than tables of several columns distinguish (128; 512 if there
        are two columns). Counts of the column alone keep all codes.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain and
    parameters. *Released*: a noisy number of records, noisy sums of a number by group where
    ``workload`` asks for means, and noisy counts of the blocks of every level of each column's
    tree; then either the joint counts of all columns that reach a threshold (at an epsilon above
    5), or one noisy table of all columns (where there are few cells for the number of records), or
    noisy coarse tables of all pairs (where there is enough signal; with a target noisy tables of
    its pairs, and one of it and several columns), which sets of columns were selected, and a noisy
    table of groups of codes for each of them. *Cost*: a record changes the number of records by
    one, one sum by at most half the range of the number (values count from its middle), one block
    of each level by one, one cell of each table and of the joint counts by one, and every score of
    a set by at most its weight, up or down. These are measured one after the other, and their
    budgets add up to epsilon. Budgets, groups and candidate sets follow from public facts and
    earlier releases. Rows, answers and error bars are computed from what was released.

    A *prior* is public or released already, and is compared with released tables only: nothing
    more is charged. It changes rows, and the answers where nothing was measured; what was measured
    corrects them as before. The measurements of a release are not averaged in, also if it is one of
    the same records: it is a prior, whose ledger was charged when it was made. The release and the
    guarantees of its answers name the prior by a SHA-256 of its coded rows, or of the synopsis.

    Answers are nearly unbiased and may be negative; intervals of counts end at 0. The part of their
    variance that is noise follows from its known law. The part for what was not measured (columns
    that were not measured together, groups and bins that a query cuts) is estimated; ``guarantee``
    of an answer says the shares.

    Choosing sets of columns where a model fits worst, and measuring them, is what AIM [1]_ does;
    rows that are moved until they agree with noisy marginals are known from PrivSyn [2]_. Both have
    guarantees with a delta. This release is pure epsilon-DP, and its noise is drawn exactly and as
    integers.

    References
    ----------
    .. [1] R. McKenna, B. Mullins, D. Sheldon and G. Miklau. AIM: an adaptive and iterative
       mechanism for differentially private synthetic data. PVLDB 15(11), 2022.
    .. [2] Z. Zhang, T. Wang, N. Li, J. Honorio, M. Backes, S. He, J. Chen and Y. Zhang. PrivSyn:
       differentially private data synthesis. USENIX Security, 2021.
    .. [3] R. McKenna, G. Miklau and D. Sheldon. Winning the NIST contest: a scalable and general
       approach to differentially private synthetic data. Journal of Privacy and Confidentiality
       11(3), 2021.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import Categorical, Domain, MarginalSynthesizer, Numeric
    >>> domain = Domain({
    ...     "age": Numeric(18, 90, bins=12),
    ...     "sex": Categorical(["F", "M"]),
    ...     "work": Categorical(["none", "part", "full"]),
    ... })
    >>> people = pd.DataFrame({
    ...     "age": [30, 41, 52, 65] * 500,
    ...     "sex": ["F", "M"] * 1000,
    ...     "work": ["part", "full", "full", "none"] * 500,
    ... })
    >>> view = MarginalSynthesizer(epsilon=1.0, domain=domain).fit(people)
    >>> bool(view.count("age >= 60 and work == 'none'") > 300)
    True
    >>> list(view.sample(5).columns)
    ['age', 'sex', 'work']
    """

    _honours_zeros = True

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        max_order=3,
        workload="all",
        plan="adaptive",
        prior=None,
        max_contributions=None,
        unit=None,
        on_loss="warn",
        ledger=None,
        random_state=None,
        verbose=0,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.max_order = max_order
        self.workload = workload
        self.plan = plan
        self.prior = prior
        self.max_contributions = max_contributions
        self.unit = unit
        self.on_loss = on_loss
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    # Groups of codes are chosen by what was released of single columns.
    _most_bins = None

    def _parts(self, epsilon, domain):
        self._wanted(domain)
        as_prior(self.prior, domain, warn=True)
        zeros = domain.structure.zeros
        if zeros and Rules.of(domain.shape, zeros) is None:
            raise DomainError(
                "No record that satisfies all rules of the domain was found, in a search of "
                "limited length. Leave out rules, or give domain.without_structure()."
            )
        used = len(used_attributes(domain.shape))
        total = epsilon * (_TOTAL if used > 1 else _TOTAL_OF_ONE)
        parts = {"total": total, "views": epsilon - total}
        if parts["total"] < _LEAST_PART * max(used, 1):
            raise ValueError(
                f"The part 'total' of epsilon is {float(total):.3g} for one row, which is too "
                f"little to be divided: noise would not fit into 64-bit integers. Use a larger "
                f"epsilon; with {used} columns every part needs {float(_LEAST_PART * used):.3g}."
            )
        return parts

    def _together(self, domain):
        return ()

    def _release(self, table, domain, loss, source):
        max_order, workload = self._wanted(domain)
        mechanism = "marginals" if self.plan == "adaptive" else f"marginals, plan {self.plan}"
        most = most_groups(domain.shape, max_order)
        # The fine bins of "auto" are meant to be joined.
        coarse = [
            i
            for i in used_attributes(domain.shape)
            if domain.shape[i] > most and not getattr(domain.attributes[i], "auto", False)
        ]
        if coarse:
            names = ", ".join(repr(domain.names[axis]) for axis in coarse)
            mechanism += f"; tables of several columns tell groups of codes apart in {names}"
            warn_after_charge(
                f"Tables of several columns do not tell all codes of {names} apart. A column has "
                f"at most {most} groups in them, with about equal numbers of records. "
                "Declare fewer bins or categories to choose the groups yourself."
            )
        asked = Asked(
            [attribute.order() for attribute in domain.attributes],
            label=None if self.target is None else domain.index(self.target),
            zeros=domain.structure.zeros,
            max_order=max_order,
            workload=workload,
            means=means_of(self.workload, domain),
            plan=self.plan,
            prior=as_prior(self.prior, domain),
            progress=self._progress,
            n_values=[getattr(each, "bins", each.n_values) for each in domain.attributes],
        )
        model = measured_views(table, loss.parts, asked, random_state=source)
        if asked.prior is not None:
            mechanism += (
                f"; prior: {asked.prior.name}, {'' if model.prior else 'not '}used for rows"
            )
        return Synopsis(domain, model, privacy_loss=loss, mechanism=mechanism)

    def _wanted(self, domain):
        """The largest number of columns in a set, and the workload by positions of columns."""
        meaning = f"the largest number of columns in a set, from 1 to {_MOST_COLUMNS}."
        order = as_integer(self.max_order, "max_order", 1, meaning=meaning)
        if order > _MOST_COLUMNS:
            raise ValueError(
                f"max_order must be at most {_MOST_COLUMNS}, got {self.max_order!r}: {meaning} "
                "Wider tables are hardly ever above the noise; wider queries are answered anyway."
            )
        workload = used_sets(as_workload(self.workload, domain, order), domain.shape)
        means_of(self.workload, domain)
        self._check_plan(order)
        return min(order, len(domain.shape)), workload

    def _check_plan(self, order):
        """Refuse what the plan of a paper has no place for."""
        check_choice(self.plan, "plan", PLANS)
        if self.prior is not None and (self.plan != "adaptive" or order == 1):
            reason = f"plan={self.plan!r}" if self.plan != "adaptive" else "max_order=1"
            raise ValueError(
                f"{reason} has no place for a prior: whether it is used is decided by tables of "
                "several columns that plan='adaptive' measures. Give prior=None, or that plan with "
                "max_order of at least 2."
            )
        if self.plan == "adaptive":
            return
        if order == 1:
            raise ValueError(
                f"max_order=1 allows no sets of columns, which plan={self.plan!r} measures. Give "
                "at least 2, or plan='adaptive'."
            )
        sets = isinstance(self.workload, Mapping)
        if not is_word(self.workload, "all") and not (sets and self.plan == "aim"):
            given = "a dict" if sets else repr(self.workload)
            raise ValueError(
                f"workload must be 'all'{' or a dict' * (self.plan == 'aim')} with "
                f"plan={self.plan!r}, got {given}: the plan says what is measured."
            )
