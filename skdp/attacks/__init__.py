"""Attacks on one's own release: what somebody who reads it could learn about single records.

Everything here compares with exact records. The results are for the data owner only.

=================  =================================================================================
``_report``        `attack_report`: all attacks on one release, and on a copy of the records
``_canaries``      `canary_audit`: a lower bound on epsilon from one fit with planted rows
``_scene``         the rows that are attacked, which of them are members, and a reference
``_target``        what is attacked: a release or rows of any library, as counts and draws
``_membership``    membership by likelihood ratio and by nearest neighbours
``_matches``       exact matches, and predicates that single out one row
``_inference``     values of a column inferred from the other columns
``_guesses``       guesses of membership, and the bound on epsilon that they prove
``_allowed``       what epsilon allows
``_owner``         results that refuse to be published
``_plots``         pictures
=================  =================================================================================
"""

from ._canaries import CanaryAudit, canary_audit
from ._report import AttackReport, attack_report

__all__ = ["AttackReport", "CanaryAudit", "attack_report", "canary_audit"]
