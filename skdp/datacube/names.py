"""Names of dimensions, and the bit masks that stand for sets of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..kernels import cuboids

__all__ = ["as_names", "check_names", "mask_of", "names_of", "title", "titles"]


def as_names(dimensions):
    """A name, or a list of names, as a tuple."""
    if isinstance(dimensions, str):
        return (dimensions,)
    if not isinstance(dimensions, Iterable) or isinstance(dimensions, Mapping | bytes):
        raise TypeError(f"Dimensions are a name or a list of names, got {dimensions!r}.")
    return tuple(dimensions)


def check_names(domain, names):
    """Raise ValueError if a name is not in the domain, or is there twice."""
    unknown = [name for name in names if name not in domain]
    if unknown:
        raise ValueError(
            f"There is no dimension {', '.join(map(repr, unknown))}; there are "
            f"{list(domain.names)}."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"A dimension is named twice in {list(names)}.")


def mask_of(domain, names):
    """Bit mask of a set of dimensions."""
    check_names(domain, names)
    return sum(1 << domain.index(name) for name in names)


def names_of(domain, mask):
    """Names of a set of dimensions, in the order of the domain."""
    return tuple(domain.names[i] for i in cuboids.dimensions_of(mask))


def title(names):
    """Text for one cuboid."""
    return ", ".join(names) if names else "(total)"


def titles(cuboids_named):
    """Different texts for different cuboids, even where names contain commas."""
    texts = [title(names) for names in cuboids_named]
    if len(set(texts)) < len(texts):
        texts = [repr(names) for names in cuboids_named]
    return texts
