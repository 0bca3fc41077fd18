"""Bounding the rows of each person, inside an engine."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw

# Privacy of the bounds below. Whether a row is kept depends on the rows of the same person and on
# a secret key only: equal rows of a person are numbered (which of them gets which number changes
# nothing), each gets a hash of person, codes and number, and the first of each person stay.


def _bound_polars(frame: Any, unit: str, names: list[str], most: int, key: int) -> Any:
    pl: Any = nw.get_native_namespace(frame)
    number, order = f"{unit}_number", f"{unit}_order"
    native = nw.to_native(frame).with_columns(
        pl.int_range(pl.len()).over(unit, *names).alias(number)
    )
    hashed = pl.struct(unit, *names, number).hash(key)
    native = native.with_columns(hashed.alias(order))
    return nw.from_native(native.filter(pl.col(order).rank("ordinal").over(unit) <= most))


def _bound_duckdb(frame: Any, unit: str, names: list[str], most: int, key: int) -> Any:
    row, number, order = ", ".join([unit, *names]), f"{unit}_number", f"{unit}_order"
    relation = nw.to_native(frame)
    relation = relation.select(f"*, row_number() OVER (PARTITION BY {row}) AS {number}")
    relation = relation.select(f"*, hash({row}, {number}, {key}::UBIGINT) AS {order}")
    rank = f"row_number() OVER (PARTITION BY {unit} ORDER BY {order})"
    relation = relation.select(f"*, {rank} AS {unit}_rank")
    return nw.from_native(relation.filter(f"{unit}_rank <= {most}"))


def _bound_pyspark(frame: Any, unit: str, names: list[str], most: int, key: int) -> Any:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    row, number, order = [unit, *names], f"{unit}_number", f"{unit}_order"
    equal = Window.partitionBy(*row).orderBy(F.lit(0))
    native = nw.to_native(frame).withColumn(number, F.row_number().over(equal))
    # Spark's integers have a sign.
    native = native.withColumn(order, F.xxhash64(*row, number, F.lit(key - 2**63)))
    rank = F.row_number().over(Window.partitionBy(unit).orderBy(order))
    return nw.from_native(native.withColumn(f"{unit}_rank", rank).filter(f"{unit}_rank <= {most}"))


BOUNDS = {"polars": _bound_polars, "duckdb": _bound_duckdb, "pyspark": _bound_pyspark}
