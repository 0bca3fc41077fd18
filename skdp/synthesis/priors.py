"""What a prior may be, and its codes: public rows, or rows of a release."""

from __future__ import annotations

import hashlib
import json
import warnings
from typing import Any

import numpy as np

from .._random import caller_level, sampling_generator
from .._types import CodeArray
from ..domain import Domain, PublicTable
from ..exceptions import DomainError
from ..kernels.views import Prior
from ..release import Synopsis

__all__ = ["as_prior"]

# Most rows of a prior: more tell a sample of them nothing that noise leaves visible.
_MOST_ROWS = 100_000


def as_prior(prior: Any, domain: Domain, *, warn: bool = False) -> Prior | None:
    """Check a prior and encode its rows.

    Parameters
    ----------
    prior : PublicTable, Synopsis or None
    domain : Domain
        Of the records.
    warn : bool, default=False
        Whether to warn about rows that are left out.

    Raises
    ------
    DomainError
        If columns or types are others than in the domain, or the columns of a synopsis have other
        codes.
    TypeError
        If it is neither: an unwrapped table too.
    ValueError
        If it has no row that fits the domain.
    """
    if prior is None:
        return None
    if isinstance(prior, PublicTable):
        codes = _codes_of_table(prior, domain)
        name = f"public rows, SHA-256 {_fingerprint(np.asarray(domain.shape), _sorted(codes))}"
    elif isinstance(prior, Synopsis):
        codes = _codes_of_synopsis(prior, domain)
        name = f"a release, SHA-256 {_of_synopsis(prior)}"
    else:
        raise TypeError(
            f"prior must be a Synopsis or a PublicTable, got {type(prior).__name__}. Rows are not "
            "protected at all as a prior: if they are public, say so with "
            "prior=PublicTable(frame); if they are private, release them first and give the "
            "synopsis_ of that release."
        )
    fits = (codes >= 0).all(axis=1) & ~domain.structure.breaks(np.maximum(codes, 0))
    n_out = len(codes) - int(fits.sum())
    if n_out == len(codes):
        raise ValueError(_why_empty(codes, domain))
    if warn and n_out:
        warnings.warn(
            f"{n_out:,} of {len(codes):,} rows of the prior do not fit the domain or break its "
            "rules, and are left out.",
            UserWarning,
            stacklevel=caller_level(),
        )
    return Prior.of(codes[fits], name)


def _codes_of_table(prior: PublicTable, domain: Domain) -> CodeArray:
    try:
        codes = domain.without_structure().encode(prior.frame)
    except DomainError as error:
        raise DomainError(f"The prior does not have the columns of the domain. {error}") from None
    if len(codes) > _MOST_ROWS:
        # Evenly spread: the rows may be sorted.
        codes = codes[np.linspace(0, len(codes) - 1, _MOST_ROWS).astype(np.int64)]
    return codes


def _codes_of_synopsis(prior: Synopsis, domain: Domain) -> CodeArray:
    theirs = prior.domain
    missing = [name for name in domain.names if name not in theirs.names]
    extra = [name for name in theirs.names if name not in domain.names]
    other = [n for n in domain.names if n in theirs.names and theirs[n] != domain[n]]
    wrong = [
        f"{what} {names[:5]}{' and more' if len(names) > 5 else ''}"
        for what, names in (
            ("it lacks", missing),
            ("the domain does not have", extra),
            ("it declares otherwise", other),
        )
        if names
    ]
    if wrong:
        raise DomainError(
            f"The prior is a release of other columns: {'; '.join(wrong)}. Declare the same "
            "ranges, bins and categories as that release, or draw rows from it, which are public, "
            "and give prior=PublicTable(release.sample())."
        )
    number = min(max(round(prior.total), 0), _MOST_ROWS)
    # A fixed seed draws no noise: the same release is the same prior.
    codes = prior.sample_codes(number, sampling_generator(0))
    return codes[:, [theirs.index(name) for name in domain.names]]


def _why_empty(codes: CodeArray, domain: Domain) -> str:
    if not len(codes):
        return "The prior has no rows. Leave it out: prior=None."
    nowhere = [
        repr(name) for name, column in zip(domain.names, codes.T, strict=True) if column.max() < 0
    ]
    where = f"no value of {', '.join(nowhere[:5])} does" if nowhere else "or all break its rules"
    return (
        f"None of the {len(codes):,} rows of the prior fits the domain ({where}): numbers may be "
        "text, or categories be written otherwise. Domain.check(rows) says why; or leave the prior "
        "out."
    )


def _sorted(codes: CodeArray) -> CodeArray:
    """Rows in an order that does not depend on how they were given."""
    return np.ascontiguousarray(codes[np.lexsort(codes.T[::-1])]) if len(codes) else codes


def _fingerprint(*arrays: np.ndarray, text: str = "") -> str:
    found = hashlib.sha256(text.encode())
    for array in arrays:
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        found.update(f"{little.dtype.str}{little.shape}".encode())
        found.update(little.tobytes())
    return found.hexdigest()


def _of_synopsis(prior: Synopsis) -> str:
    facts, arrays = prior.model.to_arrays()
    text = json.dumps(facts, sort_keys=True)
    return _fingerprint(*(np.asarray(arrays[name]) for name in sorted(arrays)), text=text)
