"""DPCube: partitions by a kd-tree, and the usefulness of noisy cells."""

from .hierarchical_kd import hierarchical_kdtree, hierarchical_parts
from .release import MOST_CELLS, KDTreeRelease
from .two_step import kd_boxes, two_step_kdtree, two_step_parts

__all__ = [
    "MOST_CELLS",
    "KDTreeRelease",
    "hierarchical_kdtree",
    "hierarchical_parts",
    "kd_boxes",
    "two_step_kdtree",
    "two_step_parts",
]
