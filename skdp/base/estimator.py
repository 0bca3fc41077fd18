"""The base of all estimators that read private rows: what a fit does before it counts."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from .._keys import key_of
from .._random import (
    HidesSeed,
    NoiseSource,
    Tape,
    caller_level,
    noise_source,
    warn_after_charge,
)
from .._validation import as_epsilon, as_integer, check_choice, split_epsilon
from ..accounting import Part, PrivacyLedger, PrivacyLoss, charge
from ..domain import FEW_BINS, Categorical, Date, Datetime, Domain, Identifier
from ..exceptions import DomainError, RecordsLostError
from ..mechanisms import discrete_laplace
from ..release import SKIPPED, SkippedRecords
from ..tables import (
    MOST_AT_ONCE,
    Coded,
    Contributions,
    Frame,
    Layout,
    LazyRows,
    as_frame,
    build_frame,
    read_rows,
    select_columns,
)
from .published import Published, ShowsPrivacy

# --- rows matched with the domain by the schema


def full_domain(domain: Any, rows: Frame | LazyRows) -> Domain:
    """The domain of all columns of ``rows``: one attribute may have been given for all."""
    if domain is None:
        raise DomainError(
            "domain is required: the public range or categories of every column, for example "
            "{'age': (0, 120), 'sex': ['F', 'M']}, or one pair (low, high) for "
            "all columns of an array. Reading it from the data would leak them. Give it by name, "
            "domain=...; the first argument is epsilon."
        )
    if isinstance(domain, Domain | Mapping):
        return domain if isinstance(domain, Domain) else Domain(domain)
    attributes = Domain.for_array(domain, len(rows.names)).attributes
    return Domain(dict(zip(rows.names, attributes, strict=True)))


def match_rows(
    X: Any,
    y: Any,
    domain: Any,
    target: str | None,
    *,
    lazy: bool = False,
    privacy_id: str | None = None,
    structure: bool = False,
    spare: bool = False,
    of: Any = None,
) -> tuple[Any, Domain]:
    """Match the columns of the rows, and the labels if there is a target, with the domain.

    Only the schema is checked: container, names, declared types. No value is read.

    Parameters
    ----------
    X, y, domain, target
        As given to the estimator.
    lazy : bool, default=False
        Whether lazy frames are accepted: by estimators that need counts only.
    privacy_id : str, default=None
        A further column, which identifies the person a row belongs to.
    structure : bool, default=False
        Whether the estimator honours structural zeros: combinations of values that rules of the
        domain forbid. If it does not, a domain with such rules is refused.
    spare : bool, default=False
        Whether columns that the domain does not declare are left out instead of refused.
    of : estimator, default=None
        The estimator, for that error and for the bins that it can use where they are "auto".

    Returns
    -------
    rows : Frame, or LazyRows for lazy frames
        With exactly the columns of the domain, and the unit.
    domain : Domain

    Raises
    ------
    DomainError
        If the schema does not fit, or the domain has rules that the estimator cannot honour.
    """
    rows: Any = read_rows(X) if lazy else as_frame(X)
    if privacy_id is not None:
        _check_id(rows, domain, privacy_id)
    domain = full_domain(domain, without_id(rows, privacy_id))
    domain = domain.resolved(getattr(of, "_most_bins", None))
    if not structure:
        _refuse_zeros(domain, of)
    if spare and not rows.n_unnamed:
        known = {*domain.columns, privacy_id}
        rows = rows.select([name for name in rows.names if name in known])
    _check_target(domain, target)
    labelled = target is not None and y is not None
    # Columns of an array are named by position; a label that is given separately is none of them.
    rows = domain.with_names(rows, [target] if labelled else [])
    if target is not None and y is not None:
        rows = rows.with_column(target, y)
        domain = _numbered(domain, target, rows.column(target))
    domain.check_schema(without_id(rows, privacy_id))
    rows = rows.select(rows.names)
    rows.privacy_id = privacy_id
    rows.dated = any(isinstance(each, Date | Datetime) for each in domain.attributes)
    return rows, domain


def _check_target(domain: Domain, target: str | None) -> None:
    """Refuse a label that is not measured."""
    if target is None or target in domain.names:
        return
    if target in domain:
        raise DomainError(
            f"target={target!r} follows from other columns, by "
            f"{domain.structure.derived[target]!r}: it is not measured, and there is nothing to "
            "learn. Name another target, or leave out the rule."
        )
    raise DomainError(
        f"target={target!r} is not a column of the domain, which has {list(domain.names)}."
    )


def _refuse_zeros(domain: Domain, of: Any) -> None:
    """Refuse rules that forbid values: a release that ignores them would break them."""
    if not domain.structure.zeros:
        return
    name = "This estimator" if of is None else type(of).__name__
    ruled = sorted({axis for axes in domain.structure.zeros for axis in axes})
    columns = ", ".join(repr(domain.names[axis]) for axis in ruled[:5])
    more = f" and {len(ruled) - 5} more columns" if len(ruled) > 5 else ""
    raise DomainError(
        f"{name} cannot honour the rules of the domain, which forbid some values of "
        f"{columns}{more}: its release would count and draw records that cannot exist. Use "
        "MarginalSynthesizer, which honours them; or a domain without these columns, "
        "domain.select([...]), or without rules, domain.without_structure(). Derived columns and "
        "identifiers are no obstacle."
    )


def _numbered(domain: Domain, target: str, column: Any) -> Domain:
    """The domain, with numbers for labels where ``y`` holds numbers and all labels are text.

    Meta-estimators of scikit-learn encode text labels as 0, 1, ... in their order before they fit
    the estimators inside, and decode what these predict. Only in arrays, as they pass them: other
    libraries choose types by the values. What is read is the type of ``y``.
    """
    attribute = domain[target]
    whole = column.library == "numpy" and column.dtype.startswith(("int", "uint", "bool"))
    if not (whole and isinstance(attribute, Categorical)):
        return domain
    if any(isinstance(key_of(each), float) for each in attribute.categories):
        return domain
    if column.dtype == "bool" or domain.structure.rules or len(domain.columns) < len(domain):
        raise DomainError(
            f"y holds values of type {column.dtype}, but all declared labels are text. Give the "
            "labels as they are declared, or declare those that y has."
        )
    warnings.warn(
        f"y holds whole numbers and all declared labels are text: 0 to {attribute.n_values - 1} "
        "are taken as their positions in alphabetical order, as meta-estimators of scikit-learn "
        "(voting, stacking, bagging, one-vs-rest, "
        "cross_val_predict(method='predict_proba')) encode them; predictions are such numbers too.",
        UserWarning,
        stacklevel=caller_level(),
    )
    numbers = Categorical(range(attribute.n_values))
    return Domain({**dict(domain.items()), target: numbers})


def without_id(rows: Any, privacy_id: str | None) -> Any:
    """Rows without the column that identifies the person a row belongs to."""
    return (
        rows
        if privacy_id is None
        else rows.select([name for name in rows.names if name != privacy_id])
    )


def _check_id(rows: Any, domain: Any, privacy_id: Any) -> None:
    """Refuse a column that cannot identify persons; by the schema alone."""
    if privacy_id not in rows.named:
        raise DomainError(
            f"privacy_id={privacy_id!r} is not a column of the data; it names the column that "
            "identifies the person a row belongs to. Arrays have no names: give a frame."
        )
    identifies = isinstance(domain, Mapping) and isinstance(domain.get(privacy_id), Identifier)
    if isinstance(domain, Domain | Mapping) and privacy_id in domain and not identifies:
        raise DomainError(
            f"privacy_id={privacy_id!r} identifies persons and cannot be released: leave it out of "
            "the domain, or declare it as Identifier()."
        )
    kind = rows.kinds[privacy_id]
    if kind in ("other", "null"):
        raise DomainError(
            f"Column {privacy_id!r} (type {rows.dtypes[privacy_id]}) cannot identify persons; "
            "convert it to text or to integers."
        )


# --- the base of the estimators

# With less for one row, noise of a fit might not fit into the 64 bits of its integers: the moments
# of weights of additive models, which are the largest, have a scale of at most 3.3e8 over their
# epsilon, at least a tenth of that of the row, and 2**50 fits.
_LEAST = Fraction(3, 10**6)


def epsilon_of_row(epsilon: Any, most: int = 1, share: Fraction = Fraction(1)) -> Fraction:
    """What of ``epsilon`` is for one of the ``most`` rows of a person.

    ``share`` is the smallest share of it that noise is drawn at, where a caller may choose it.

    Raises
    ------
    ValueError
        If it is so small that noise might not fit into integers.
    """
    exact = as_epsilon(epsilon)
    if exact < (least := _LEAST * most / share):
        raise ValueError(
            f"epsilon must be at least {float(least):g}, got {epsilon!r}: the noise of less might "
            "not fit into 64-bit integers, and would hide any number of rows."
        )
    return exact / most


# What is said once: the topics on which this process has been warned.
SAID: set[str] = set()
# Share of epsilon for the counts of kept and skipped records: enough to see that a tenth of the
# records is lost among some thousand records at epsilon 1, and hardly missed elsewhere.
SKIPPED_SHARE = Fraction(1, 100)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateEstimator(Published, HidesSeed, ShowsPrivacy, BaseEstimator):
    """Base of the estimators that read private rows.

    The parameters are the fields of a dataclass, which stores them and nothing else: those here,
    and those of the subclass. Its ``fit``

    1. checks the SCHEMA of what it was given, never the values;
    2. calls :meth:`_spend` with the parts of its budget, which charges the ledger;
    3. reads the values, keeping everything exact in local variables;
    4. assigns the released attributes, ``privacy_loss_`` among them, last.
    """

    epsilon: Any = 1.0
    ledger: PrivacyLedger | None = None
    random_state: Any = None

    # The smallest share of epsilon that a model within it gets.
    _least_share = Fraction(1)
    # What the rows given to ``fit`` look like, in estimators that draw rows.
    _layout: Layout = field(init=False)
    domain_: Domain = field(init=False)

    @property
    def _most_bins(self) -> int | None:
        """Most bins of a column whose bins are "auto"; None for as many as it has.

        Few, because most estimators count cells of several columns together, or fit a parameter to
        each bin of a column.
        """
        return FEW_BINS

    def _progress(self, text: str) -> None:
        """Print a step of a fit, for estimators with ``verbose``; no number may be exact."""
        if self.verbose:  # type: ignore[attr-defined]  # a parameter of those that print
            print(f"{type(self).__name__}: {text}", file=sys.stderr)

    def _spend(
        self,
        rows: Frame | LazyRows,
        parts: Mapping[str, Fraction] | None = None,
        *,
        shares: Mapping[str, Any] | None = None,
        domain: Domain | None = None,
        stop: bool = False,
        part: Part | None = None,
    ) -> tuple[PrivacyLoss, NoiseSource]:
        """Charge all of ``epsilon``, divided into exact parts or by shares.

        Call it after the schema check and before any value is read: a refused charge then costs and
        reveals nothing, and after a crash the budget stays spent.

        ``parts`` are the budget of one row, and sum to :meth:`_record_epsilon`. Noise is drawn at
        ``loss.of_record``. ``rows`` say what the guarantee assumes. With ``stop`` the ledger must
        be able to pay all, and is charged with the part "skipped" alone: :meth:`_go_on` charges the
        rest.
        """
        epsilon = as_epsilon(self.epsilon)
        most = self._max_rows_per_id()
        if parts is None:
            parts = split_epsilon(self._record_epsilon(), shares or {"release": 1})
        source = noise_source(self.random_state)
        loss = PrivacyLoss(
            epsilon,
            {name: part * (most or 1) for name, part in parts.items()},
            seeded=source.seeded,
            max_rows_per_id=most,
            assumes=rows.assumes,
        )
        self._charge(self._split(loss)[0] if stop else loss, domain, loss.epsilon, part)
        untold = not ("ledger" in SAID or source.seeded or isinstance(source, Tape))
        # Noise that is handed down was paid for by the estimator around this one.
        if self.ledger is None and untold and not isinstance(self.random_state, NoiseSource):
            SAID.add("ledger")
            warn_after_charge(
                f"{type(self).__name__} has no ledger: what it spends is recorded nowhere, and has "
                "to be added up by hand with all other releases of these records. Give "
                "ledger=PrivacyLedger(epsilon, path=...). This is said once."
            )
        return loss, source

    def _charge(
        self, loss: PrivacyLoss, domain: Domain | None, reserve: Fraction, part: Part | None
    ) -> None:
        """Charge the ledger where a release of epsilon ``reserve`` begins.

        ``part`` is what of the table is read, whatever ledger there is by now.
        """
        if self.ledger is None:
            return
        about = {"estimator": type(self).__name__}
        if domain is not None:
            about["domain"] = domain.fingerprint
        if loss.max_rows_per_id is not None:
            about["privacy_id"] = str(getattr(self, "privacy_id", ""))
        more = {"reserve": reserve - loss.epsilon, "part": part}
        charge(self.ledger, type(self).__name__, loss, about=about, **more)

    def _part(self, domain: Domain | None) -> Part | None:
        """The part of the table that the ledger pays for, if a fit cannot depend on other records.

        Only estimators that code records by `Coded` with this part give a domain.
        """
        part = getattr(self.ledger, "part", None)
        if part is None or domain is None or part.column not in domain.names:
            return None
        declared = domain[part.column]
        if not isinstance(declared, Categorical) or declared.nullable or declared.other is not None:
            return None
        return part if {key_of(each) for each in declared.categories} <= part.keys else None

    @staticmethod
    def _split(loss: PrivacyLoss) -> tuple[PrivacyLoss, PrivacyLoss]:
        """The loss of the counts of skipped records, and that of everything else."""
        same: Any = {
            "seeded": loss.seeded,
            "max_rows_per_id": loss.max_rows_per_id,
            "assumes": loss.assumes,
        }
        first = {SKIPPED: loss.parts[SKIPPED]}
        rest = {name: part for name, part in loss.parts.items() if name != SKIPPED}
        return (
            PrivacyLoss(first[SKIPPED], first, **same),
            PrivacyLoss(loss.epsilon - first[SKIPPED], rest, **same),
        )

    def _with_skipped(self, parts: Callable[[Fraction], Mapping[str, Fraction]]) -> dict:
        """Parts of the budget of one row: that of skipped records, and those of the rest.

        A paper spends all of epsilon on its own steps, and so does ``calibration="paper"``.
        """
        on_loss: str = self.on_loss  # type: ignore[attr-defined]
        check_choice(on_loss, "on_loss", ("warn", "stop"))
        epsilon = self._record_epsilon()
        calibration = getattr(self, "calibration", "tight")
        check_choice(calibration, "calibration", ("tight", "paper"))
        if calibration == "paper":
            if on_loss == "stop":
                raise ValueError(
                    "on_loss='stop' needs counts of skipped records, on which calibration='paper' "
                    "spends nothing. Take on_loss='warn', or calibration='tight'."
                )
            return {**parts(epsilon)}
        first = epsilon * SKIPPED_SHARE
        return {SKIPPED: first, **parts(epsilon - first)}

    def _go_on(
        self,
        coded: Coded,
        domain: Domain,
        loss: PrivacyLoss,
        source: NoiseSource,
        stop: bool,
        part: Part | None,
    ) -> tuple[SkippedRecords, PrivacyLoss]:
        """Release how many records are skipped; with ``stop`` stop there, or charge the rest.

        Returns
        -------
        skipped : SkippedRecords
        rest : PrivacyLoss
            What is left of the loss for everything else.

        Raises
        ------
        RecordsLostError
            With ``stop``, if more than a tenth of the records is skipped.
        BudgetExceededError
            With ``stop``, if another charge took what this release needs in the meantime.
        """
        # Privacy. Released: noisy counts of the records that are kept and of those that are skipped
        # for each reason, disjoint cells (see `Coded.cells`): sensitivity 1 for a record,
        # max_rows_per_id for a person, at the part "skipped" of one record. Without rules that
        # cell is always 0, and left out. Whether to stop, what is charged next and every text
        # follow from these numbers and public facts: a choice of later parts by earlier releases,
        # under which pure epsilons add up.
        # Lines of a file that cannot be read are records too, in a cell of their own. Where persons
        # are protected nobody knows whose they are, and they count nowhere.
        cells = coded.cells[: None if domain.structure.zeros else -1]
        if coded.unread is not None and loss.max_rows_per_id is None:
            cells = np.append(cells, coded.unread)
        epsilon = loss.of_record.parts[SKIPPED]
        noisy = discrete_laplace(cells, epsilon, random_state=source)
        skipped = SkippedRecords.of(domain, noisy, epsilon)
        first, rest = self._split(loss)
        if stop and skipped.too_many:
            raise RecordsLostError(
                f"{type(self).__name__} stopped: it would skip {'; '.join(skipped.texts())}. "
                f"Only these counts were released (standard deviation of their noise: "
                f"{skipped.std:.3g}): epsilon={float(first.epsilon):g} is spent, "
                f"{float(rest.epsilon):g} is not. Correct the declaration or the data "
                "(Domain.check(rows) shows what is wrong, to the data owner only) and fit again "
                f"with epsilon={float(rest.epsilon):g}; or release what is left of the records "
                "with on_loss='warn'.",
                skipped,
                first,
            )
        if stop:
            self._charge(rest, domain, rest.epsilon, part)
        return skipped, rest

    def _warn_of_skipped(self, skipped: SkippedRecords | None, total: float, std: float) -> None:
        """Warn of records that were skipped, or of a total near zero; of released numbers only."""
        lines = [] if skipped is None else skipped.texts()
        if skipped is not None and lines:
            warn_after_charge(
                f"{type(self).__name__} skipped {'; '.join(lines)}. The counts have noise of "
                f"standard deviation {skipped.std:.3g} and are part of the release; "
                "Domain.check(rows) shows what is wrong, to the data owner only. With "
                "on_loss='stop' a release that loses more than a tenth of the records stops after "
                "the first part of epsilon."
            )
        else:
            warn_of_emptiness(self, total, std)

    def _max_rows_per_id(self) -> int | None:
        """Number of rows kept of each person, or None where the unit of privacy is the row.

        Raises
        ------
        TypeError, ValueError
            If it is not a positive integer, or only one of ``max_rows_per_id`` and ``privacy_id``
            is given.
        """
        most, privacy_id = getattr(self, "max_rows_per_id", None), getattr(self, "privacy_id", None)
        if most is None and privacy_id is None:
            return None
        if most is None or privacy_id is None:
            raise ValueError(
                f"max_rows_per_id={most!r} and privacy_id={privacy_id!r} belong together: how many "
                "rows of each person to keep, and the column that identifies the person. Give both "
                "or none."
            )
        return as_integer(most, "max_rows_per_id", 1)

    def _warn_of_size(self, rows: Frame | LazyRows, domain: Domain) -> None:
        """Warn about the memory for a table of all distinct rows, from the domain alone.

        The number of distinct rows is private: neither an error nor this warning may depend on it.
        """
        if not isinstance(rows, LazyRows) or domain.size <= MOST_AT_ONCE:
            return
        row = 16 + 4 * len(domain)
        warnings.warn(
            f"{type(self).__name__} loads the table of all distinct coded rows into memory, {row} "
            f"bytes each. In a domain of {domain.size:.3g} cells nearly all rows may be distinct: "
            f"a hundred million take {row / 10:.0f} GB. If that may not fit, declare fewer columns "
            "or bins, or take MarginalSynthesizer, which asks the engine for a few columns at a "
            "time.",
            UserWarning,
            stacklevel=3,
        )

    def _privacy_id(self) -> str | None:
        """The column that identifies the person; raises as :meth:`_max_rows_per_id`."""
        return None if self._max_rows_per_id() is None else self.privacy_id

    def _record_epsilon(self) -> Fraction:
        """Budget of one row: epsilon, divided by the number of rows kept of each person.

        Raises
        ------
        ValueError
            If it is so small that noise might not fit into integers.
        """
        return epsilon_of_row(self.epsilon, self._max_rows_per_id() or 1, self._least_share)

    def _contributions(
        self, loss: PrivacyLoss, source: NoiseSource, rows: Frame | LazyRows, domain: Domain
    ) -> Contributions | None:
        """The bound on the rows of a person, in the form that counting takes.

        It comes from the loss that was charged and the rows that :func:`match_rows` gave, because
        parameters may have been set since, while a charge waited for its turn.
        """
        most = loss.max_rows_per_id
        if most is None:
            return None
        assert rows.privacy_id is not None
        return Contributions(rows.privacy_id, most, source)

    def _remember_columns(self, X: Any, rows: Frame | LazyRows, label: str | None = None) -> None:
        """Set ``n_features_in_``, and ``feature_names_in_`` where columns have names.

        Parameters
        ----------
        X : as given to ``fit``
        rows : Frame or LazyRows
            What was read of it.
        label : str, default=None
            Column of lazy rows that is not a feature.
        """
        if isinstance(rows, LazyRows):
            # scikit-learn takes frames in memory, and needs only the names.
            names = [name for name in rows.names if name not in (label, self._privacy_id())]
            X = pd.DataFrame(columns=names)
        else:
            X = self._without_person(X)
        validate_data(self, X, skip_check_array=True)

    def _without_person(self, X: Any) -> Any:
        """Rows in memory without the column that identifies persons, if they have it."""
        privacy_id = self._privacy_id()
        if privacy_id is None or privacy_id not in (rows := as_frame(X)).named:
            return X
        return select_columns(X, [name for name in rows.names if name != privacy_id])

    def _build_table(self, columns: Mapping[str, Any], layout: Layout | None = None) -> Any:
        """Drawn columns as a table of the layout of what ``fit`` was given, or of another."""
        return build_frame(columns, like=layout or self._layout)

    def _layout_like(self, like: Any) -> Layout | None:
        """The layout of a table without rows; None if there is none.

        Raises
        ------
        TypeError, ValueError
            If ``like`` is no table, or has rows or columns that the domain does not declare.
        """
        if like is None:
            return None
        rows = as_frame(like)
        if len(rows):
            raise ValueError(
                "like must have no rows: it only says which kind of table to return, and the order "
                "of its columns, as in like=polars.DataFrame(schema=['age', 'sex'])."
            )
        rows = self.domain_.with_names(rows)
        extra = [name for name in rows.names if name not in self.domain_.columns]
        if extra:
            raise ValueError(f"like has columns that the domain does not declare: {extra}.")
        return Layout(like, rows, self.domain_)

    def _given_names(self) -> list[str]:
        """Columns of the domain that ``fit`` was given, in their order, and the label."""
        return [
            name
            for name in self._layout.given
            if not isinstance(self.domain_.declared(name), Identifier)
        ]

    def _feature_names(self) -> list[str]:
        """Names of the columns that were fitted: x0, x1, ... for arrays."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{position}" for position in range(self.n_features_in_)]
        return [str(name) for name in names]

    def _rows_as_fitted(self, X: Any) -> Frame:
        """Rows that are given to a fitted estimator, with the columns that were fitted."""
        check_is_fitted(self)
        rows = as_frame(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        self._check_width(rows)
        return rows

    def _check_width(self, rows: Frame) -> None:
        """Refuse another number of columns than were fitted, in scikit-learn's words."""
        if len(rows.names) != self.n_features_in_:
            raise ValueError(
                f"X has {len(rows.names)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        # Values never raise: missing ones and text have their documented meaning.
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def warn_of_emptiness(estimator: Any, total: float, std: float) -> None:
    """Warn if the released total is nearly zero. Only RELEASED and public numbers are used.

    Parameters
    ----------
    estimator : estimator
        The fitted estimator.
    total : float
        Released number of records.
    std : float
        Standard deviation of its noise.
    """
    if total > 3 * std:
        return
    warn_after_charge(
        f"{type(estimator).__name__} released a total of {total:.4g} records, with noise of "
        f"standard deviation {std:.3g}: nearly no records fit the domain, or too few to show above "
        "the noise. Records are skipped if a value is not a number, an undeclared category or "
        "missing (such as text in a Numeric column, or labels of another type). "
        "Domain.check(rows) counts them, for the data owner only."
    )
