"""Errors and warnings of skdp."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

__all__ = [
    "BudgetExceededError",
    "DomainError",
    "EngineError",
    "InsecureSeedWarning",
    "LedgerError",
    "PrivacyLeakWarning",
    "RecordsLostError",
    "ReplayError",
    "TrainingError",
]


class BudgetExceededError(RuntimeError):
    """A charge was refused because the ledger cannot cover it; nothing was spent.

    Parameters
    ----------
    asked, remaining, total : Fraction
        Epsilon asked for, epsilon left, and the ledger's total.
    """

    def __init__(self, asked: Fraction, remaining: Fraction, total: Fraction) -> None:
        # All three go to args, so that the error survives pickling between processes.
        super().__init__(asked, remaining, total)
        self.asked = asked
        self.remaining = remaining
        self.total = total

    def __str__(self) -> str:
        return (
            f"This would spend epsilon={float(self.asked):g}, but only "
            f"{float(self.remaining):g} of {float(self.total):g} remain in the ledger. "
            "Nothing was spent and no value was read. Ask for a smaller epsilon, or use "
            "what has been released already: queries, samples and training on it are free."
        )


class LedgerError(RuntimeError):
    """The ledger cannot be read or written, or does not take this charge; nothing was spent."""


class DomainError(ValueError):
    """The declared domain, or the schema of the data, is not usable."""


class PrivacyLeakWarning(UserWarning):
    """The result is computed from private values without protection."""


class InsecureSeedWarning(UserWarning):
    """Noise comes from a seed: anyone who knows or guesses it can subtract the noise."""


class EngineError(RuntimeError):
    """A query engine failed after the charge, which stands; its message is withheld.

    An engine may quote values of the data in its messages, and whether it fails may depend on
    them. So the message contains only the name of the engine.
    """


class RecordsLostError(RuntimeError):
    """A release stopped because it would lose more than a tenth of the records.

    Only the counts of kept and skipped records were released and charged, the part "skipped" of
    epsilon. The decision rests on these counts alone. Raised with ``on_loss="stop"`` only.

    Parameters
    ----------
    message : str
        Which columns, what is spent, and how to go on.
    skipped : SkippedRecords
    privacy_loss : PrivacyLoss
        What was charged.
    """

    def __init__(self, message: str, skipped: Any, privacy_loss: Any) -> None:
        # All three go to args, so that the error survives pickling between processes.
        super().__init__(message, skipped, privacy_loss)
        self.skipped = skipped
        self.privacy_loss = privacy_loss

    def __str__(self) -> str:
        return str(self.args[0])


class ReplayError(RuntimeError):
    """A run cannot be replayed, so `skdp.audit.replay` gives no verdict.

    Either draws escape the recording (other threads or processes, bare `geometric` noise), or
    random numbers that belong to records cannot be matched between the two data sets.
    """


class TrainingError(RuntimeError):
    """A release was made and charged, but an estimator could not be trained on it.

    The release is kept, in ``synthesizer_`` of the estimator that was to be fitted and in
    ``synthesizer`` of this error. Training on it again costs nothing: pass
    ``FrozenEstimator(error.synthesizer)`` as the synthesizer.

    Parameters
    ----------
    message : str
        What failed, and how to go on.
    synthesizer : estimator, default=None
        The fitted release.

    Attributes
    ----------
    synthesizer : estimator or None
        The fitted release.
    """

    def __init__(self, message: str, synthesizer: Any = None) -> None:
        # Both go to args, so that the error survives pickling between processes.
        super().__init__(message, synthesizer)
        self.synthesizer = synthesizer

    def __str__(self) -> str:
        return str(self.args[0])
