"""Files of releases, without pickle: a zip archive of one JSON text and of plain arrays."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Mapping
from fractions import Fraction
from os import PathLike
from typing import Any

import numpy as np

from .._validation import FloatArray, replacing
from ..accounting import PrivacyLoss

_METADATA, _FORMAT, _VERSION = "metadata.json", "skdp synopsis", 2
# Parsing metadata takes up to so many times their bytes.
_PARSED = 25
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# What a file keeps of a model: JSON values, and arrays by their names.
Facts = Mapping[str, Any]
Arrays = Mapping[str, np.ndarray]


def demand(fits: Any, otherwise: str) -> None:
    """Refuse what does not fit together, in a file or elsewhere."""
    if not fits:
        raise ValueError(otherwise)


def fraction(text: Any) -> Fraction:
    """An exact fraction as it was written; an exponent could ask for any amount of memory."""
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{1,4300}(/[0-9]{1,4300})?", text):
        raise ValueError(f"{text!r} is not an exact fraction")
    return Fraction(text)


def loss_to_data(loss: PrivacyLoss) -> dict[str, Any]:
    """A privacy loss as JSON holds it."""
    parts = {name: str(part) for name, part in loss.parts.items()}
    return vars(loss) | {"epsilon": str(loss.epsilon), "parts": parts}


def loss_from_data(data: Mapping[str, Any]) -> PrivacyLoss:
    """What `loss_to_data` wrote."""
    demand(isinstance(data["seeded"], bool), "it does not say whether it was seeded")
    parts = {name: fraction(part) for name, part in data["parts"].items()}
    return PrivacyLoss(**{**data, "epsilon": fraction(data["epsilon"]), "parts": parts})


def write_archive(path: str | PathLike[str], metadata: Facts, arrays: Arrays) -> None:
    """Write metadata and arrays to one file; equal contents give equal bytes.

    Parameters
    ----------
    path : str or path-like
        An existing file is replaced, and kept if writing fails.
    metadata : mapping
        Values that JSON can hold.
    arrays : mapping of str to ndarray
        Arrays of numbers.
    """
    metadata = {"format": _FORMAT, "version": _VERSION, **metadata}
    text = json.dumps(metadata, ensure_ascii=False, allow_nan=False, indent=1)
    contents = {_METADATA: text.encode()}
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.asarray(array, order="C"), allow_pickle=False)
        contents[f"{name}.npy"] = buffer.getvalue()
    with replacing(path) as part, zipfile.ZipFile(part, "w") as archive:
        for name, content in contents.items():
            # A fixed date: equal releases give equal files.
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)


def read_archive(
    path: str | PathLike[str], build: Callable[[Any, Any], Any], max_bytes: int
) -> Any:
    """Read a file that `write_archive` wrote; nothing in it is executed.

    Parameters
    ----------
    path : str or path-like
    build : callable
        Makes the release from metadata and arrays.
    max_bytes : int
        Refuse files that would take more memory.

    Raises
    ------
    ValueError
        If it is a pipe or a device, is of another kind, is damaged or too large, or is of another
        version.
    OSError
        If it cannot be opened.
    """
    # A pipe would be waited for, and a device may never end.
    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise ValueError(f"{str(path)!r} is not a usable synopsis file: it is a pipe or a device.")
    with open(path, "rb") as file:
        try:
            return build(*_read(file, max_bytes))
        # Damaged archives, JSON and headers raise almost anything, always for the same reason:
        # these bytes are not such a release.
        except Exception as error:
            raise ValueError(
                f"{str(path)!r} is not a usable synopsis file: {error or type(error).__name__}"
            ) from error


def _read(file: Any, max_bytes: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        listed = {entry.filename: entry for entry in entries}
        named = len(listed) == len(entries) and _METADATA in listed
        demand(named, "it has no metadata.json of skdp")
        # Before anything is parsed.
        size = sum(entry.file_size for entry in entries)
        size += (_PARSED - 1) * listed[_METADATA].file_size
        large = f"it takes up to {size:,} bytes of memory, more than max_bytes={max_bytes:,}"
        demand(size <= max_bytes, large)
        # Others are unpacked whole before their size is looked at.
        packed = all(entry.compress_type in _COMPRESSIONS for entry in entries)
        demand(packed, "its compression is not that of skdp")
        metadata = json.loads(_content(archive, listed[_METADATA]).decode())
        named = isinstance(metadata, dict) and metadata.get("format") == _FORMAT
        demand(named, "it was not written by skdp as a synopsis")
        written = metadata.get("version")
        other = f"its version is {written!r} and this skdp reads {_VERSION} alone"
        demand(written == _VERSION, other)
        arrays: dict[str, np.ndarray] = {}
        for name, entry in listed.items():
            if name.endswith(".npy"):
                stream = io.BytesIO(_content(archive, entry))
                found = np.lib.format.read_array(stream, allow_pickle=False)
                demand(found.dtype.kind in "iuf", f"an array has the dtype {found.dtype}")
                arrays[name.removesuffix(".npy")] = found
        return metadata, arrays


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """What an entry holds, and no more than it says: what is beyond is not unpacked."""
    with archive.open(entry) as file:
        return file.read(entry.file_size)


# --- arrays among JSON values


def packed(data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """JSON values that name the arrays among them, and the arrays, by their places there."""
    arrays: dict[str, np.ndarray] = {}

    def placed(value: Any, place: str) -> Any:
        if isinstance(value, np.ndarray):
            arrays[place] = value
            return {"array": place}
        if isinstance(value, dict):
            return {name: placed(each, f"{place}.{name}") for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [placed(each, f"{place}.{i}") for i, each in enumerate(value)]
        return value

    return {name: placed(each, name) for name, each in data.items()}, arrays


def unpacked(facts: Any, arrays: Arrays) -> Any:
    """The inverse of `packed`; all numbers of arrays are finite."""
    if isinstance(facts, list):
        return [unpacked(each, arrays) for each in facts]
    if not isinstance(facts, dict):
        return facts
    if "array" not in facts:
        return {name: unpacked(each, arrays) for name, each in facts.items()}
    found = arrays[facts["array"]]
    demand(np.isfinite(found).all(), f"{facts['array']} must be finite")
    return found


def as_probabilities(values: np.ndarray) -> FloatArray:
    """Probabilities that sum to 1 along the last axis."""
    found: FloatArray = values.astype(np.float64)
    # They may differ from a sum of 1 by rounding.
    fits = (found >= 0).all() and np.allclose(found.sum(axis=-1), 1.0, rtol=0.0, atol=1e-6)
    demand(fits, "probabilities are negative or do not sum to 1")
    return found
