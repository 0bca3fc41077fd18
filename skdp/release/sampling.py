"""Synthetic rows of a release: all of them, those under a condition, those given some columns."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._validation import BoolArray, CodeArray, FloatArray, IntArray, as_sample_size, check_choice
from ..domain import Domain, Identifier, Numeric
from ..domain.attributes import read
from ..domain.constraints import merged, narrowed
from ..domain.query import Query
from ..domain.values import fill_series, some
from .conditions import Bounds, Condition, Known
from .model import Release, Weights
from .rounding import round_line

# --- numbers drawn beside known ones: rules of `at_most` hold for the values, not only for codes


class Beside:
    """Compares drawn numbers with known ones.

    A cell may hold values below a known bound and lie mostly above it, or begin above it: the
    rules, which are about cells, do not see where in its cell a known value is.

    Parameters
    ----------
    known : Known
    """

    def __init__(self, known: Known) -> None:
        self.domain: Domain = known.domain
        structure = known.domain.structure
        self.pairs = [
            (name, bound) for name, bounds in structure.bounds.items() for bound in bounds
        ]
        names = {name for pair in self.pairs for name in pair}
        nothing = np.full(known.n_rows, np.nan)
        self.known: dict[str, FloatArray] = {
            name: known.numbers(name) if name in known.names else nothing for name in names
        }

    def astray(self, rows: IntArray, frame: pd.DataFrame) -> BoolArray:
        """Rows whose drawn numbers break a rule beside the known ones.

        Parameters
        ----------
        rows : ndarray of int
            Positions of the rows.
        frame : DataFrame
            What was drawn for them.
        """
        numbers = {
            name: np.where(
                np.isnan(given[rows]), _numbers_in(frame, name, self.domain[name]), given[rows]
            )
            for name, given in self.known.items()
        }
        wrong = np.zeros(len(rows), dtype=bool)
        for name, bound in self.pairs:
            fixed = ~np.isnan(self.known[name][rows]) & ~np.isnan(self.known[bound][rows])
            wrong |= (numbers[name] > numbers[bound]) & ~fixed
        return wrong

    def groups(self, rows: IntArray) -> list[tuple[IntArray, dict[int, FloatArray]]]:
        """Rows whose known values leave the same codes of other columns, and weights of these."""
        found: dict[tuple[Any, ...], tuple[list[int], dict[int, FloatArray]]] = {}
        for row in rows.tolist():
            possible = self._possible(row)
            key = tuple((axis, each.tobytes()) for axis, each in possible.items())
            found.setdefault(key, ([], possible))[0].append(row)
        return [(np.array(group), possible) for group, possible in found.values()]

    def _possible(self, row: int) -> dict[int, FloatArray]:
        """Weights of the codes that have values on the right side of the known ones of a row."""
        weights: dict[int, FloatArray] = {}
        for name, bound in self.pairs:
            least, most = self.known[name][row], self.known[bound][row]
            if np.isnan(least) == np.isnan(most):
                continue
            unknown = name if np.isnan(least) else bound
            attribute = self.domain[unknown]
            assert isinstance(attribute, Numeric)
            low, high = attribute.span(np.arange(attribute.size))
            # The missing cell compares as nan, and satisfies every rule.
            own = ~(low > most) if unknown == name else ~(high < least)
            axis = self.domain.index(unknown)
            weights[axis] = own * weights.get(axis, 1.0)
        return weights


# --- rows that satisfy a condition and the public structure of the domain at once

# How often rows are drawn again that break the structure, before a search takes their place.
_REDRAWS = 30
# How often the search for one row begins anew.
_STARTS = 200


class Lawful:
    """Draws of rows that break no rule.

    A release that honours the structure gives such rows little or no probability. Few are drawn:
    where a condition has probability zero, or where rules hold in its weighted records only.

    Parameters
    ----------
    domain : Domain
    weights : mapping of int to ndarray
        Weight of each code, for the attributes with a condition.
    query : dict, str or None
        The condition, for messages.

    Attributes
    ----------
    weights : dict of int to ndarray
        Without the codes that the rules exclude under the condition.

    Raises
    ------
    ValueError
        If the rules leave no code of some attribute.
    """

    def __init__(self, domain: Domain, weights: Mapping[int, FloatArray], query: Any) -> None:
        self.domain = domain
        self.zeros = domain.structure.zeros
        self.weights = dict(weights)
        self._query = query
        if not self.zeros or not weights:
            return
        start = {axis: each > 0 for axis, each in weights.items()}
        possible = self._propagated(start)
        if possible is None:
            if query is None:
                return  # contradicting values of given rows: each row is repaired by itself
            raise self.refused(query)
        for axis, allowed in possible.items():
            if axis in self.weights or not allowed.all():
                own = self.weights.get(axis, np.ones(len(allowed)))
                self.weights[axis] = own * allowed

    @staticmethod
    def refused(query: Any) -> ValueError:
        """Why no row satisfies a condition."""
        return ValueError(
            f"No row can satisfy where={query!r}: the structure of the domain forbids it."
        )

    def draw(
        self,
        draw: Callable[[CodeArray, np.random.Generator, Weights], CodeArray],
        known: CodeArray,
        generator: np.random.Generator,
    ) -> CodeArray:
        """Fill rows of codes where they are -1.

        Parameters
        ----------
        draw : callable
            Fills rows by the model, as `Release.sample_given`.
        known : ndarray of int32, shape (n_rows, n_attributes)
        generator : numpy.random.Generator
        """
        codes = draw(known, generator, self.weights)
        if not self.zeros:
            return codes
        structure = self.domain.structure
        rows = np.flatnonzero(structure.breaks(codes))
        for _ in range(_REDRAWS):
            if not len(rows):
                return codes
            codes[rows] = draw(known[rows], generator, self.weights)
            rows = rows[structure.breaks(codes[rows])]
        for row in rows.tolist():
            found = self._search(codes[row], known[row], generator)
            if found is None:
                # Known values that no rule allows together count as unknown.
                found = self._search(codes[row], np.full_like(known[row], -1), generator)
            if found is None:
                raise ValueError(
                    f"No row was found that satisfies where={self._query!r} and the structure of "
                    "the domain."
                )
            codes[row] = found
        return codes

    def _propagated(self, start: Mapping[int, BoolArray]) -> dict[int, BoolArray] | None:
        """Codes of each attribute under rules that some allowed cell has; None if there are none.

        Each table of rules is looked at by itself, until nothing changes.
        """
        given = [((axis,), allowed) for axis, allowed in start.items()]
        found = narrowed(merged([*self.zeros, *given]))
        if found is None:
            return None
        return {axes[0]: each for axes, each in found.items() if len(axes) == 1}

    def _search(
        self, drawn: CodeArray, known: CodeArray, generator: np.random.Generator
    ) -> CodeArray | None:
        """A row that breaks no rule, near the one drawn."""
        start = {axis: each > 0 for axis, each in self.weights.items()}
        for axis in np.flatnonzero(known >= 0).tolist():
            start[axis] = np.arange(self.domain.shape[axis]) == known[axis]
        first = self._propagated(start)
        if first is None:
            return None
        for _ in range(_STARTS):
            possible: dict[int, BoolArray] | None = dict(first)
            row = drawn.copy()
            for axis in generator.permutation(sorted(first)).tolist():
                assert possible is not None
                codes = np.flatnonzero(possible[axis])
                if not possible[axis][row[axis]]:
                    row[axis] = codes[int(generator.integers(len(codes)))]
                possible[axis] = np.arange(len(possible[axis])) == row[axis]
                possible = self._propagated(possible)
                if possible is None:
                    break
            if possible is not None:
                return row
        return None


def must_be_missing(domain: Domain, codes: CodeArray, axis: int) -> BoolArray:
    """Rows in which a rule leaves a nullable column no value, given the known values of others.

    Parameters
    ----------
    domain : Domain
    codes : ndarray of int32, shape (n_rows, n_attributes)
        -1 where they are unknown.
    axis : int
    """
    forced = np.zeros(len(codes), dtype=bool)
    for zeros in domain.structure.zeros:
        if axis not in zeros.axes:
            continue
        others = [other for other in zeros.axes if other != axis]
        rows = np.flatnonzero((codes[:, others] >= 0).all(axis=1))
        table = np.moveaxis(zeros.allowed, zeros.axes.index(axis), -1)
        allowed = table[tuple(codes[rows, other] for other in others)]
        forced[rows] |= ~np.broadcast_to(allowed, (len(rows), table.shape[-1]))[:, :-1].any(axis=1)
    return forced


# Rows, and which of them must be drawn again.
_Drawn = tuple[pd.DataFrame, BoolArray]
# Ways of drawing rows.
METHODS = ("rounded", "independent")
# How often rows are drawn again whose values cannot satisfy condition and structure at once.
_ROUNDS = 50
# The same for rows beside given values, before codes that contradict these are left out.
_GIVEN_ROUNDS = 10


def draw_codes(
    model: Release,
    domain: Domain,
    n_samples: Any,
    generator: np.random.Generator,
    where: Any,
    method: str,
) -> tuple[CodeArray, Condition]:
    """Codes of synthetic rows, and the condition that they satisfy.

    Parameters
    ----------
    model : Release
    domain : Domain
    n_samples : int or None
        None: as many as the release estimates under the condition.
    generator : numpy.random.Generator
    where : dict, str or None
        As in `parse`.
    method : {"rounded", "independent"}
    """
    check_choice(method, "method", METHODS)
    draw_some = model.sample_codes if method == "independent" else model.round_codes
    condition = Condition(where, domain)
    if condition.nothing:
        number = as_sample_size(n_samples, model.total, len(domain))
        return draw_some(number, generator), condition
    # Conjunctions that the structure of the domain allows.
    lawful: dict[int, Lawful] = {}
    for place, part in enumerate(condition.parts):
        with contextlib.suppress(ValueError):
            lawful[place] = Lawful(domain, part.weights, where)
    if not lawful:
        raise Lawful.refused(where)
    answers = np.zeros(0)
    if n_samples is None or len(lawful) > 1:
        answers = model.answer([Query((condition.parts[place].asked,)) for place in lawful])
    number = as_sample_size(n_samples, float(answers.sum()), len(domain))

    def draw(known: CodeArray, generator: np.random.Generator, weights: Weights) -> CodeArray:
        return draw_some(len(known), generator, weights)

    drawn = []
    numbers = _divided(number, answers, method, generator)
    for each, rows in zip(lawful.values(), numbers, strict=True):
        unknown = np.full((rows, len(domain)), -1, dtype=np.int32)
        drawn.append(each.draw(draw, unknown, generator))
    if len(drawn) == 1:
        return drawn[0], condition
    return np.concatenate(drawn)[generator.permutation(number)], condition


def _divided(
    number: int, answers: FloatArray, method: str, generator: np.random.Generator
) -> list[int]:
    """Numbers of rows of disjoint conjunctions, in proportion to what the release estimates."""
    if len(answers) < 2:
        return [number]
    shares = np.maximum(answers, 0.0)
    if not shares.any():
        shares = np.ones(len(answers))
    if method == "independent":
        return generator.multinomial(number, shares / shares.sum()).tolist()
    return round_line(shares, number, generator).tolist()


def draw_frame(
    model: Release,
    domain: Domain,
    n_samples: Any,
    generator: np.random.Generator,
    where: Any = None,
    given: Any = None,
    method: str = "rounded",
) -> pd.DataFrame:
    """Synthetic rows; see `Synopsis.sample`.

    Codes alone do not tell whether values can satisfy a rule of `at_most` and the condition at
    once: rows whose values cannot are drawn again.
    """
    if given is not None:
        check_choice(method, "method", METHODS)
        return _complete(model, domain, n_samples, generator, where, given)
    codes, condition = draw_codes(model, domain, n_samples, generator, where, method)

    def decoded(codes: CodeArray) -> _Drawn:
        bounds = condition.bounds(codes, generator)
        frame = domain.decode(codes, generator, within=bounds)
        return frame, _outside(domain, frame, bounds)

    def draw(rows: IntArray) -> _Drawn:
        return decoded(draw_codes(model, domain, len(rows), generator, where, method)[0])

    frame, wrong = decoded(codes)
    frame, rows = _redrawn(domain, frame, np.flatnonzero(wrong), draw, _ROUNDS)
    if len(rows):
        raise _contradiction(condition, domain)
    return frame


def _redrawn(
    domain: Domain,
    frame: pd.DataFrame,
    rows: IntArray,
    draw: Callable[[IntArray], _Drawn],
    rounds: int,
) -> tuple[pd.DataFrame, IntArray]:
    """A frame with rows drawn again until none is wrong, and those that still are."""
    for _ in range(rounds):
        if not len(rows):
            break
        fresh, wrong = draw(rows)
        frame = _replaced(domain, frame, rows, fresh)
        rows = rows[wrong]
    return frame, rows


def _outside(domain: Domain, frame: pd.DataFrame, bounds: Mapping[str, Bounds]) -> BoolArray:
    """Rows in which a column that rules compare is not within the bounds of a condition."""
    wrong = np.zeros(len(frame), dtype=bool)
    for name in bounds.keys() & set(domain.structure.compared):
        numbers, (low, high) = _numbers_in(frame, name, domain[name]), bounds[name]
        wrong |= (numbers < low) | (numbers > high)
    return wrong


def _numbers_in(frame: pd.DataFrame, name: str, attribute: Any) -> FloatArray:
    """The numbers of a column of drawn rows."""
    numbers: FloatArray = read(frame[[name]]).column(name).numbers(attribute.coding().clock)
    return numbers


def _contradiction(condition: Condition, domain: Domain) -> ValueError:
    compared = [name for name in condition.columns if name in domain.structure.compared]
    return ValueError(
        f"No row was found that satisfies where={condition.query!r} and the rules of at_most "
        f"on {some(compared)}: they seem to contradict each other."
    )


def _replaced(domain: Domain, frame: pd.DataFrame, rows: Any, fresh: pd.DataFrame) -> pd.DataFrame:
    """A frame with other values in some rows, of the same types."""
    kept = np.setdiff1d(np.arange(len(frame)), rows)
    both = pd.concat([frame.iloc[kept], fresh])
    back = np.argsort(np.concatenate([kept, rows]))
    both = both.iloc[back].reset_index(drop=True)
    for name in domain.columns:
        if isinstance(domain.declared(name), Identifier):
            both[name] = frame[name]  # those of fresh rows begin with 1 again
    return both


def _complete(
    model: Release,
    domain: Domain,
    n_samples: Any,
    generator: np.random.Generator,
    where: Any,
    given: Any,
) -> pd.DataFrame:
    """One row for each row of ``given``."""
    known = Known.read(given, domain, "given")
    known.forget_contradictions()
    if n_samples is not None and as_sample_size(n_samples, 0.0, 1) != known.n_rows:
        raise ValueError(
            f"n_samples={n_samples!r}, but given has {known.n_rows} rows, and one row is drawn for "
            "each of them. Leave n_samples out; for several draws repeat the rows of given."
        )
    condition = Condition(where, domain)
    base = domain.structure.base_of
    decided = {base(name) for name in known.names}
    both = [name for name in condition.columns if base(name) in decided]
    if both:
        raise ValueError(
            f"where has a condition on {some(both)}, which given holds: its values are kept as "
            "they are. Select the rows of given instead, or leave the condition out."
        )
    if len(condition.parts) > 1:
        raise ValueError(
            f"where={where!r} joins conditions on several columns by 'or', which is not supported "
            "together with given. Draw with each of them by itself, or leave out given."
        )
    drawn = _draw_beside(model, known, condition.parts[0].weights, condition, generator)
    drawn.index = known.index
    for name in known.names:
        drawn[name] = known.values(name)
    return drawn


def _draw_beside(
    model: Release,
    known: Known,
    weights: Mapping[int, FloatArray],
    condition: Condition,
    generator: np.random.Generator,
) -> pd.DataFrame:
    """Rows given their known values, with numbers that obey the rules beside these."""
    domain, fixed = known.domain, known.bounds()

    def draw(rows: IntArray, weights: Mapping[int, FloatArray] = weights) -> _Drawn:
        """Rows, and which of them break a rule or the condition."""
        codes = _given_codes(model, known.at(rows), weights, condition.query, generator)
        asked = condition.bounds(codes, generator)
        own = {name: (low[rows], high[rows]) for name, (low, high) in fixed.items()}
        fresh = domain.decode(codes, generator, within=own | asked)
        failed[rows] = _outside(domain, fresh, asked)
        return fresh, beside.astray(rows, fresh) | failed[rows]

    beside = Beside(known)
    failed = np.zeros(known.n_rows, dtype=bool)
    frame, wrong = draw(np.arange(known.n_rows))
    frame, rows = _redrawn(domain, frame, np.flatnonzero(wrong), draw, _GIVEN_ROUNDS)
    for group, possible in beside.groups(rows):
        # Known values leave few codes: draw among them. If they leave none, the rows stay.
        own = {axis: weights.get(axis, 1.0) * each for axis, each in possible.items()}
        with contextlib.suppress(ValueError):
            again = functools.partial(draw, weights={**weights, **own})
            frame, _ = _redrawn(domain, frame, group, again, _ROUNDS)
    # The condition holds in every row: known values that contradict it count as unknown.
    rows = np.flatnonzero(failed)
    for name in domain.structure.compared:
        known.codes[rows, domain.index(name)] = -1
        if name in fixed:
            fixed[name][0][rows] = np.nan

    def held(rows: IntArray) -> _Drawn:
        """Rows, and which of them break the condition."""
        return draw(rows)[0], failed[rows]

    frame, rows = _redrawn(domain, frame, rows, held, _ROUNDS)
    if len(rows):
        raise _contradiction(condition, domain)
    return frame


def _given_codes(
    model: Release,
    known: Known,
    weights: Mapping[int, FloatArray],
    query: Any,
    generator: np.random.Generator,
) -> CodeArray:
    """Codes of rows given their known values."""
    codes = known.codes.copy()
    for rows, told in known.groups():
        lawful = Lawful(known.domain, {**weights, **told}, query)
        codes[rows] = lawful.draw(model.sample_given, codes[rows], generator)
    return codes


def fill_frame(
    model: Release,
    domain: Domain,
    frame: Any,
    columns: Sequence[str] | str | None,
    generator: np.random.Generator,
) -> pd.DataFrame:
    """A frame with its missing values drawn; see `Synopsis.impute`."""
    known = Known.read(frame, domain, "frame")
    drawn, gaps = fill_columns(model, known, columns, generator)
    values = {name: known.values(name) for name in known.names}
    filled = {name: fill_series(values[name], drawn[name], gap) for name, gap in gaps.items()}
    return pd.DataFrame(values | filled, index=known.index)


def fill_columns(
    model: Release,
    known: Known,
    columns: Sequence[str] | str | None,
    generator: np.random.Generator,
) -> tuple[dict[str, pd.Series], dict[str, BoolArray]]:
    """Values for the columns of a frame in which some are missing, and where they are."""
    domain = known.domain
    names = [name for name in known.names if domain.find(name) is not None]
    names = names if columns is None else _listed_columns(columns, names)
    gaps = {name: known.missing(name) for name in names}
    for name, gap in gaps.items():
        if name in known.derived:
            known.derived[name][gap] = -1
        if name in domain.names:
            known.codes[gap, domain.index(name)] = -1
    known.forget_contradictions()
    weights: dict[int, FloatArray] = {}
    for name in gaps:
        if name not in domain.names or not domain[name].nullable:
            continue
        # What is filled in is a value, but where the structure says that there is none.
        axis, n_values = domain.index(name), domain[name].n_values
        weights[axis] = np.append(np.ones(n_values), 0.0)
        empty = gaps[name] & must_be_missing(domain, known.codes, axis)
        known.codes[empty, axis] = n_values
        gaps[name] = gaps[name] & ~empty
    gaps = {name: gap for name, gap in gaps.items() if gap.any()}
    drawn = _draw_beside(model, known, weights, Condition(None, domain), generator)
    return {name: drawn[name] for name in gaps}, gaps


def _listed_columns(columns: Any, names: Sequence[str]) -> list[str]:
    listed = [columns] if isinstance(columns, str) else list(columns)
    unknown = [name for name in listed if name not in names]
    if unknown:
        raise ValueError(f"columns names {some(unknown)}, but frame has {some(list(names))}.")
    return listed
