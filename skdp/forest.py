"""Names of tree models in earlier versions, kept for their files and pickles."""

from .release import Error, ErrorBars, MixtureModel, PairTable
from .release import TreeDensity as Forest
from .release import TreeModel as ForestModel

__all__ = ["Error", "ErrorBars", "Forest", "ForestModel", "MixtureModel", "PairTable"]
