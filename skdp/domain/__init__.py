"""Domain: what is publicly known about a table, and the map between its rows and integer codes.

A domain is declared, never read from private rows. It says which columns exist, which values
they can have and which code each value gets. Values never raise: a number outside its range is
clipped, an unknown category becomes ``other`` if declared, a missing value the missing cell if
there is one, and a record that cannot be represented otherwise gets the code -1 and is skipped.
Each record is treated by itself, because an exception that depends on a value would answer a
membership question for free. Only the schema (columns and declared types) is checked with errors.

===============  ===================================================================================
``domain``       `Domain`: columns and their order
``attribute``    what both kinds of columns share: codes, labels, levels
``numeric``      `Numeric`: a range, cut into bins
``categorical``  `Categorical`: a list of categories
``taxonomy``     `Taxonomy`: nested groups of categories
``values``       numbers, categories and flags as they are declared
``inference``    columns read from data: not private
``report``       what a domain would do to the records of a frame
``schemas``      domains from schemas in other formats, and skeletons of domains
``shown``        a domain as a table that a person can read
``difference``   what differs between two domains
``yaml_text``    domains as YAML
``reading``      how a domain gets at rows, without importing `skdp.rows`
===============  ===================================================================================
"""

from .attribute import Attribute, Level
from .categorical import Categorical
from .domain import Domain
from .numeric import Numeric
from .report import DomainReport
from .taxonomy import Taxonomy

__all__ = ["Attribute", "Categorical", "Domain", "DomainReport", "Level", "Numeric", "Taxonomy"]
