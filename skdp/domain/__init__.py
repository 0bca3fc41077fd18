"""Domain: what is publicly known about a table, and the map between its rows and integer codes.

A domain is declared, never read from private rows. It says which columns exist, which values
they can have and which code each value gets. Values never raise: a number outside its range is
clipped, an unknown category becomes ``other`` if declared, a missing value the missing cell if
there is one, and a record that cannot be represented otherwise gets the code -1 and is skipped.
Each record is treated by itself, because an exception that depends on a value would answer a
membership question for free. Only the schema (columns and declared types) is checked with errors.

================  ==================================================================================
``domain``        `Domain`: records to codes and back
``columns``       names and declarations of the columns of a domain
``attribute``     what both kinds of columns share: codes, labels, levels
``numeric``       `Numeric`: a range, cut into bins
``dates``         `Date` and `Datetime`: ranges of days and of times
``clock``         whole units since 1970, and moments as users write them
``binned``        labels and groups of bins
``bins``          where a range is cut: evenly, at edges, on a scale
``lattice``       the fine bins of ``bins="auto"``
``scales``        linear, log and square root
``grids``         the possible values of integers, steps and decimals
``contents``      which numbers a bin holds: draws, means, shares of bins
``categorical``   `Categorical`: a list of categories
``domains``       domains that everybody knows: ages, months, countries
``enums``         categories that a type declares
``identifiers``   `Identifier`: columns that are never measured
``taxonomy``      `Taxonomy`: nested groups of categories
``rules``         what is known about how columns depend on each other, as it is declared
``rules_data``    rules read from plain data, such as JSON
``structure``     `Structure`: rules compiled into derived columns and empty cells
``compiling``     what rules may be, and how they follow from each other
``maps``          derived columns: the code for each code of the base
``consistency``   tables of allowed cells, and which of them contradict
``numberline``    numbers for rules: values of each code, draws within bounds
``drawing``       rows for codes, so that rules hold for the values too
``conditions``    a dict or a text as conditions on columns
``query_text``    conditions written as text
``alternatives``  conditions joined by or and not, as disjoint conjunctions
``classes``       values of a column that some conditions do not separate
``regions``       the part of one attribute that a condition covers
``filling``       a column with drawn values in its gaps
``values``        numbers, categories and flags as they are declared
``data``          domains as JSON holds them
``inference``     columns read from data: not private
``public``        `PublicTable`: rows that are declared to be public
``doctor``        what a declaration misses in the records: not private
``report``        what a domain would do to the records of a frame
``declaring``     methods of `Domain` for schemas, YAML and notebooks
``schemas``       domains from schemas in other formats, and skeletons of domains
``shown``         a domain as a table that a person can read
``difference``    what differs between two domains
``yaml_text``     domains as YAML
``reading``       how a domain gets at rows, without importing `skdp.rows`
================  ==================================================================================
"""

from . import domains
from .attribute import Attribute, Level
from .categorical import Categorical
from .dates import Date, Datetime
from .domain import Domain
from .identifiers import Identifier, Text
from .numeric import FEW_BINS, Numeric
from .public import PublicTable
from .report import DomainReport
from .rules import (
    Rule,
    at_most,
    derived,
    forbid,
    missing_together,
    only_if,
    total_of,
    within,
)
from .rules_data import structure_from_data
from .structure import Structure, Zeros
from .taxonomy import Taxonomy

__all__ = [
    "FEW_BINS",
    "Attribute",
    "Categorical",
    "Date",
    "Datetime",
    "Domain",
    "DomainReport",
    "Identifier",
    "Level",
    "Numeric",
    "PublicTable",
    "Rule",
    "Structure",
    "Taxonomy",
    "Text",
    "Zeros",
    "at_most",
    "derived",
    "domains",
    "forbid",
    "missing_together",
    "only_if",
    "structure_from_data",
    "total_of",
    "within",
]
