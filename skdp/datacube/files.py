"""Files of cubes: metadata as JSON, and one array for each measured table.

A cube is computed again from its sources when it is read. With "l1" or "linf" the file holds all
published tables too, because another solver might find another solution.
"""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np

from .._validation import check_choice
from ..domain import Domain
from ..mechanisms._noise import BoundedGrid
from ..release.files import fraction, loss_from_data, loss_to_data, read_archive, write_archive
from .plan import CONSISTENCIES, CubePlan, as_order, mask_of

_FORMAT = "skdp cube"
_VERSION = 1


def write(path, cube):
    """Write a fitted cube."""
    plan, grid = cube.plan_, cube.plan_._grid
    value = None
    if grid is not None:
        origin = plan._origin or 0
        ends = {"lower": origin + grid.lower, "upper": origin + grid.upper, "step": grid.step}
        value = {"name": cube.value, **{name: _exact_text(end) for name, end in ends.items()}}
        if plan._origin is not None:
            value["measure"] = "mean"
    metadata = {
        "format": _FORMAT,
        "version": _VERSION,
        "domain": json.loads(plan.domain.to_json()),
        "privacy": loss_to_data(cube.privacy_loss_),
        "max_order": plan.max_order,
        "strategy": plan.strategy,
        "consistency": plan.consistency,
        "value": value,
        "sources": [
            {"dimensions": list(names), "share": str(share)}
            for names, share in plan.sources.items()
        ],
    }
    arrays = {f"source{i}": cube.sources_[names] for i, names in enumerate(plan.sources)}
    if plan._simulated is not None:
        metadata["cuboids"] = [list(names) for names in cube.tables_]
        arrays["interactions"] = plan._simulated
        arrays |= {f"cuboid{i}": table for i, table in enumerate(cube.tables_.values())}
    write_archive(path, metadata, arrays)


def read(path, make, max_bytes, max_json):
    """Read a fitted cube; ``make`` is the class."""

    def build(metadata, arrays):
        return _cube(make, metadata, arrays)

    return read_archive(path, _FORMAT, _VERSION, build, max_bytes, max_json)


def _cube(make, metadata, arrays):
    """The fitted cube; any error raised here means that the file is damaged."""
    loss = loss_from_data(metadata["privacy"])
    plan = _plan(metadata, loss)
    noisy = {
        mask: _checked(arrays, f"source{i}", _shape(plan, mask), "iu").astype(np.int64)
        for i, mask in enumerate(plan._masks)
    }
    cube = make(
        _as_written(loss.epsilon),
        domain=plan.domain,
        max_order=plan.max_order,
        strategy=plan,
        consistency=plan.consistency,
        measure=plan._measure,
        value=None if plan._grid is None else str(metadata["value"]["name"]),
    )
    tables = None
    if plan.consistency in ("l1", "linf"):
        plan._simulated = _checked(arrays, "interactions", (len(plan._lattice),), "f")
        if not (np.isfinite(plan._simulated).all() and (plan._simulated >= 0).all()):
            raise ValueError("a variance is negative or not finite")
        tables = _stored_tables(plan, metadata, arrays)
    cube._publish(plan, noisy, tables)
    cube.privacy_loss_ = loss
    cube.n_features_in_ = len(plan.domain)
    return cube


def _plan(metadata, loss):
    """The plan that the metadata describe, without what was simulated."""
    domain = Domain.from_json(json.dumps(metadata["domain"]))
    value = metadata["value"]
    grid = origin = None
    if value is not None:
        lower, upper, step = (_signed_fraction(value[name]) for name in ("lower", "upper", "step"))
        if "measure" in value:
            check_choice(value["measure"], "measure", ("mean",))
            origin, lower, upper = lower, Fraction(0), upper - lower
        grid = BoundedGrid.of(lower, upper, step)
    sources = {
        tuple(source["dimensions"]): fraction(source["share"]) for source in metadata["sources"]
    }
    if sum(sources.values()) != 1 or not all(share > 0 for share in sources.values()):
        raise ValueError("the shares of its sources do not sum to 1")
    check_choice(metadata["consistency"], "consistency", CONSISTENCIES)
    plan = CubePlan(
        domain,
        loss.of_record.epsilon,
        sources,
        str(metadata["strategy"]),
        as_order(metadata["max_order"], domain),
        metadata["consistency"],
        grid,
        origin=origin,
    )
    if dict(plan._parts()) != dict(loss.of_record.parts):
        raise ValueError("its privacy loss is not that of its sources")
    return plan


def _stored_tables(plan, metadata, arrays):
    """Published tables, by mask, where they cannot be computed again."""
    masks = [mask_of(plan.domain, tuple(names)) for names in metadata["cuboids"]]
    expected = {int(plan._lattice.masks[place]) for place in plan._available}
    if set(masks) != expected or len(masks) != len(expected):
        raise ValueError("it does not hold the cuboids that its sources determine")
    return {
        mask: _checked(arrays, f"cuboid{i}", _shape(plan, mask), "f")
        for i, mask in enumerate(masks)
    }


def _shape(plan, mask):
    """Shape of a table; of means there are two."""
    shape = plan._lattice.shape(mask)
    return (2, *shape) if plan._measure == "mean" else shape


def _checked(arrays, name, shape, kinds):
    """An array of the shape and type that the plan expects."""
    array = arrays[name]
    if array.shape != tuple(shape) or array.dtype.kind not in kinds:
        raise ValueError(f"its array {name} has the shape {array.shape} and type {array.dtype}")
    return array


def _exact_text(number):
    """An exact number as text; `fraction` reads it without its sign."""
    return ("-" if number < 0 else "") + str(abs(number))


def _signed_fraction(text):
    if isinstance(text, str) and text.startswith("-"):
        return -fraction(text[1:])
    return fraction(text)


def _as_written(epsilon):
    """An exact epsilon as the number that a user would write, where there is one."""
    written = float(epsilon)
    return written if Fraction(repr(written)) == epsilon else epsilon
