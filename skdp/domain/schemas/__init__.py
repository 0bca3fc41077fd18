"""Domains from code books and from types, and skeletons of domains; no row is ever read.

Each reader fills in one `Field` for each column. `Field.settle` reads what is written there, and
`build` makes attributes of it, or one error with everything that is missing.

============  ======================================================================================
``build``     `from_schema`: fields become attributes; the one error
``field``     `Field`: what a schema says about one column
``cells``     what people write: names of types, numbers, ranges, lists of values
``codebook``  code books in CSV
``dtypes``    frames and listings of types: pandas, Polars, Arrow, DuckDB, Dask, Spark
``skeleton``  code or JSON with every range to fill in
============  ======================================================================================
"""

from .build import from_schema
from .skeleton import Code, Draft, draft_text, skeleton

__all__ = ["Code", "Draft", "draft_text", "from_schema", "skeleton"]
