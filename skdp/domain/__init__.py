"""Domain: what is publicly known about a table, and the map between its rows and integer codes.

A domain is declared, never read from private rows. It says which columns exist, which values
they can have and which code each value gets. Values never raise: a number outside its range is
clipped, an unknown category becomes ``other`` if declared, a missing value the missing cell if
there is one, and a record that cannot be represented otherwise gets the code -1 and is skipped.
Each record is treated by itself, because an exception that depends on a value would answer a
membership question for free. Only the schema (columns and declared types) is checked with errors.

===============  =================================================================================
``attributes``   what attributes share: codes, labels and levels; :class:`Categorical`,
                 `Numeric`: a range, cut into bins; `Identifier`, `Text`; how a domain gets at rows
``bins``         numbers, categories and flags as they are declared; how a range is cut into bins,
                 which numbers each holds, automatic fine bins
``check``        what a declaration does to the records of a table, and what it misses: not
                 private; drafts of declarations, with blanks
``constraints``  rules between columns: declared, compiled, kept by drawn rows
``dates``        `Date` and `Datetime`: ranges of days and of times, on a line of whole units
``domain``       `Domain`: columns and their declarations; records to codes and back; domains in
                 short, in JSON, from frames and code books
``query``        conditions on columns: regions, the part of an attribute that each covers; parsed
                 from text or from a dict, joined by or and not; as weights
``taxonomy``     `Taxonomy`: nested groups of categories
===============  =================================================================================
"""

from .attributes import Attribute, Categorical, Identifier, Level, Numeric, Text
from .bins import FEW_BINS
from .check import DomainReport
from .constraints import Rule, Structure, Zeros, at_most, derived, forbid
from .dates import Date, Datetime
from .domain import Domain
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
    "Rule",
    "Structure",
    "Taxonomy",
    "Text",
    "Zeros",
    "at_most",
    "derived",
    "forbid",
]
