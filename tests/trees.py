"""Taxonomies that Hypothesis draws."""

from hypothesis import strategies as st

from skdp.domain import Taxonomy


@st.composite
def trees(draw, labels):
    """A taxonomy over ``labels``: neighbours are merged until one group is left."""
    parts = [[label] for label in draw(st.permutations(labels))]
    nested = [part[0] for part in parts]
    while len(nested) > 1:
        start = draw(st.integers(0, len(nested) - 2))
        stop = draw(st.integers(start + 2, len(nested)))
        nested[start:stop] = [{f"group of {stop - start}": nested[start:stop]}]
    return Taxonomy.from_tree({"all": nested})
