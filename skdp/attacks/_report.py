"""All attacks on one release, beside what epsilon allows and beside a copy of the records."""

from __future__ import annotations

import html
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from sklearn.utils import check_scalar

from .._base import match_rows
from .._random import caller_level, sampling_generator
from .._types import BoolArray, CodeArray, FloatArray, IntArray
from .._validation import as_epsilon
from ..domain import Domain
from ..exceptions import PrivacyLeakWarning
from ..quality._frames import valid_codes
from ._attacks import (
    Guesses,
    Scene,
    Target,
    claim_of,
    confident_guesses,
    epsilon_lower_bound,
    exact_matches,
    inferred,
    likelihood_ratio,
    nearest_neighbours,
    singled_out,
    synopsis_of,
)

NOT_PRIVATE = "NOT PRIVATE: computed from the exact records, for the data owner only"


class OwnerOnly:
    """A result that cannot be pickled, and that nothing in this library publishes."""

    # Whether anything of it was computed from private rows.
    publishable = False

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} was computed from the exact records and is not private: it "
            "refuses to be stored or sent. Make it again where the records are."
        )


# --- what a guarantee of epsilon allows an attack to achieve, on average over its noise


def allowed_right(epsilon: float) -> float:
    """Largest expected share of right guesses of membership, where the odds are even before.

    Parameters
    ----------
    epsilon : float
    """
    return 1.0 / (1.0 + math.exp(-min(epsilon, 700.0)))


def allowed_hits(epsilon: float, others: float) -> float:
    """Largest expected share of members that an attack hits, given the share of others it hits.

    A record that is in the table is hit with at most e^epsilon times the probability that it would
    have outside of it; and it is missed with at least e^-epsilon times that probability.

    Parameters
    ----------
    epsilon : float
    others : float
        Share of rows hit among those that are not in the table.
    """
    factor = math.exp(min(epsilon, 700.0))
    return min(factor * others, 1.0 - (1.0 - others) / factor)


SCORES = {"likelihood ratio": likelihood_ratio, "nearest neighbours": nearest_neighbours}
_DRAWN, _MOST_SECRETS, _REFERENCE = 10_000, 10, 3


@dataclass(eq=False, repr=False)
class AttackReport(OwnerOnly):
    """What attacks achieve on a release. NOT private: for the data owner only.

    It is exact, is charged to nothing, and refuses to be pickled.

    Attributes
    ----------
    attacks : pandas.DataFrame
        One row for each attack. ``attack``, its name. ``success``: of the two attacks on
        membership the share of right guesses, of the others the share of members that are hit.
        ``baseline``: success without the release, 1/2 for guesses of membership, otherwise the
        share of other rows that are hit. ``allowed``: the largest success that epsilon allows, on
        average over the noise (NaN without a claim). ``copy``: success of the same attack where the
        synthetic rows are copies of the members. ``guesses`` and ``right``: guesses of membership.
        ``epsilon_lower_bound`` and ``copy_epsilon_lower_bound``: lower bounds that these guesses
        prove, all of one column together with the stated confidence.
    epsilon : float or None
        The claim.
    confidence : float
    convicted : list of str
        Attacks that prove more than the claim.
    copy_caught : list of str
        Attacks that would prove more than the claim if the release were a copy of the records. If
        none does, there are too few rows for this epsilon, and the report says nothing.
    curves : dict of str to DataFrame
        For the attacks on membership: ``guesses``, the most confident first, and the share of them
        that is right, of the ``release`` and of the ``copy``.
    n_members, n_others : int
        Rows under attack.
    """

    attacks: pd.DataFrame
    curves: dict[str, pd.DataFrame]
    epsilon: float | None
    confidence: float
    n_members: int
    n_others: int

    def __post_init__(self) -> None:
        over, over_of_copy = (np.inf, 0.0) if self.epsilon is None else (self.epsilon, self.epsilon)
        names, copy = self.attacks["attack"], self.attacks["copy_epsilon_lower_bound"]
        self.convicted = names[self.attacks["epsilon_lower_bound"] > over].tolist()
        self.copy_caught = names[copy > over_of_copy].tolist()

    @property
    def passed(self) -> bool:
        """Whether no attack proves more than the claim."""
        return not self.convicted

    @property
    def epsilon_lower_bound(self) -> float:
        """The largest lower bound of all attacks."""
        return float(self.attacks["epsilon_lower_bound"].max())

    @property
    def verdict(self) -> str:
        """One sentence."""
        sure = f"with {100 * self.confidence:g}% confidence"
        if self.convicted:
            return (
                f"CONVICTED: epsilon is at least {self.epsilon_lower_bound:.3g} {sure}, by "
                f"{', '.join(self.convicted)}; claimed was {self.epsilon:g}."
            )
        if self.epsilon is None:
            return f"Epsilon is at least {self.epsilon_lower_bound:.3g} {sure}; no claim is known."
        if not self.copy_caught:
            return (
                f"No attack contradicts epsilon = {self.epsilon:g}, but none would catch a copy of "
                "the records either: take more rows."
            )
        return (
            f"No attack contradicts epsilon = {self.epsilon:g}. A copy of the records would be "
            f"caught {sure}, by {', '.join(self.copy_caught)}."
        )

    def __repr__(self) -> str:
        return "\n".join(
            [NOT_PRIVATE, self.verdict, self._shown().to_string(float_format="{:.3f}".format)]
        )

    def _repr_html_(self) -> str:
        return (
            f"<p><b>{html.escape(NOT_PRIVATE)}</b>.</p><p>{html.escape(self.verdict)}</p>"
            + self._shown().to_html(float_format="{:.3f}".format)
        )

    def _shown(self) -> pd.DataFrame:
        return self.attacks.set_index("attack")

    def plot(self, *, axes: Any = None) -> Any:
        """Draw what every attack achieves, and how many of the surest guesses are right.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Figure

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        return _plot_attacks(self, axes)


def attack_report(
    release: Any,
    X_in: Any,
    X_out: Any,
    *,
    domain: Any = None,
    epsilon: Any = None,
    secrets: Sequence[str] | None = None,
    max_rows: int = 1000,
    guessed: float = 0.2,
    confidence: float = 0.95,
    random_state: Any = None,
) -> AttackReport:
    """Attack a release with the records at hand. NOT private: for the data owner only.

    Membership by likelihood ratio and by nearest neighbours, exact matches, singling out, and
    attribute inference, each also on a copy of the records, which must be caught.

    Parameters
    ----------
    release : fitted synthesizer, Synopsis, or table of synthetic rows of any library
    X_in : table
        Records that the release was made from.
    X_out : table
        Records of the same population that it was not made from. Best put each record into one of
        the two by a coin of its own before the release is made; the bounds on epsilon assume it.
        A random split into two tables of fixed size comes close.
    domain : Domain, default=None
        Columns and values. None takes that of the release, or for synthetic rows infers it.
    epsilon : number, default=None
        The claim to test. None takes that of the release, if it is recorded.
    secrets : sequence of str, default=None
        Columns that attribute inference tells from the others; by default all, at most 10 at
        random.
    max_rows : int, default=1000
        Rows of each table that are attacked. The bounds grow with it, and so does the time.
    guessed : float, default=0.2
        Share of rows about which an attack on membership makes a guess, the surest first.
    confidence : float, default=0.95
        Confidence of the bounds, of all attacks together.
    random_state : int, numpy.random.Generator or None, default=None

    Returns
    -------
    AttackReport

    Raises
    ------
    DomainError, TypeError, ValueError
        If the columns do not fit, a parameter is out of range, or fewer than two rows remain.

    Warns
    -----
    PrivacyLeakWarning
        Always.

    Notes
    -----
    An attack that fails proves nothing: others may succeed. An attack that proves more than the
    claim shows an error in the code or in the claim, or a domain or another input that was read
    from the records. A third of the rows is set aside; those that are not members are what the
    attacker knows of the population.

    References
    ----------
    T. Steinke, M. Nasr, M. Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np, pandas as pd
    >>> from skdp.attacks import attack_report
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame(rng.integers(0, 9, (2_000, 5)), columns=[*"abcde"])
    >>> coin = rng.random(len(people)) < 0.5
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     copied = attack_report(people[coin], people[coin], people[~coin], epsilon=1)
    >>> copied.passed
    False
    """
    check_scalar(max_rows, "max_rows", Integral, min_val=10)
    check_shares(guessed, confidence)
    claim = claim_of(release, None if epsilon is None else as_epsilon(epsilon))
    found, rows = _tables(release, X_in, X_out, domain)
    names = list(found.names if secrets is None else secrets)
    for name in names:
        found.index(name)
    warnings.warn(
        "attack_report reads the exact records: the report is not private and must stay with the "
        "data owner.",
        PrivacyLeakWarning,
        stacklevel=caller_level(),
    )
    rng = sampling_generator(random_state)
    codes = [valid_codes(one, found).astype(np.int32) for one in rows]
    if secrets is None and len(names) > _MOST_SECRETS:
        names = sorted(rng.choice(names, _MOST_SECRETS, replace=False).tolist())
    scene = _scene(found, codes[0], codes[1], max_rows, rng)
    # Not the number of members, which the attacks must not know.
    n_drawn = max(min((len(codes[0]) + len(codes[1])) // 2, _DRAWN), 1)
    target = Target(release, found, n_drawn, rng)
    copy = Target(_copied(scene, codes[0]), found, 0, rng)
    return _report(scene, (target, copy), names, claim, guessed, confidence)


def check_shares(guessed: float, confidence: float) -> None:
    """Refuse a share of guesses, or a confidence, that is none."""
    check_scalar(guessed, "guessed", Real, min_val=0, max_val=1, include_boundaries="right")
    check_scalar(confidence, "confidence", Real, min_val=0, max_val=1, include_boundaries="neither")


def _tables(release: Any, X_in: Any, X_out: Any, domain: Any) -> tuple[Domain, list[Any]]:
    """The domain, and both tables matched with it."""
    synopsis = synopsis_of(release)
    if domain is None:
        domain = Domain.infer(X_in) if synopsis is None else synopsis.domain
    rows, found = match_rows(X_in, None, domain, None, structure=True, of=release)
    if synopsis is not None and found.shape != synopsis.domain.shape:
        raise ValueError("domain= differs from the domain of the release: leave it out.")
    return found, [rows, match_rows(X_out, None, found, None, structure=True)[0]]


def _scene(
    domain: Domain, inside: CodeArray, outside: CodeArray, max_rows: int, rng: np.random.Generator
) -> Scene:
    """The rows under attack, with even odds of membership, and the reference.

    What is done with a row does not depend on other rows, so that coins stay independent: a third
    is set aside, and of the larger table rows are dropped until the odds are even, unless the
    difference is one that fair coins make.
    """
    codes = np.concatenate([inside, outside])
    member = np.arange(len(codes)) < len(inside)
    aside = rng.random(len(codes)) < 1 / _REFERENCE
    fewer, more = sorted([len(inside), len(outside)])
    if more - fewer > 4 * np.sqrt(fewer + more):
        larger = member == (len(inside) > len(outside))
        kept = ~aside & (~larger | (rng.random(len(codes)) < fewer / more))
    else:
        kept = ~aside
    chosen = rng.permutation(np.flatnonzero(kept))[: 2 * max_rows]
    if not 0 < member[chosen].sum() < len(chosen):
        raise ValueError(
            "X_in and X_out must both have rows in the domain, ten or more: there is nobody to "
            "attack."
        )
    return Scene(domain, codes[chosen], member[chosen], codes[aside & ~member], rng)


def _copied(scene: Scene, inside: CodeArray) -> CodeArray:
    """What a synthesizer that copies would release: the members, and other records."""
    members = scene.codes[scene.member]
    others = inside[scene.rng.permutation(len(inside))[: max(_DRAWN - len(members), 0)]]
    return np.concatenate([members, others]).astype(np.int32)


def _report(
    scene: Scene,
    targets: tuple[Target, Target],
    names: list[str],
    claim: float | None,
    guessed: float,
    confidence: float,
) -> AttackReport:
    made: dict[str, list[IntArray]] = {}
    curves = {}
    for name, attack in SCORES.items():
        scores = [attack(target, scene) for target in targets]
        made[name] = [confident_guesses(score, guessed, scene.rng) for score in scores]
        curves[name] = _curve(scores, scene)
    made["exact match"] = [exact_matches(target, scene) for target in targets]
    made["singling out"] = [singled_out(target, scene) for target in targets]
    axes = [scene.domain.index(name) for name in names]
    told = [inferred(target, scene, axes) for target in targets]
    for name, axis in zip(names, axes, strict=True):
        made[f"inference of {name}"] = [each[axis] for each in told]
    alpha = (1 - confidence) / len(made)
    rows = [_row(name, scene.member, both, claim, alpha) for name, both in made.items()]
    n = int(scene.member.sum()), int((~scene.member).sum())
    return AttackReport(pd.DataFrame(rows), curves, claim, confidence, *n)


def _row(
    name: str, member: BoolArray, made: list[IntArray], claim: float | None, alpha: float
) -> dict[str, Any]:
    of_release, of_copy = (Guesses(each, member) for each in made)
    if name in SCORES:
        success, copy = (each.right / max(each.n, 1) for each in (of_release, of_copy))
        baseline = 0.5
        allowed = np.nan if claim is None else allowed_right(claim)
    else:
        success, copy = of_release.share_of(True), of_copy.share_of(True)
        baseline = of_release.share_of(False)
        allowed = np.nan if claim is None else allowed_hits(claim, baseline)
    return {
        "attack": name,
        "success": success,
        "baseline": baseline,
        "allowed": allowed,
        "copy": copy,
        "guesses": of_release.n,
        "right": of_release.right,
        "epsilon_lower_bound": epsilon_lower_bound(of_release.right, of_release.n, alpha),
        "copy_epsilon_lower_bound": epsilon_lower_bound(of_copy.right, of_copy.n, alpha),
    }


def _curve(scores: list[FloatArray], scene: Scene) -> pd.DataFrame:
    """Share of right guesses among the surest, for numbers of guesses up to all rows."""
    n = len(scene.member)
    shares = np.unique(np.linspace(min(20, n), n, 40).astype(int)) / n
    found: dict[str, list[float]] = {"guesses": [], "release": [], "copy": []}
    for share in shares:
        both = [
            Guesses(confident_guesses(score, float(share), scene.rng), scene.member)
            for score in scores
        ]
        found["guesses"].append(both[0].n)
        for name, one in zip(("release", "copy"), both, strict=True):
            found[name].append(one.right / max(one.n, 1))
    return pd.DataFrame(found)


# --- pictures of attacks


def _plot_attacks(report: AttackReport, axes: Any = None) -> Any:
    """Success of every attack on the left, the surest guesses of membership on the right."""
    if axes is None:
        import matplotlib.pyplot as plt

        height = 1.6 + 0.32 * len(report.attacks)
        _, axes = plt.subplots(1, 2, figsize=(11, max(height, 3.6)), layout="constrained")
    from ..plotting import current_inks

    inks = current_inks()
    _plot_success(report, axes[0], inks)
    _plot_guesses(report, axes[1], inks)
    return axes[0].figure


def _plot_success(report: AttackReport, ax: Any, inks: Any) -> None:
    table = report.attacks
    places = np.arange(len(table))[::-1]
    ax.hlines(places, table["baseline"], table["allowed"], color=inks.faint, lw=6, zorder=1)
    ax.plot(table["baseline"], places, "|", color=inks.grey, ms=10, label="without the release")
    if report.epsilon is not None:
        ax.plot(table["allowed"], places, ">", color=inks.grey, ms=6, label="most that is allowed")
    ax.plot(table["success"], places, "o", color=inks.main, label="release")
    ax.plot(table["copy"], places, "X", color=inks.bad, label="copy of the records")
    ax.set_yticks(places, table["attack"])
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("success")
    ax.set_title("NOT PRIVATE: what attacks achieve", fontsize="medium")
    ax.legend(fontsize="small")


def _plot_guesses(report: AttackReport, ax: Any, inks: Any) -> None:
    for (name, curve), style in zip(report.curves.items(), ("-", "--"), strict=False):
        ax.plot(curve["guesses"], curve["release"], style, color=inks.main, label=name)
        ax.plot(curve["guesses"], curve["copy"], style, color=inks.bad, label=f"{name}, copy")
    if report.epsilon is not None:
        ax.axhline(allowed_right(report.epsilon), color=inks.grey, lw=1)
        text = f"allowed at epsilon = {report.epsilon:g}"
        ax.annotate(text, (0, allowed_right(report.epsilon)), va="bottom", color=inks.grey)
    ax.axhline(0.5, color=inks.grey, lw=1, ls=":")
    ax.set_ylim(0.4, 1.03)
    ax.set_xlabel("guesses, the surest first")
    ax.set_ylabel("share that is right")
    ax.set_title("NOT PRIVATE: guesses of membership", fontsize="medium")
    ax.legend(fontsize="small")
