"""MixtureModel: one tree model for each class of a label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .._types import CodeArray, FloatArray, IntArray
from ..domain import Domain
from .error_bars import ErrorBars, WithErrorBars
from .model import Weights
from .rounding import round_line
from .tree_model import TreeModel

__all__ = ["MixtureModel"]


class MixtureModel(WithErrorBars):
    """Sum of models of disjoint parts of the records, one for each code of the label.

    Parameters
    ----------
    models : sequence of TreeModel
        Over the same domain.
    error_bars : ErrorBars, default=None
        For the answers of all models together.

    Raises
    ------
    ValueError
        If there is no model or the domains differ.
    """

    kind: ClassVar[str] = "mixture"

    def __init__(self, models: Sequence[TreeModel], *, error_bars: ErrorBars | None = None) -> None:
        self.models = list(models)
        if not self.models or len({model.shape for model in self.models}) > 1:
            raise ValueError("A mixture needs at least one model, all over the same domain.")
        self.shape = self.models[0].shape
        self.error_bars = error_bars

    @property
    def total(self) -> float:
        """Estimated number of records."""
        return sum(model.total for model in self.models)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Attributes of the pairs that were released for some part."""
        return list(dict.fromkeys(pair for model in self.models for pair in model.pairs))

    @property
    def budget(self) -> dict[str, dict[str, float]]:
        """How epsilon was divided in each part; a record lies in one of them."""
        return {str(part): model.budget for part, model in enumerate(self.models)}

    def answer(self, queries: Sequence[Weights]) -> FloatArray:
        """Expected counts under the weights, one for each query."""
        answers = np.zeros(len(queries))
        for model in self.models:
            answers += model.answer(queries)
        return answers

    def sample_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Draw records: a part in proportion to its positive total, then from its model.

        Under weights the total of a part counts times its probability of the condition.
        """
        numbers = generator.multinomial(n_samples, self._shares_under(weights))
        return self._join(numbers, weights, generator, TreeModel.sample_codes)

    def round_codes(
        self, n_samples: int, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Records whose counts are the expected ones, rounded; see `Model` and `sample_codes`."""
        numbers = round_line(self._shares_under(weights), n_samples, generator)
        return self._join(numbers, weights, generator, TreeModel.round_codes)

    def _join(
        self,
        numbers: IntArray,
        weights: Weights | None,
        generator: np.random.Generator,
        draw: Callable[..., CodeArray],
    ) -> CodeArray:
        """That many records of each part, in random order."""
        codes = np.concatenate(
            [
                draw(model, int(number), generator, *([weights] if weights else []))
                for model, number in zip(self.models, numbers, strict=True)
                if number or not weights
            ]
            or [np.zeros((0, len(self.shape)), dtype=np.int32)]
        )
        return codes[generator.permutation(len(codes))]

    def _shares_under(self, weights: Weights | None) -> FloatArray:
        """Share of each part, under weights if there are any."""
        if weights:
            unknown = np.full((1, len(self.shape)), -1, dtype=np.int32)
            return self._part_shares(unknown, weights)[:, 0]
        share = self._totals()
        return share / share.sum()

    def sample_given(
        self, known: CodeArray, generator: np.random.Generator, weights: Weights | None = None
    ) -> CodeArray:
        """Fill rows of codes where they are -1: first the part is drawn, given what is known."""
        codes = np.array(known, dtype=np.int32)
        reach = np.cumsum(self._part_shares(codes, weights), axis=0)
        part = (generator.random(len(codes)) >= reach[:-1]).sum(axis=0)
        for number, model in enumerate(self.models):
            rows = np.flatnonzero(part == number)
            if len(rows):
                codes[rows] = model.sample_given(codes[rows], generator, weights)
        return codes

    def _totals(self) -> FloatArray:
        """Positive totals of the parts; ones if there are none."""
        totals = np.maximum([model.total for model in self.models], 0.0)
        return totals if totals.any() else np.ones(len(totals))

    def _part_shares(self, known: CodeArray, weights: Weights | None) -> FloatArray:
        """Probability of each part given known codes and weights, (n_parts, n_rows)."""
        with np.errstate(divide="ignore"):
            totals = np.log(self._totals())[:, None]
        logs = totals + np.stack([model.log_likelihood(known, weights) for model in self.models])
        lost = np.flatnonzero(~np.isfinite(logs).any(axis=0))
        if len(lost):
            logs[:, lost] = totals + np.stack(
                [model.log_likelihood(known[lost], weights, soft=True) for model in self.models]
            )
        share = np.exp(logs - logs.max(axis=0))
        return share / share.sum(axis=0)

    def view(self, axes: Sequence[int]) -> FloatArray:
        """Expected counts for every combination of the codes of one or two attributes."""
        table = self.models[0].view(axes)
        for model in self.models[1:]:
            table = table + model.view(axes)
        return table

    def to_frame(self, domain: Domain) -> pd.DataFrame:
        """All released views, as `TreeModel.to_frame`, preceded by the number of the part."""
        frames = [model.to_frame(domain) for model in self.models]
        return pd.concat(frames, keys=range(len(frames)), names=["part", None]).reset_index(0)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What a file keeps: JSON values, and numeric arrays."""
        facts: dict[str, Any] = {"parts": []}
        arrays: dict[str, NDArray[Any]] = {}
        for part, model in enumerate(self.models):
            own_facts, own_arrays = model.to_arrays()
            facts["parts"].append(own_facts)
            arrays.update({f"{name}_{part}": array for name, array in own_arrays.items()})
        if self.error_bars is not None:
            facts["error_bars"] = dict(vars(self.error_bars))
        return facts, arrays

    @classmethod
    def from_arrays(
        cls,
        shape: tuple[int, ...],
        facts: Mapping[str, Any],
        arrays: Mapping[str, NDArray[Any]],
    ) -> MixtureModel:
        """The inverse of `to_arrays`; ValueError for anything that does not fit together."""
        models = []
        for part, own_facts in enumerate(facts["parts"]):
            own = {
                name.removesuffix(f"_{part}"): array
                for name, array in arrays.items()
                if name.endswith(f"_{part}")
            }
            models.append(TreeModel.from_arrays(shape, own_facts, own))
        bars = ErrorBars.from_data(facts["error_bars"]) if "error_bars" in facts else None
        return cls(models, error_bars=bars)
