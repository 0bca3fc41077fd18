"""What tests of lazy frames share: silent engines, and frames of PySpark."""

import functools

import pytest

pa = pytest.importorskip("pyarrow")

# What the engines do inside is their affair.
ENGINE_WARNINGS = [
    pytest.mark.filterwarnings(f"ignore::{category}:{module}")
    for category in ("DeprecationWarning", "FutureWarning")
    for module in (r"dask\..*", r"distributed\..*", r"pyspark\..*")
]


def arrow(frame):
    if isinstance(frame, pa.Table):
        return frame
    return pa.Table.from_pandas(frame, preserve_index=False)


@functools.cache
def spark_session():
    sql = pytest.importorskip("pyspark.sql")
    builder = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    return builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()


def spark_frame(frame):
    table = arrow(frame)
    rows = list(zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True))
    names = {"double": "double", "int64": "bigint", "string": "string", "large_string": "string"}
    types = {**names, "bool": "boolean", "float": "float", "int32": "int"}
    schema = ", ".join(f"`{field.name}` {types[str(field.type)]}" for field in table.schema)
    return spark_session().createDataFrame(rows, schema)
