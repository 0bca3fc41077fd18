"""Linear models of public features: their solvers, on distinct records with exact counts.

===============  ================================================================================
``design``       `Design`, numbers for the groups of each column; `LinearModel`; losses in integers
``auto``         `fit_auto`: the functional mechanism, or coefficients through the additive model
``moments``      `noisy_moments`, sums of products of features; principal components of them
``functional``   `fit_functional`: the functional mechanism, a quadratic objective with noise
``naive_bayes``  `fit_naive_bayes`: classes, and each column in each class
``search``       `fit_local_search`: PrivLocal, one coordinate a round
``genetic``      `fit_genetic`: PrivGene, with crossover or without
===============  ================================================================================
"""

from .auto import fit_auto
from .design import Column, Design
from .functional import check_moments, fit_functional
from .genetic import fit_genetic
from .moments import check_components, principal_components
from .naive_bayes import fit_naive_bayes
from .search import fit_local_search

__all__ = [
    "Column",
    "Design",
    "check_components",
    "check_moments",
    "fit_auto",
    "fit_functional",
    "fit_genetic",
    "fit_local_search",
    "fit_naive_bayes",
    "principal_components",
]
