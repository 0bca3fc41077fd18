"""A lower bound on epsilon from one fit, with planted rows whose presence coins decide."""

from __future__ import annotations

import html
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_scalar

from .._base import match_rows
from .._random import caller_level, sampling_generator
from .._types import CodeArray
from .._validation import as_epsilon, check_choice
from ..domain import Domain
from ..exceptions import PrivacyLeakWarning
from ..quality._frames import valid_codes
from ._attacks import Guesses, Scene, Target, confident_guesses, epsilon_lower_bound
from ._report import NOT_PRIVATE, SCORES, OwnerOnly, check_shares

_DRAWN, _TRIES = 20_000, 100


@dataclass(eq=False, repr=False)
class CanaryAudit(OwnerOnly):
    """Result of `canary_audit`. Not private, unless no record was read: see ``publishable``.

    Attributes
    ----------
    name : str
        What was audited.
    epsilon : float
        The claim.
    epsilon_lower_bound : float
        Epsilon is at least this, with the stated confidence.
    confidence : float
    passed : bool
        Whether the bound is at most the claim.
    n_canaries, n_guesses, n_right : int
        Canaries, guesses about them, and right guesses; of all runs.
    copy_epsilon_lower_bound : float
        Bound of the same attack on the table itself: above the claim, or the audit is too weak to
        catch even a copy.
    publishable : bool
        Whether the audit read canaries alone, so that nothing in it is private.
    """

    name: str
    epsilon: float
    confidence: float
    n_canaries: int
    n_right: int
    n_guesses: int
    epsilon_lower_bound: float
    copy_epsilon_lower_bound: float
    publishable: bool

    @property
    def passed(self) -> bool:
        """Whether the bound does not exceed the claim."""
        return self.epsilon_lower_bound <= self.epsilon

    @property
    def verdict(self) -> str:
        """One sentence."""
        bound = (
            f"{self.n_right:,} of {self.n_guesses:,} guesses about {self.n_canaries:,} canaries "
            f"are right: epsilon is at least {self.epsilon_lower_bound:.3g} with "
            f"{100 * self.confidence:g}% confidence"
        )
        if not self.passed:
            return f"CONVICTED: {bound}; claimed was {self.epsilon:g}."
        weak = "" if self.copy_epsilon_lower_bound > self.epsilon else " (but so is a copy)"
        return f"{bound}; {self.epsilon:g} is not contradicted{weak}."

    def __repr__(self) -> str:
        text = f"{self.name}: {self.verdict}"
        return text if self.publishable else f"{NOT_PRIVATE}\n{text}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.publishable:
            return object.__reduce_ex__(self, protocol)
        return super().__reduce_ex__(protocol)


def canary_audit(
    synthesizer: Any,
    X: Any = None,
    *,
    domain: Any = None,
    epsilon: Any = None,
    n_canaries: int = 1000,
    n_runs: int = 1,
    attack: str = "likelihood ratio",
    guessed: float = 0.2,
    confidence: float = 0.999,
    random_state: Any = None,
) -> CanaryAudit:
    """Bound epsilon from below with planted rows, each in or out by a coin, and one fit.

    Canaries are drawn uniformly from the domain. A clone without the ledger is fitted to the
    records and the canaries whose coin says so. An attack then guesses the coins, and the number of
    right guesses bounds epsilon. The released model of the fit is thrown away.

    Parameters
    ----------
    synthesizer : estimator with ``domain`` and ``synopsis_``, or callable
        A callable takes a frame of the columns of ``domain`` and gives a Synopsis, a fitted
        synthesizer or synthetic rows: any library can be audited.
    X : table, default=None
        Records among which the canaries are planted; the result is then NOT private. None plants
        them in an empty table: the attack is stronger, and the result may be published.
    domain : Domain, default=None
        Needed for a callable; of an estimator it is its own.
    epsilon : number, default=None
        The claim. Needed for a callable; of an estimator it is its own.
    n_canaries : int, default=1000
        Canaries of a run, all different; about half of them are planted.
    n_runs : int, default=1
        Fits, each with canaries and coins of its own; their guesses are counted together.
    attack : {"likelihood ratio", "nearest neighbours"}, default="likelihood ratio"
    guessed : float, default=0.2
        Share of the canaries about which a guess is made, the surest first.
    confidence : float, default=0.999
        Confidence of the bound.
    random_state : int, numpy.random.Generator or None, default=None
        Seed of canaries and coins; the noise of the fits is their own.

    Returns
    -------
    CanaryAudit

    Raises
    ------
    DomainError, TypeError, ValueError
        If a parameter is missing or out of range, or a person is the unit of privacy.

    Warns
    -----
    PrivacyLeakWarning
        With ``X``.

    Notes
    -----
    Planted rows change the table, so a release for use is never made from an audit. The bound is
    far below epsilon for releases that answer about many rows at once, because one row more or less
    moves little: it finds errors, it does not measure privacy.

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023.

    Examples
    --------
    >>> from skdp import Domain, Numeric
    >>> from skdp.attacks import canary_audit
    >>> domain = Domain({name: Numeric(0, 9, integer=True) for name in "abcd"})
    >>> audit = canary_audit(lambda rows: rows, domain=domain, epsilon=1, random_state=0)
    >>> audit.passed
    False
    """
    check_scalar(n_canaries, "n_canaries", Integral, min_val=10)
    check_scalar(n_runs, "n_runs", Integral, min_val=1)
    check_shares(guessed, confidence)
    check_choice(attack, "attack", SCORES)
    fit, name = _fitting(synthesizer)
    domain, claim = _declared(synthesizer, X, domain, epsilon)
    records = np.zeros((0, len(domain)), dtype=np.int32)
    if X is not None:
        warnings.warn(
            "canary_audit with X fits to the exact records outside of the ledger: its result is "
            "not private and must stay with the data owner.",
            PrivacyLeakWarning,
            stacklevel=caller_level(),
        )
        rows = match_rows(X, None, domain, None, structure=True)[0]
        records = valid_codes(rows, domain).astype(np.int32)
    rng = sampling_generator(random_state)
    counts = np.zeros((2, 2), dtype=np.int64)
    # Not the number of rows, which tells how many coins said "in".
    n_drawn = min(len(records) + n_canaries // 2, _DRAWN)
    for run in range(n_runs):
        scene = _planted(domain, n_canaries, records, rng)
        table = np.concatenate([records, scene.codes[scene.member]])
        frame = domain.decode(table[rng.permutation(len(table))], rng)[list(domain.names)]
        release = fit(frame, run)
        for place, what in enumerate((release, table)):
            target = Target(what, domain, n_drawn, rng)
            made = confident_guesses(SCORES[attack](target, scene), guessed, rng)
            guesses = Guesses(made, scene.member)
            counts[place] += guesses.right, guesses.n
    right, made = counts[0].tolist()
    bound, of_copy = (epsilon_lower_bound(k, n, 1 - confidence) for k, n in counts.tolist())
    n = n_canaries * n_runs
    return CanaryAudit(name, claim, confidence, n, right, made, bound, of_copy, X is None)


def _fitting(synthesizer: Any) -> tuple[Callable[[Any, int], Any], str]:
    """A function from rows and the number of the run to a release, and a name."""
    if not hasattr(synthesizer, "fit"):
        if not callable(synthesizer):
            raise TypeError(
                "canary_audit needs an estimator or a function from rows to a release, got "
                f"{type(synthesizer).__name__}."
            )
        return (lambda rows, run: synthesizer(rows)), getattr(synthesizer, "__name__", "release")
    if getattr(synthesizer, "unit", None) is not None:
        raise ValueError(
            "Canaries are rows, but unit= makes the person the unit of privacy. Audit the "
            "estimator without it."
        )

    def fit(rows: Any, run: int) -> Any:
        twin = clone(synthesizer).set_params(ledger=None)
        if twin.random_state is not None:
            # Equal noise in all runs would make them one.
            twin.set_params(random_state=int(twin.random_state) + run)
        fitted = twin.fit(rows)
        if not hasattr(fitted, "synopsis_"):
            raise TypeError(
                f"canary_audit audits estimators that release a synopsis; "
                f"{type(synthesizer).__name__} does not. Give a function from rows to synthetic "
                "rows."
            )
        return fitted

    return fit, type(synthesizer).__name__


def _declared(synthesizer: Any, X: Any, domain: Any, epsilon: Any) -> tuple[Domain, float]:
    """The domain, and the claim."""
    if domain is None:
        domain = getattr(synthesizer, "domain", None)
    if epsilon is None:
        epsilon = getattr(synthesizer, "epsilon", None)
    if epsilon is None:
        raise ValueError("epsilon= is required: the claim that is audited.")
    if not isinstance(domain, Domain):
        raise ValueError("domain= is required, a skdp.Domain: canaries are drawn from it.")
    return domain, float(as_epsilon(epsilon))


def _planted(
    domain: Domain, n_canaries: int, records: CodeArray, rng: np.random.Generator
) -> Scene:
    """Different canaries, uniform over the cells that the domain allows, and their coins."""
    found, tries = np.zeros((0, len(domain)), dtype=np.int32), 0
    while len(found) < n_canaries:
        codes = rng.integers(0, domain.shape, (2 * n_canaries, len(domain))).astype(np.int32)
        if domain.structure.zeros:
            codes = codes[~domain.structure.breaks(codes)]
        found, tries = np.unique(np.concatenate([found, codes]), axis=0), tries + 1
        if tries == _TRIES and len(found) < n_canaries:
            raise ValueError(
                f"The domain allows too few rows for {n_canaries:,} different canaries: take fewer."
            )
    found = rng.permutation(found)[:n_canaries]
    member = rng.random(n_canaries) < 0.5
    return Scene(domain, found, member, records, rng)
