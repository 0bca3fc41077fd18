"""Synthesizers: release a private synopsis of a table, query it, draw synthetic rows from it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted, validate_data

from ._base import PrivateEstimator, match_rows
from ._random import sampling_generator
from ._validation import as_epsilon
from .counts import CountTable
from .domain import Categorical
from .frames import build_frame
from .pairviews import coarse_attributes, pair_views, pair_views_parts
from .partition.hdpview import hdpview, hdpview_parts
from .synopsis import Boxes, Synopsis

__all__ = ["HDPViewSynthesizer", "PairViewSynthesizer"]


class _Synthesizer(PrivateEstimator):
    """A release with a queryable synopsis; subclasses say how it is measured."""

    def fit(self, X, y=None):
        """Charge epsilon, then release a synopsis of the rows.

        Parameters
        ----------
        X : array-like or pandas, Polars or PyArrow frame of shape (n_rows, n_features)
            One row per person. Columns are matched to the domain by name, those of an array by
            position.
        y : array-like of shape (n_rows,), default=None
            Values of the column ``target``; ignored where ``target`` is None.

        Returns
        -------
        self

        Raises
        ------
        DomainError, TypeError, ValueError
            If the schema or a parameter does not fit; nothing is spent. Values never raise: out
            of range is clipped, an unknown category is `other` where declared, and a record that
            the domain cannot represent is skipped.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        """
        rows, domain = match_rows(X, y, self.domain, self.target)
        parts = self._parts(as_epsilon(self.epsilon), domain)
        loss, source = self._spend(parts)
        table = CountTable.from_codes(domain.encode(rows), domain.shape)
        synopsis = self._release(table, domain, loss, source)

        validate_data(self, X, skip_check_array=True)
        self._library = rows.library
        self.domain_ = domain
        self.synopsis_ = synopsis
        self.privacy_loss_ = loss
        return self

    def count(self, query=None, *, return_interval=False, level=0.95):
        """Expected number of records that satisfy a query; see :meth:`skdp.Synopsis.count`."""
        check_is_fitted(self)
        return self.synopsis_.count(query, return_interval=return_interval, level=level)

    def sum(self, column, query=None):
        """Sum of a numeric column over a query; see :meth:`skdp.Synopsis.sum`."""
        check_is_fitted(self)
        return self.synopsis_.sum(column, query)

    def mean(self, column, query=None):
        """Mean of a numeric column over a query; see :meth:`skdp.Synopsis.mean`."""
        check_is_fitted(self)
        return self.synopsis_.mean(column, query)

    def sample(self, n_samples=None, random_state=None):
        """Draw synthetic rows from the synopsis.

        Parameters
        ----------
        n_samples : int, default=None
            None draws max(0, round(noisy total)) rows.
        random_state : int, numpy.random.Generator or None, default=None
            Seeding the draw is harmless: it is post-processing of the release.

        Returns
        -------
        frame : table of the library that ``fit`` was given
            All columns of the domain, in its order and with its types.
        """
        check_is_fitted(self)
        return build_frame(self._sample_columns(n_samples, random_state), like=self._library)

    def make_training_set(self, n_samples=None, random_state=None):
        """Draw synthetic rows for training.

        Parameters
        ----------
        n_samples, random_state
            As in :meth:`sample`.

        Returns
        -------
        X : table of the library that ``fit`` was given
            The columns of the domain but ``target``.
        y : ndarray of shape (n_samples,) or None
            The column ``target``, or None where no target is set.
        sample_weight : None
            All synthetic rows weigh the same.
        """
        check_is_fitted(self)
        columns = self._sample_columns(n_samples, random_state)
        y = None
        if self.target is not None:
            y = _label_array(columns.pop(self.target))
        return build_frame(columns, like=self._library), y, None

    def prepare(self, X):
        """Map test rows to what the training set looks like: here they are the same."""
        return X

    def fit_resample(self, X, y=None):
        """Fit, and return synthetic rows in place of the true ones.

        This makes every synthesizer a sampler of an imbalanced-learn ``Pipeline``: the steps
        behind it see synthetic rows only.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
            Values of the column ``target``.

        Returns
        -------
        X_resampled : table of the library of ``X``
        y_resampled : ndarray, or pandas Series where ``y`` is one
            Only where ``y`` is given.

        Raises
        ------
        ValueError
            If ``y`` is given but no ``target``; nothing is spent.
        """
        if y is None:
            return self.fit(X).sample()
        if self.target is None:
            raise ValueError(
                "fit_resample was given y, but target is None. Add the label to the domain and "
                "name it in target=, so that synthetic rows carry it."
            )
        X_resampled, y_resampled, _ = self.fit(X, y).make_training_set()
        if isinstance(y, pd.Series):
            y_resampled = pd.Series(y_resampled, name=y.name)
        return X_resampled, y_resampled

    def plot(self, columns=None, *, ax=None):
        """Draw the released density over one or two columns; see :meth:`skdp.Synopsis.plot`."""
        check_is_fitted(self)
        return self.synopsis_.plot(columns, ax=ax)

    def _sample_columns(self, n_samples, random_state):
        rng = sampling_generator(random_state)
        codes = self.synopsis_.sample_codes(n_samples, rng)
        return dict(self.domain_.decode(codes, rng).items())

    def _parts(self, epsilon, domain):
        """Divide epsilon, from public facts alone."""
        raise NotImplementedError

    def _release(self, table, domain, loss, source):
        """Measure the table within ``loss.parts``."""
        raise NotImplementedError


def _label_array(column):
    """Labels as NumPy has them; Python objects where some are missing."""
    values = column.astype(object).to_numpy()
    return values if column.isna().any() else np.array(values.tolist())


class HDPViewSynthesizer(_Synthesizer):
    """Private materialised view of a wide table by recursive bisection (HDPView).

    Starting from the whole domain, a block of cells is bisected while its aggregation error (the
    sum over its cells of the distance to the mean count) looks large under noise, at a cut that a
    noisy maximum picks among all cuts of all columns. Each final block gets a noisy count; counts
    spread evenly inside blocks answer any range query.

    Parameters
    ----------
    epsilon : float, default=1.0
        All of one ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``.
    calibration : {"tight", "paper"}, default="tight"
        "tight" uses the exact worst case of the converge tests, a floor of its own, and cuts
        where the two sides are most uneven; "paper" uses the constants of the paper (alpha 1.6,
        beta 1.2, gamma .9, ratio .9) and cuts where the least aggregation error is left. Both
        are epsilon-DP. Above an epsilon of about 2.7 the paper's constants split every block; a
        large domain is then refused before anything is spent.
    ledger : PrivacyLedger, default=None
        Charged before any value is read.
    random_state : int or None, default=None
        None draws from the operating system. An int is for experiments only: the release is
        then marked "seeded: no guarantee".

    Attributes
    ----------
    synopsis_ : Synopsis
        The release: blocks and noisy counts. Everything computed from it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "converge" (when to stop), "cut" (where to cut), "counts".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where the rows had column names.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain,
    parameters, number of private cuts on a path. *Released*: blocks and noisy counts, nothing
    else. *Cost*: the tests along one path lose at most the part "converge" whatever their number
    (a bias makes the tested error fall with depth), the private cuts of a path at most "cut",
    the count of the one leaf that holds a record "counts"; a record meets one path, so the parts
    add up to epsilon. The paper adds its noise to floats, scores cuts with half of the
    sensitivity budget unused and bounds errors by a theorem that does not hold; see the user
    guide.

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
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.calibration = calibration
        self.ledger = ledger
        self.random_state = random_state

    def _parts(self, epsilon, domain):
        return hdpview_parts(epsilon, domain.shape, calibration=self.calibration)

    def _release(self, table, domain, loss, source):
        view = hdpview(table, loss.parts, calibration=self.calibration, random_state=source)
        return Synopsis(
            domain,
            Boxes(view.lower, view.upper),
            view.counts,
            noise_epsilon=loss.parts["counts"],
            leaf_errors=view.leaf_errors(),
            privacy_loss=loss,
            mechanism=f"HDPView, calibration={self.calibration!r}",
        )


class PairViewSynthesizer(_Synthesizer):
    """Private views of single columns and of privately chosen pairs, joined into one model.

    The total, every column by itself, and the pairs of columns that differ most from being
    independent are measured; pair tables by boxes that get smaller where the records are. The
    pairs form a forest that answers any query on any number of columns and yields synthetic rows;
    where the budget allows, further pairs are measured and a sample of the forest is weighted to
    agree with them. This is the release to begin with, from two columns to a hundred.

    Parameters
    ----------
    epsilon : float, default=1.0
        All of one ``fit``.
    domain : Domain, attribute, or list of attributes
        Public range or categories of every column, required. One attribute stands for all
        columns of an array.
    target : str, default=None
        Column of the domain that takes ``y``. Records of each of its classes are then measured
        by themselves, which makes the best training sets; counts over all classes together
        carry more noise. With more than 20 codes the chosen pairs all contain it instead.
    error_share : float, default=0.05
        Share of epsilon kept for error bars; 0 releases none.
    ledger : PrivacyLedger, default=None
        Charged before any value is read.
    random_state : int or None, default=None
        None draws from the operating system. An int is for experiments only: the release is
        then marked "seeded: no guarantee".

    Attributes
    ----------
    synopsis_ : Synopsis
        The release: views, and a quantile of their errors. Everything computed from it is free.
    domain_ : Domain
        The domain, spelled out for every column.
    privacy_loss_ : PrivacyLoss
        Epsilon and its parts: "total" (the number of records), "views" (single columns, the
        choice of pairs, pairs; ``synopsis_.model.budget`` says how it was divided), "errors".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where the rows had column names.

    Warns
    -----
    UserWarning
        If a column has more codes than pair tables tell apart (512; 2,048 where there are two
        columns). Its own view keeps them all.

    Notes
    -----
    *Neighbours* add or remove one record; the *unit of privacy* is the record. *Public*: domain
    and parameters. *Released*: a noisy total, noisy views, which pairs were chosen, and one noisy
    quantile of the errors. *Cost*: a record changes the total by one, one cell of each view of
    one column, one box a level of each pair view, every score of a pair by one up or down, and
    every error by one; these are asked one after the other and their budgets add up to epsilon.

    Unordered categories are cut in the order of the taxonomy, or of how frequent they were
    released to be. Intervals of ``count`` come from the published quantile of the errors of 2,000
    random queries on two columns: they cover noise and misfit of the model together, on average
    over such queries. See the user guide.

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

    def __init__(
        self,
        epsilon=1.0,
        *,
        domain=None,
        target=None,
        error_share=0.05,
        ledger=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.error_share = error_share
        self.ledger = ledger
        self.random_state = random_state

    def _parts(self, epsilon, domain):
        return pair_views_parts(epsilon, domain.shape, self.error_share)

    def _release(self, table, domain, loss, source):
        coarse = coarse_attributes(domain.shape)
        mechanism = "pair views"
        if coarse:
            names = ", ".join(repr(domain.names[axis]) for axis in coarse)
            mechanism += f"; pair tables tell groups of codes apart in {names}"
            warnings.warn(
                f"Pair tables do not tell all codes of {names} apart, because they would not fit "
                "into memory: codes are grouped in them, about equal in number of records. "
                "Declare fewer bins or categories to choose the groups yourself.",
                UserWarning,
                stacklevel=3,
            )
        model = pair_views(
            table,
            loss.parts,
            orders=[_cutting_order(attribute) for attribute in domain.attributes],
            label=None if self.target is None else domain.index(self.target),
            random_state=source,
        )
        return Synopsis.from_model(domain, model, privacy_loss=loss, mechanism=mechanism)


def _cutting_order(attribute):
    """Codes in an order in which neighbours are alike, or None for unordered categories."""
    if isinstance(attribute, Categorical):
        if attribute.taxonomy is None and not attribute.ordered:
            return None
        _, codes = attribute.hierarchy()
        return np.concatenate([codes, np.arange(attribute.n_values, attribute.size)])
    return np.arange(attribute.size)
