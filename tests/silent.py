"""The steps that may stand in front of a private one, and tables of every type of column.

`privacy_report` lets them pass because they treat each row by itself and are silent. So here one
record more, with an odd value, may change neither what becomes of the other records nor whether a
step raises or warns.
"""

import contextlib
import datetime
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from odd_values import ODD_VALUES, Unruly
from pipelines import applied, clip, numbers, texts
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp.preprocessing import as_numbers
from skdp.tables import object_array


class _OddText(str):
    """Text that raises when it is compared."""

    __slots__ = ()
    __eq__ = __hash__ = __lt__ = __str__ = Unruly.refuse  # type: ignore[assignment]


_NUMBERS = (0, -0.0, -3, 1e-320, -1e300, 3e38, np.inf, 2**53 + 1, -(2**63), Decimal("NaN"))
_TEXTS = ("a", "", "c" * 99, "nan", "-inf", "1e999", "\ud800")
_OTHERS = {"a late time": datetime.datetime(9999, 12, 31, 23), "a set": {1}, "a type": int}
_CELLS: dict[str, Any] = {
    **ODD_VALUES,
    **{f"number {value}": value for value in _NUMBERS},
    **{f"text {value!r}": value for value in _TEXTS},
    **_OTHERS,
    "odd text": _OddText("a"),
}

_Maker = Callable[[list[Any]], Any]


def _pandas(dtype: Any) -> _Maker:
    return lambda cells: pd.DataFrame({"a": pd.Series(cells, dtype=dtype)})


def _numpy(dtype: str, cells: list[Any]) -> Any:
    return np.array(cells, dtype=dtype)[:, None]


def _arrow(pyarrow: Any, kind: Any, cells: list[Any]) -> Any:
    return pyarrow.table({"a": pyarrow.array(cells, kind)})


def _tables() -> Iterator[tuple[str, list[Any], _Maker]]:
    """Names of types, three cells that every table of the type holds, and what makes the table."""
    numbers: list[Any] = [1, 0, 1]
    words: list[Any] = ["a", "b", "c"]
    for dtype in ("float64", "float32", "int64", "int8", "uint64", "bool"):
        yield f"numpy {dtype}", numbers, partial(_numpy, dtype)
    yield "numpy U9", words, partial(_numpy, "U9")
    yield "numpy M8[s]", ["2020-01-01"] * 3, partial(_numpy, "M8[s]")
    for kind, usual in (("numbers", numbers), ("texts", words)):
        yield f"numpy objects, {kind}", usual, lambda c: object_array(c)[:, None]
        yield f"pandas objects, {kind}", usual, _pandas(object)
        yield f"pandas category, {kind}", usual, _pandas("category")
        yield f"pandas, inferred, {kind}", usual, lambda c: pd.DataFrame({"a": c})
        yield f"a list of rows, {kind}", usual, lambda c: [[cell] for cell in c]
    for dtype in ("float64", "Float64", "Int64", "Int8", "boolean"):
        yield f"pandas {dtype}", numbers, _pandas(dtype)
    yield "pandas string", words, _pandas("string")
    yield "pandas dates", ["2020-01-01"] * 3, _pandas("datetime64[ns]")
    if find_spec("pyarrow"):
        import pyarrow as pa

        decimals, coded = pa.decimal128(9, 2), pa.dictionary(pa.int32(), pa.string())
        made = ((pa.float64(), numbers), (decimals, [*map(Decimal, numbers)]), (coded, words))
        for arrow, usual in made:
            yield f"pandas Arrow {arrow}", usual, _pandas(pd.ArrowDtype(arrow))
            yield f"Arrow {arrow}", usual, partial(_arrow, pa, arrow)
    if find_spec("polars"):
        import polars as pl

        for held in (pl.Int64, pl.Categorical, pl.Object):
            usual = numbers if held == pl.Int64 else words
            yield f"Polars {held}", usual, _polars(pl.Series, held)


def _polars(series: Any, kind: Any) -> _Maker:
    def make(cells: list[Any]) -> Any:
        # Polars panics on odd decimals, which is not an Exception, and prints what objects raise.
        if any(isinstance(cell, Decimal | Unruly | _OddText) for cell in cells):
            raise TypeError("not for Polars")
        return series("a", cells, dtype=kind).to_frame()

    return make


@cache
def tables() -> dict[str, tuple[list[Any], _Maker]]:
    """Cells that every table of a type holds, and what makes such a table, by the type's name."""
    return {name: (usual, make) for name, usual, make in _tables()}


def _steps() -> Iterator[tuple[str, Any]]:
    """All kinds of steps that `privacy_report` lets pass in front of a private one."""
    yield "as_numbers", numbers()
    yield "as_texts", texts()
    yield "as_numbers, clip", make_pipeline(numbers(), clip(-1, 1))
    yield "as_numbers, nan_to_num", make_pipeline(numbers(), applied(np.nan_to_num))
    fill = applied(np.nan_to_num, kw_args={"nan": -1.0})
    yield "as_numbers, all", make_pipeline(numbers(), fill, clip(0, 1))
    # Side by side.
    parts = [("n", make_pipeline(numbers(), clip(0, 1))), ("t", texts())]
    yield "as_numbers, FeatureUnion", FeatureUnion(parts)
    columns = [(name, step, [0]) for name, step in parts]
    yield "as_numbers, ColumnTransformer", ColumnTransformer(columns)
    for library in ("pandas", "polars"):
        if find_spec(library):
            made = make_pipeline(
                FunctionTransformer(as_numbers, feature_names_out="one-to-one"),
                clip(0, 1).set_params(feature_names_out="one-to-one"),
            )
            yield f"as_numbers, frames of {library}", made.set_output(transform=library)


#: Steps, alone or behind those that they need, by names that begin with as_numbers or as_texts.
SILENT_STEPS = dict(_steps())


@cache
def _pairs(kind: str) -> tuple[Any, dict[str, Any]]:
    """A table of a type, and the same table with a record more, by the name of its odd cell."""
    usual, make = tables()[kind]
    found = {}
    for name, cell in _CELLS.items():
        if name == "a complex number" and ("inferred" in kind or "category" in kind):
            continue  # that makes a table of complex numbers, which is refused by its type
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Most types do not hold most cells.
            found[name] = make([*usual, cell])
    return make(list(usual)), found


def outcomes(step: Any, types: list[str], odd: bool) -> dict[str, Any]:
    """What becomes of the usual cells of tables, with a record more where ``odd``.

    Returns
    -------
    dict
        By type and odd cell.
    """
    found = {}
    for kind in types:
        if kind.startswith("a list") and isinstance(step, ColumnTransformer):
            continue  # it makes an array of them by itself, which may have three dimensions
        table, pairs = _pairs(kind)
        usual = None if odd else _outcome(step, table)
        for name, more in pairs.items():
            found[f"{kind}, {name}"] = _outcome(step, more) if odd else usual
    return found


def _outcome(step: Any, table: Any) -> Any:
    """The types, and what becomes of the rows without the odd one; or the error."""
    with warnings.catch_warnings(), np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("error")
        try:
            made = step.fit_transform(table)
        except Exception as error:
            return type(error).__name__
    types: Any = getattr(made, "dtypes", getattr(made, "dtype", None))
    return list(map(str, np.atleast_1d(types))), np.asarray(made)[:3].tolist()
