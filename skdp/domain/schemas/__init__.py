"""Schemas in the formats that people have, read as domains; no row is ever read.

Each reader fills in one `Field` for each column, as the format says it. `Field.settle` reads what
is written there, and `build` makes attributes of it, or one error with everything that is missing.

============  ======================================================================================
``build``     `from_schema`: one door for all formats; fields become attributes; the one error
``field``     `Field`: what a schema says about one column
``cells``     what people write: names of types, numbers, ranges, lists of values
``codebook``  code books: CSV, Excel, frames
``dtypes``    frames and listings of types: pandas, Polars, Arrow, DuckDB, Dask, Spark
``formats``   Frictionless, JSON Schema, pandera, pydantic, SDV, NIST
``skeleton``  code or YAML with every range to fill in
============  ======================================================================================
"""

from .build import from_schema
from .skeleton import Code, Draft, draft_text, skeleton

__all__ = ["Code", "Draft", "draft_text", "from_schema", "skeleton"]
