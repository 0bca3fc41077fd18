"""DataCube: all cuboids of a table, consistent with each other, each with its standard error.

==========  =======================================================================================
``plan``    `CubePlan`: which cuboids are measured, and how accurate each will be; their names
``cube``    `DataCube`: parameters, ``fit`` and queries; exact sums of a column, in integers
==========  =======================================================================================

Based on B. Ding, M. Winslett, J. Han, Z. Li, "Differentially Private Data Cubes: Optimizing Noise
Sources and Consistency" (SIGMOD 2011): BMax is ``strategy="bmax"``, PMost ``strategy="pmost"``.
The computations are in `skdp.algorithms.cuboids`.
"""

from .cube import DataCube
from .plan import CubePlan

__all__ = ["CubePlan", "DataCube"]
