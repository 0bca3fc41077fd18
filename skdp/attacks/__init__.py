"""Attacks on one's own release: what somebody who reads it could learn about single records.

Everything here compares with exact records. The results are for the data owner only.

=================  =================================================================================
``_report``        `attack_report`: all attacks on one release, and on a copy of the records
``_canaries``      `canary_audit`: a lower bound on epsilon from one fit with planted rows
``_attacks``       who is attacked; membership, exact matches, single rows, inferred values; guesses
=================  =================================================================================
"""

from ._canaries import CanaryAudit, canary_audit
from ._report import AttackReport, attack_report

__all__ = ["AttackReport", "CanaryAudit", "attack_report", "canary_audit"]
