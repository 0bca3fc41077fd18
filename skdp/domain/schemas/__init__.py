"""Schemas in the formats that people have, read as domains; no row is ever read.

Each reader turns one format into `Field` objects, which say of each column what the format says;
`build` makes the domain of them, or one error with everything that is missing.

=================  =================================================================================
``api``            `from_schema`: one door for all formats
``field``          `Field`: what a schema says about one column
``build``          fields become attributes; the one error
``recognise``      which format a source has; JSON and YAML files
``dtypes``         frames and listings of types: pandas, Polars, Arrow, DuckDB, Dask, Spark
``words``          names of types, as databases and people write them
``bounds``         text that stands for numbers and dates
``codebook``       code books; ``book_table`` reads the file, ``book_cells`` the cells
``frictionless``   Table Schema of Frictionless Data
``pandera``        DataFrameSchema, DataFrameModel
``pydantic``       models
``json_schema``    JSON Schema
``sdv``            metadata of SDV
``sdnist``         schemas and dictionaries of NIST's excerpts
``skeleton``       code or YAML with every range to fill in
=================  =================================================================================
"""

from .api import from_schema
from .skeleton import Code, Draft, draft_text, skeleton

__all__ = ["Code", "Draft", "draft_text", "from_schema", "skeleton"]
