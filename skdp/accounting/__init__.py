"""Privacy accounting: the privacy loss of one release, and the ledger of one data set.

Losses are exact fractions and compose sequentially (they add up): every release reads the same
people, whichever columns it uses.

===============  ===================================================================================
``_ledger``      `PrivacyLedger`: budget and charges of one data set, also as a table
``_stores``      `PrivacyLoss`: an exact epsilon with named parts; one charge, and the rules for the
                 next; charges in memory, in an SQLite file
===============  ===================================================================================
"""

from ..exceptions import LedgerError
from ._ledger import Part, PrivacyLedger, charge, for_trial, prepaid, same_budget, settle
from ._stores import PrivacyLoss, at_most, extremes_text, neighbours, parts_text, unit_of

__all__ = [
    "LedgerError",
    "Part",
    "PrivacyLedger",
    "PrivacyLoss",
    "at_most",
    "charge",
    "extremes_text",
    "for_trial",
    "neighbours",
    "parts_text",
    "prepaid",
    "same_budget",
    "settle",
    "unit_of",
]
