"""The order of the gallery: first steps, then complete applications, then single methods."""

from pathlib import Path

FIRST = [
    "quickstart",
    "plot_real_table",
    "plot_pair_views",
    "plot_private_validation",
    "plot_kmeans",
    "plot_cube",
    "plot_privpfc",
    "plot_range_tree",
    "plot_engines",
]


def stories_first(filename):
    """Sorting key of an example; examples that are not in `FIRST` come last, by name."""
    name = Path(filename).stem
    return FIRST.index(name) if name in FIRST else len(FIRST), name
