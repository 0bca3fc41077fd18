"""``info``, ``query``, ``group-by`` and ``sample``: what a release says, at no further cost."""

from __future__ import annotations

from argparse import Namespace

import pandas as pd

from ..accounting import PrivacyLoss
from ..release import Synopsis
from .describe import domain_text
from .outputs import write_table

__all__ = ["group_by", "info", "query", "sample"]


def info(options: Namespace) -> int:
    """Show what was released, what it cost, and which columns it has."""
    synopsis = Synopsis.load(options.view)
    print(f"{options.view}: {synopsis.mechanism or 'made by an unknown method'}")
    loss = synopsis.privacy_loss
    if loss is None:
        print("epsilon: unknown")
    else:
        print(f"epsilon: {float(loss.epsilon):g}, of which {_parts(loss)}")
        print(f"protects: {loss.neighbours}")
        print(
            "seeded: YES, NO GUARANTEE. Whoever knows or guesses the seed can subtract the noise."
            if loss.seeded
            else "seeded: no"
        )
    print(f"estimated records: {synopsis.total:,.6g}{_noise_of_total(synopsis)}")
    print(f"columns: {len(synopsis.domain.columns)}\n")
    print(domain_text(synopsis.domain))
    return 0


def _parts(loss: PrivacyLoss) -> str:
    return ", ".join(f"{name} {float(part):.4g}" for name, part in loss.parts.items())


def _noise_of_total(synopsis: Synopsis) -> str:
    try:
        return f" (noise: standard deviation {synopsis.total_std:.3g})"
    except ValueError:
        return ""


def query(options: Namespace) -> int:
    """Count records, with intervals."""
    synopsis = Synopsis.load(options.view)
    guarantee = ""
    for text in options.query:
        answer = synopsis.count(text, return_interval=True, level=options.level)
        print(f"{answer.value:.6g}  [{answer.lower:.6g}, {answer.upper:.6g}]  {text}")
        guarantee = answer.guarantee
    print(f"intervals: {guarantee}")
    return 0


def group_by(options: Namespace) -> int:
    """Count the records of every group, with the mean of a column where one is named."""
    synopsis = Synopsis.load(options.view)

    def groups() -> pd.DataFrame:
        table = synopsis.aggregate(options.column, options.mean, options.where)
        # Intervals and other labels as text.
        kinds = {n: object for n in options.column if isinstance(table[n].dtype, pd.IntervalDtype)}
        return table.astype(kinds)

    # More digits would be those of the noise.
    write_table(groups, options.out, options.force, [options.view], digits=10)
    return 0


def sample(options: Namespace) -> int:
    """Draw synthetic rows."""
    synopsis = Synopsis.load(options.view)

    def rows() -> pd.DataFrame:
        return synopsis.sample(
            options.rows, options.seed, where=options.where, method=options.method
        )

    write_table(rows, options.out, options.force, [options.view])
    return 0
