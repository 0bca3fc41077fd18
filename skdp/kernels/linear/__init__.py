"""Linear models of public features: their solvers, on distinct records with exact counts.

===============  ================================================================================
``design``       `Column`, `Design`: the numbers that stand for the groups of each column
``model``        `LinearModel`: what is released
``auto``         `fit_auto`: the one of the next two that fits the signal
``smooth``       `fit_smooth`: coefficients through the additive model of the same columns
``moments``      `noisy_moments`: sums of products of features and outcomes, in integers
``functional``   `fit_functional`: the functional mechanism, a quadratic objective with noise
``naive_bayes``  `fit_naive_bayes`: classes, and each column in each class
``components``   `principal_components` of noisy second moments
``objective``    `Objective`: sums of integer losses, and how far one record can spread them
``search``       `fit_local_search`: PrivLocal, one coordinate a round
``genetic``      `fit_genetic`: PrivGene, with crossover or without
===============  ================================================================================
"""

from .auto import fit_auto
from .components import Components, check_components, principal_components
from .design import Column, Design
from .functional import check_moments, fit_functional
from .genetic import fit_genetic
from .model import LinearModel
from .naive_bayes import fit_naive_bayes
from .search import fit_local_search

__all__ = [
    "Column",
    "Components",
    "Design",
    "LinearModel",
    "check_components",
    "check_moments",
    "fit_auto",
    "fit_functional",
    "fit_genetic",
    "fit_local_search",
    "fit_naive_bayes",
    "principal_components",
]
