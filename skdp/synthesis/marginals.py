"""Marginals: single columns and privately selected sets of columns, in one release.

Sets of columns are chosen and measured, as AIM, MST and PrivSyn do under guarantees with a delta;
here everything is pure epsilon-DP, and answers follow from what was measured.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from .._random import caller_level, sampling_generator
from .._validation import CodeArray, as_fraction, as_integer, check_choice, used_attributes
from ..algorithms.marginals import TUNING, Asked, Prior, measured_views, most_groups
from ..domain import Domain
from ..exceptions import DomainError
from ..release import Synopsis
from ..tables import PublicTable
from .base import Synthesizer

__all__ = ["as_prior", "as_workload", "MarginalSynthesizer"]

# --- what a prior may be, and its codes: public rows, or rows of a release

# Most rows of a prior: more tell a sample of them nothing that noise leaves visible.
_MOST_ROWS = 100_000


def as_prior(prior: Any, domain: Domain, *, warn: bool = False) -> Prior | None:
    """Check a prior and encode its rows.

    Parameters
    ----------
    prior : PublicTable, Synopsis or None
    domain : Domain
        Of the records.
    warn : bool, default=False
        Whether to warn about rows that are left out.

    Raises
    ------
    DomainError
        If columns or types are others than in the domain, or the columns of a synopsis have other
        codes.
    TypeError
        If it is neither: an unwrapped table too.
    ValueError
        If it has no row that fits the domain.
    """
    if prior is None:
        return None
    if isinstance(prior, PublicTable):
        codes = _codes_of_table(prior, domain)
        kind = "public rows"
    elif isinstance(prior, Synopsis):
        codes = _codes_of_synopsis(prior, domain)
        kind = "a release"
    else:
        raise TypeError(
            f"prior must be a Synopsis or a PublicTable, got {type(prior).__name__}. Rows are not "
            "protected at all as a prior: if they are public, say so with "
            "prior=PublicTable(frame); if they are private, release them first and give the "
            "synopsis_ of that release."
        )
    fits = (codes >= 0).all(axis=1) & ~domain.structure.zeros.breaks(np.maximum(codes, 0))
    n_out = len(codes) - int(fits.sum())
    if n_out == len(codes):
        raise ValueError(
            f"None of the {len(codes):,} rows of the prior fits the domain and its rules. "
            "Domain.check(rows) says why; or leave the prior out: prior=None."
        )
    if warn and n_out:
        warnings.warn(
            f"{n_out:,} of {len(codes):,} rows of the prior do not fit the domain or break its "
            "rules, and are left out.",
            UserWarning,
            stacklevel=caller_level(),
        )
    return Prior.of(codes[fits], kind)


def _codes_of_table(prior: PublicTable, domain: Domain) -> CodeArray:
    try:
        rows = domain.check_schema(prior.frame)
    except DomainError as error:
        raise DomainError(f"The prior does not have the columns of the domain. {error}") from None
    codes = domain.plain(domain.names).encode_columns(rows)
    if len(codes) > _MOST_ROWS:
        # Evenly spread: the rows may be sorted.
        codes = codes[np.linspace(0, len(codes) - 1, _MOST_ROWS).astype(np.int64)]
    return codes


def _codes_of_synopsis(prior: Synopsis, domain: Domain) -> CodeArray:
    theirs = prior.counted
    both = {*domain.names} & {*theirs.names}
    other = sorted({*domain.names, *theirs.names} - both)
    other += [name for name in domain.names if name in both and theirs[name] != domain[name]]
    if other:
        raise DomainError(
            "The prior is a release of other columns: only one of both has, or both declare "
            f"otherwise, {other[:5]}{' and more' if len(other) > 5 else ''}. Declare the same "
            "ranges, bins and categories as that release, or draw rows from it, which are public, "
            "and give prior=PublicTable(release.sample())."
        )
    number = min(max(round(prior.total), 0), _MOST_ROWS)
    # A fixed seed draws no noise: the same release is the same prior.
    codes = prior.sample_codes(number, sampling_generator(0))
    return codes[:, [theirs.index(name) for name in domain.names]]


# --- which queries a release of views is planned for, as the user says it

_WORDS = ("all", "ranges", "cells")
# Cells of the largest table that a set may have, with its columns in groups.
_MOST_CELLS = 2**22


def as_workload(
    workload: Any, domain: Domain, max_order: int
) -> str | dict[tuple[int, ...], Fraction]:
    """Check a workload and find the columns of its sets.

    Parameters
    ----------
    workload : {"all", "ranges", "cells"} or dict
        Sets of column names, as tuples or frozensets, with weights in (0, 1].
    domain : Domain
    max_order : int
        Largest number of columns of a set.

    Returns
    -------
    str or dict of tuple of int to Fraction
        The word as it is, or the weights of the sets, each as the ascending positions of its
        columns.

    Raises
    ------
    DomainError
        If a column is not declared, or not measured.
    TypeError, ValueError
        If it is another word or no dict; if there is no set; if a set is empty, has more than
        ``max_order`` columns, names a column twice, or has a table of more than 2**22 cells (with
        at most 128 groups of codes a column); if two sets have the same columns; if a
        weight is not a number in (0, 1].
    """
    if isinstance(workload, str):
        check_choice(workload, "workload", _WORDS)
        return workload
    if not isinstance(workload, Mapping):
        raise TypeError(
            "workload must be 'all', 'ranges', 'cells', or a dict from sets of columns to weights "
            "such as {('age', 'sex'): 1}, "
            f"got {workload!r} of type {type(workload).__name__}."
        )
    if not workload:
        raise ValueError(
            "workload has no set of columns. Name at least one, or give 'all' for every query."
        )
    weights: dict[tuple[int, ...], Fraction] = {}
    for columns, weight in workload.items():
        axes = _axes(columns, domain, max_order)
        if axes in weights:
            names = tuple(domain.names[axis] for axis in axes)
            raise ValueError(f"workload has the set of columns {names} twice. Give it one weight.")
        weights[axes] = _weight(weight, columns)
    return weights


def _axes(columns: Any, domain: Domain, max_order: int) -> tuple[int, ...]:
    """Ascending positions of the columns of a set."""
    if not isinstance(columns, tuple | frozenset):
        raise TypeError(
            f"The sets of workload are tuples of column names, got {columns!r} of type "
            f"{type(columns).__name__}. A single column is written ('age',)."
        )
    if not columns:
        raise ValueError("workload has an empty set. The number of records is always released.")
    axes = tuple(sorted(domain.index(name) for name in columns))
    if len(set(axes)) < len(axes):
        raise ValueError(f"A column is named twice in the set {columns!r} of workload.")
    if len(axes) > max_order:
        raise ValueError(
            f"The set {columns!r} of workload has {len(axes)} columns, and max_order={max_order} "
            "allows fewer. Raise max_order (at most 4), or name smaller sets."
        )
    sizes = _group_sizes(domain)
    most = most_groups(sizes, max_order)
    cells = math.prod(min(sizes[axis], most) for axis in axes)
    if cells > _MOST_CELLS:
        raise ValueError(
            f"The set {columns!r} of workload has a table of {cells:,} cells, more than "
            f"{_MOST_CELLS:,}, which would not fit into memory. Name smaller sets, or declare "
            "fewer bins or categories."
        )
    return axes


def _group_sizes(domain: Domain) -> tuple[int, ...]:
    """Number of the groups of each column that tables of several columns may tell apart."""
    return tuple(each.declared.size for each in domain.attributes)


def _weight(weight: Any, columns: Any) -> Fraction:
    name = f"The weight of {columns!r} in workload"
    found = as_fraction(weight, name)
    if not 0 < found <= 1:
        raise ValueError(
            f"{name} must be in (0, 1], got {weight!r}. Divide all weights by the largest, "
            "and leave out sets without weight."
        )
    return found


# --- the estimator

# A wider table is hardly ever above the noise, and there are too many of them to choose among.
_MOST_COLUMNS = 4
# Share of epsilon for the number of records, with one column and with more.
_TOTAL_OF_ONE, _TOTAL = Fraction(5, 100), Fraction(2, 100)


@dataclass(eq=False, repr=False, kw_only=True)
class MarginalSynthesizer(Synthesizer):
    """Private counts of single columns and of privately chosen sets of columns, in one release.

    It measures the total, every column on its finest codes whatever ``bins`` or ``edges`` say, and
    tables of pairs of columns, which it chooses where they tell most beyond what is known. Bins are
    groups of codes that these tables tell apart, and labels. The more records and epsilon, the more
    pairs, and the finer their tables. A query on any columns is
    answered from weighted rows, corrected by everything measured, with an error bar of its own;
    synthetic rows are drawn from the weighted ones.

    Rules of the domain (``structure=``) are honoured: what they forbid has the count 0, and no
    synthetic row breaks one. Records that break a rule are skipped.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget spent by one call of ``fit``.
    domain : Domain, dict, pair, attribute, or list of these
        Public range or categories of every column, required. One attribute or pair is for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``, to be predicted from the others. All pairs with it
        are measured first. It changes nothing for a workload of sets.
    max_order : int, default=3
        Largest number of columns in a set of a workload, 1 to 4. A table of all columns, where few
        cells hold many records, needs 3. 1 measures single columns only, which are then independent
        of each other.
    workload : {"all", "ranges", "cells"} or dict, default="all"
        Queries that the release shall serve. "ranges" gives single columns more of the budget,
        "cells" less than "all". A dict names the only sets that may be chosen, as tuples of at
        most ``max_order`` column names, with weights in (0, 1] by which their scores count, such
        as ``{("age", "sex"): 1, ("age", "pay"): 0.5}``. Tables of more than 2**22 cells, with at
        most 128 groups of codes a column (512 if there are two columns), are refused. The
        workload is public.
    prior : PublicTable or Synopsis, default=None
        What is known of the table beforehand, with the columns of the domain: rows that are public,
        such as ``PublicTable(last_year)``, or a release, of these records or of others, which costs
        nothing more. Rows then start from the prior instead of independent columns, if the noisy
        tables are clearly nearer to it: a good prior
        makes a small ``epsilon`` useful, a bad one costs little. Its rows that do not fit the
        domain are left out, with a warning; of more than 100,000 some are taken. Needs
        ``max_order`` above 1.
    max_rows_per_id : int, default=None
        Keep at most this many rows of each person, chosen secretly; epsilon then protects the
        person. Needs ``privacy_id``. None: epsilon protects one row.
    privacy_id : str, default=None
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

    Notes
    -----
    Tables of several columns tell at most 128 groups of codes of a column apart (512 if there are
    two columns); counts of the column alone keep all codes.

    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain and
    parameters. *Released*: a noisy number of records, and noisy counts of the blocks of every level
    of each column's tree; then either the joint counts of all columns that reach a threshold (at an
    epsilon above 5), or one noisy table of all columns (where there are few cells for the number of
    records), or which pairs of columns, or sets of a workload, were selected, a noisy table of
    groups of codes for each of them, and how far the others are from the rows. *Cost*: a record
    changes the number of records by one, one block of each level by one, one cell of each table and
    of the joint counts by one, every score of a set by at most its weight, up or down, and the
    distance by one for each of the others. These are measured one after the other, and their
    budgets add up to epsilon. Budgets, groups and candidate sets follow from public facts and
    earlier releases. Rows, answers and error bars are computed from what was released.

    A *prior* is public or released already, and is compared with released tables only: nothing
    more is charged. It changes rows, and the answers where nothing was measured; what was measured
    corrects them as before. The measurements of a release are not averaged in, also if it is one of
    the same records: it is a prior, whose ledger was charged when it was made. The release and the
    guarantees of its answers name the prior by a SHA-256 of its coded rows.

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

    max_order: Any = 3
    workload: Any = "all"
    prior: Any = None
    verbose: Any = 0

    # Groups of codes are chosen by what was released of single columns.
    _most_bins = None
    _rows_of_bars = TUNING.rows_of_trial

    def _parts(self, epsilon, domain):
        self._wanted(domain)
        as_prior(self.prior, domain, warn=True)
        used = len(used_attributes(domain.shape))
        total = epsilon * (_TOTAL if used > 1 else _TOTAL_OF_ONE)
        return {"total": total, "views": epsilon - total}

    def _counted(self, domain):
        return domain.fine

    def _told_in_groups(self, domain):
        """Names of columns with more codes than tables tell apart, but for fine bins of "auto"."""
        sizes = _group_sizes(domain)
        most = most_groups(sizes, self._wanted(domain)[0])
        return ", ".join(
            repr(domain.names[i])
            for i in used_attributes(sizes)
            if sizes[i] > most and not getattr(domain.attributes[i], "auto", False)
        )

    def _together(self, domain):
        return ()

    def _release(self, table, domain, loss, source):
        max_order, workload = self._wanted(domain)
        mechanism = "marginals"
        coarse = self._told_in_groups(domain)
        if coarse:
            mechanism += f"; tables of several columns tell groups of codes apart in {coarse}"
        asked = Asked(
            [attribute.order() for attribute in domain.attributes],
            [attribute.n_alone for attribute in domain.attributes],
            [attribute.labels_of for attribute in domain.attributes],
            label=None if self.target is None else domain.index(self.target),
            zeros=domain.structure.zeros,
            max_order=max_order,
            workload=workload,
            prior=as_prior(self.prior, domain),
            trial=self._stand_for is not None,
            progress=self._progress,
        )
        if self._stand_for is not None:
            table = table.standing_for(self._stand_for)
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
        workload = as_workload(self.workload, domain, order)
        if self.prior is not None and order == 1:
            raise ValueError(
                "max_order=1 has no place for a prior: whether it is used is decided by tables of "
                "several columns. Give prior=None, or max_order of at least 2."
            )
        return min(order, len(domain.shape)), workload
