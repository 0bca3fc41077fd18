"""What one ``fit`` of a composed estimator reads and spends, step by step.

=====================  ============================================================================
`origin`               who wrote an object: a known library, or the user
`steps`                what is reported about a step, and what a step is given
`carried`              whether an object, or the code of a function, carries rows read elsewhere
`rules`                transformers that treat each row by itself, silently
`verdicts`             estimators of skdp, and unknown ones
`walk`                 the walk over steps, which goes by class to a visitor
`fits`                 how often composites fit
`composites`           visitors of pipelines, unions, searches, and of what other libraries define
=====================  ============================================================================

Each imports only those above it.
"""

from __future__ import annotations

# Imported because it registers visitors.
from . import composites  # noqa: F401
from .carried import carries, shared_generators
from .fits import has_secret_folds, n_folds
from .origin import library, replaced
from .rules import row_by_row
from .steps import LEAKS, PRIVATE, RELEASE, Range, Refusal, Rows, Step, child, total_price
from .verdicts import is_inferred, released_by, seeded
from .walk import ledgers, price, walk, walk_all

__all__ = [
    "LEAKS",
    "PRIVATE",
    "RELEASE",
    "Range",
    "Refusal",
    "Rows",
    "Step",
    "carries",
    "child",
    "has_secret_folds",
    "is_inferred",
    "ledgers",
    "library",
    "n_folds",
    "price",
    "released_by",
    "replaced",
    "row_by_row",
    "seeded",
    "shared_generators",
    "total_price",
    "walk",
    "walk_all",
]
