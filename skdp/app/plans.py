"""``plan``: what a release would cost, and the error bars to expect, from public facts alone."""

from __future__ import annotations

import math
from argparse import Namespace
from fractions import Fraction

from .._validation import as_epsilon
from ..accounting import PrivacyLoss
from ..domain import Domain
from ..mechanisms import discrete_laplace_variance
from .csv import no_records, try_out
from .domains import kept, read_domain, text_table
from .outputs import estimator_of, number


def plan(options: Namespace) -> int:
    """Print the parts of the budget, and the error bars to expect of questions."""
    domain = read_domain(options.domain, options.structure)
    if options.rows is not None and options.rows < 0:
        raise ValueError(f"--rows must not be negative, got {options.rows}.")
    if options.ask and not options.rows:
        raise ValueError("--ask needs --rows N, a public guess of the number of records.")
    if options.at and not options.ask:
        raise ValueError("--at needs --ask, a question.")
    if options.data is not None and options.privacy_id is None:
        raise ValueError("DATA is read to count the rows of each person: give --privacy-id too.")
    estimator = estimator_of(options, domain)
    try_out(estimator, no_records(domain, options.privacy_id))
    loss: PrivacyLoss = estimator.privacy_loss_
    domain = estimator.domain_
    print(f"{options.method} on {len(domain.names)} columns, epsilon {float(loss.epsilon):g}")
    print(f"protects: {loss.neighbours}")
    print("Nothing was spent.\n")
    rows = [("part", "epsilon", "noise")]
    for name, part in loss.parts.items():
        noise = math.sqrt(discrete_laplace_variance(loss.of_record.parts[name]))
        rows.append((name, f"{float(part):.4g}", f"{noise:.3g}"))
    print(text_table(rows))
    print("\nnoise: standard deviation of a count that a part is spent on alone, in records")
    if options.data is not None:
        print(f"\n{kept(options, options.privacy_id)}")
    if options.ask:
        _print_bars(options, domain, loss.epsilon)
    return 0


def _print_bars(options: Namespace, domain: Domain, epsilon: Fraction) -> None:
    """Error bars of questions at several epsilons, from releases of generated tables."""
    at = [epsilon * Fraction(2) ** power for power in (-2, -1, 0, 1, 2)]
    if options.at is not None:
        at = [as_epsilon(number(part.strip(), "--at"), "--at") for part in options.at.split(",")]
    made = estimator_of(options, domain)
    found = made.expected_error(options.rows, at, questions=options.ask)
    rows = [
        (question, *(f"\u00b1 {bar:,.3g}" if bar < 1000 else f"\u00b1 {bar:,.0f}" for bar in bars))
        for question, *bars in found.itertuples()
    ]
    print(f"\n{options.rows:,} records: half the 95% interval, by epsilon, {found.attrs['how']}:")
    print(text_table([("question", *(f"{float(each):g}" for each in at)), *rows]))
