"""Linear models of public features: their solvers, on distinct records with exact counts.

===============  ================================================================================
``design``       `Design`, numbers for the groups of each column; `LinearModel`; losses in integers
``auto``         `fit_auto`: `fit_functional`, the functional mechanism, a quadratic objective with
                 noise, or `fit_smooth`, coefficients through the additive model
``moments``      `noisy_moments`, sums of products of features; principal components of them
``naive_bayes``  `fit_naive_bayes`: classes, and each column in each class
``search``       `fit_local_search`: PrivLocal, one coordinate a round; `fit_genetic`: PrivGene
``tuning``       the numbers that change a release
===============  ================================================================================
"""

from .auto import check_moments, fit_auto, fit_functional
from .design import Column, Design
from .moments import check_components, principal_components
from .naive_bayes import fit_naive_bayes
from .search import fit_genetic, fit_local_search

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
