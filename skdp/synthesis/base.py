"""What all synthesizers do: charge, count, release a synopsis; query it and draw rows from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .._random import sampling_generator
from .._validation import as_sample_size
from ..base import AnswersStatistics, Likelihood, PrivateEstimator, declared_rows, match_rows
from ..domain.query import Query
from ..expected import ExpectsErrors, bar_of, errors_of_answers
from ..release import SKIPPED, BoxModel, Synopsis
from ..tables import Coded, Layout

# Rows whose probabilities are asked for together.
_ROWS_AT_ONCE = 256


@dataclass(eq=False, repr=False, kw_only=True)
class Synthesizer(ExpectsErrors, AnswersStatistics, Likelihood, PrivateEstimator):
    """A release with a queryable synopsis; subclasses define how it is measured."""

    domain: Any = None
    target: str | None = None
    max_rows_per_id: int | None = None
    privacy_id: str | None = None
    on_loss: str = "warn"

    synopsis_: Synopsis = field(init=False)
    # Whether records that public rules forbid have no count and are never drawn.
    _honours_zeros = False

    def fit(self, X, y=None) -> Self:
        """Charge epsilon, then release a synopsis of the rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            One row per record: NumPy array; pandas, Polars or PyArrow table; or a lazy frame of
            Polars, DuckDB, Dask or PySpark, which is counted in its engine. Columns are matched
            to the domain by name, those of an array by position.
        y : array-like of shape (n_rows,), default=None
            Values of the column ``target``; ignored where ``target`` is None. With a lazy frame
            the target is a column of ``X``.

        Returns
        -------
        self

        Raises
        ------
        DomainError, TypeError, ValueError
            If the schema or a parameter is invalid; nothing is spent. Values never raise: numbers
            out of range are clipped, an unknown category becomes `other` where declared, and a
            record that the domain cannot represent is skipped.
        RecordsLostError
            If ``on_loss`` is "stop" and more than a tenth of the records is skipped, beyond the
            noise; 99% of epsilon are not spent.
        BudgetExceededError
            If the ledger cannot pay; no value has been read.
        EngineError
            If the engine of a lazy frame fails while it counts; the charge stands.
        """
        rows, domain = match_rows(
            X,
            y,
            self.domain,
            self.target,
            lazy=True,
            privacy_id=self._privacy_id(),
            structure=self._honours_zeros,
            of=self,
        )
        declared, domain = domain, self._counted(domain)
        layout = Layout(X, rows, domain)
        parts = self._with_skipped(lambda epsilon: self._parts(epsilon, domain))
        together = self._together(domain)
        if together is None:
            self._warn_of_size(rows, domain)
        stop = self.on_loss == "stop"
        # Records outside of the part that the ledger pays for are not even counted.
        part = self._part(declared)
        loss, source = self._spend(rows, parts, domain=declared, stop=stop, part=part)
        axis = None if part is None else domain.index(part.column)
        coded = Coded(rows, domain, self._contributions(loss, source, rows, domain), axis)
        skipped, rest = None, loss
        if SKIPPED in loss.parts:
            skipped, rest = self._go_on(coded, declared, loss, source, stop, part)
        synopsis = self._release(coded.counts(together), domain, rest.of_record, source)
        # The noise was drawn for the loss of one record; the whole loss is published.
        synopsis.privacy_loss = loss
        synopsis.skipped = skipped

        self._remember_columns(X, rows)
        self._layout = layout
        self.domain_ = synopsis.domain
        self.synopsis_ = synopsis
        self.privacy_loss_ = loss
        self._warn_of_skipped(skipped, synopsis.total, synopsis.total_std)
        return self

    def _asked(self):
        check_is_fitted(self)
        return self.synopsis_

    def page(self, path=None, **how) -> Any:
        """Write or show a page that answers questions; see :meth:`skdp.Synopsis.page`."""
        return self._asked().page(path, **how)

    def save(self, path) -> None:
        """Write the release to one file that may be published; see :meth:`skdp.Synopsis.save`."""
        self._asked().save(path)

    def sample(
        self, n_samples=None, random_state=None, *, where=None, method="rounded", like=None
    ) -> Any:
        """Draw synthetic rows from the synopsis, or those of a kind.

        Parameters
        ----------
        n_samples : int, default=None
            Number of rows. None draws max(0, round(noisy total)) rows (of those that satisfy
            ``where``), and raises ValueError if that makes more than 500 million values (rows
            times columns).
        random_state : int, numpy.random.Generator or None, default=None
            Seed of the draw. It is safe to set: drawing is post-processing of the release.
        where : dict, str or None, default=None
            A condition that every row satisfies, such as ``"age >= 65 and sex == 'F'"``; see
            :meth:`skdp.Synopsis.sample`.
        method : {"rounded", "independent"}, default="rounded"
            "rounded" rounds the expected counts; "independent" draws each row by itself, as a
            random sample; see :meth:`skdp.Synopsis.sample`.
        like : table without rows, default=None
            Decides library and order of the columns, but not their types.

        Returns
        -------
        frame : table of the library that ``fit`` was given, or that of ``like``
            All columns of the domain, in the order that ``fit`` was given, with the types of the
            domain. See the user guide, "What comes out".

        Raises
        ------
        ValueError
            If no value satisfies ``where``, ``method`` is another, or ``like`` has rows or columns
            that are not declared.
        """
        check_is_fitted(self)
        layout = self._layout_like(like)
        columns = self._sample_columns(n_samples, random_state, where, method)
        return self._build_table(columns, layout)

    def _scored_domain(self):
        release = self.synopsis_
        if isinstance(release.model, BoxModel):
            # Negative boxes are empty, and the probabilities of the others sum to 1.
            return release.counted, float(np.maximum(release.model.counts, 0).sum())
        return release.counted, release.total

    def _expected_counts(self, codes):
        domain, counts = self.synopsis_.counted, np.zeros(len(codes))
        # Every row in its place, so that the arithmetic on it is the same whatever the others are;
        # alone where rows that rules forbid would be left out of a batch.
        step = 1 if domain.structure.zeros else _ROWS_AT_ONCE
        for start in range(0, len(codes), step):
            some = codes[start : start + step].tolist()
            asked = [
                Query(({j: np.eye(1, domain.shape[j], code)[0] for j, code in enumerate(row)},))
                for row in some
            ]
            counts[start : start + step] = self.synopsis_.model.answer(asked)
        return counts

    def make_training_set(self, n_samples=None, random_state=None) -> tuple[Any, ...]:
        """Draw synthetic rows for training.

        Parameters
        ----------
        n_samples : int, default=None
            Number of rows. None draws max(0, round(noisy total)) rows, but at most 500 million
            values (rows times columns).
        random_state
            As in :meth:`sample`.

        Returns
        -------
        X : table of the library that ``fit`` was given
            The columns that ``fit`` was given, without identifiers and ``target``, in the types of
            :meth:`prepare`.
        y : ndarray of shape (n_samples,) or None
            The column ``target``, or None where no target is set.
        sample_weight : None
            All synthetic rows have the same weight.
        """
        check_is_fitted(self)
        number = as_sample_size(n_samples, self.synopsis_.total, len(self.domain_), most=True)
        columns = self._sample_columns(number, random_state)
        y = None
        if self.target is not None:
            labels = columns[self.target].astype(object)
            # Of Python objects if some are missing.
            y = labels.to_numpy() if labels.isna().any() else np.array(labels.tolist())
        return self.prepare(pd.DataFrame(columns)), y, None

    def prepare(self, X) -> Any:
        """Test rows as `fit` reads them, in the columns of the training set.

        Numbers are clipped to their range, unknown categories are `other`, and what the domain
        cannot represent is missing, or the middle of the range of integers. Types follow from the
        domain alone.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        table of the library that ``fit`` was given
        """
        check_is_fitted(self)
        features = [name for name in self._given_names() if name != self.target]
        return self._build_table(declared_rows(X, self.domain_, features, self.target))

    def plot(self, columns=None, *, ax=None, blocks=False, norm=None) -> Any:
        """Draw the released counts over one or two columns.

        Parameters
        ----------
        columns, blocks, norm
            As in :meth:`skdp.Synopsis.plot`.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is missing; it comes with the extra ``skdp[plot]``.
        ValueError
            As in :meth:`skdp.Synopsis.plot`.
        """
        check_is_fitted(self)
        return self.synopsis_.plot(columns, ax=ax, blocks=blocks, norm=norm)

    def _tried_errors(self, rows, seed, questions, level):
        release = self.fit(rows).synopsis_
        if questions is not None:
            return {question: bar_of(release, question, level) for question in questions}
        codes = release.counted.encode(rows)
        codes = codes[(codes >= 0).all(axis=1)]
        return errors_of_answers(release.model, codes, release.counted, seed)

    def _sample_columns(self, n_samples, random_state, where=None, method="rounded"):
        rng = sampling_generator(random_state)
        if where is not None:
            drawn = self.synopsis_.sample(n_samples, rng, where=where, method=method)
            return dict(drawn.items())
        codes = self.synopsis_.sample_codes(n_samples, rng, method=method)
        return dict(self.synopsis_.counted.decode(codes, rng).items())

    def _counted(self, domain):
        """The domain whose codes are counted."""
        return domain

    def _together(self, domain):
        """Attributes in every count that it asks for; None if it needs the whole table."""
        return None

    def _parts(self, epsilon, domain):
        """Divide epsilon, from public facts alone."""
        raise NotImplementedError

    def _release(self, table, domain, loss, source):
        """Measure the table within ``loss.parts``."""
        raise NotImplementedError
