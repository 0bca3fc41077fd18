"""The order of the gallery: the first steps, then the stories, then single methods."""

from pathlib import Path

FIRST = [
    "quickstart",
    "plot_pair_views",
    "plot_private_validation",
    "plot_kmeans",
    "plot_cube",
    "plot_privpfc",
    "plot_range_tree",
    "plot_engines",
]


def stories_first(filename):
    """Sorting key of an example; those that are not named come last, by name."""
    name = Path(filename).stem
    return FIRST.index(name) if name in FIRST else len(FIRST), name
