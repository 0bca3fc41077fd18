"""The common base of audit and replay results."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd


class Result:
    """The verdict on a claimed privacy loss, as text, as a table, and for notebooks."""

    # Verdict when the claim stands.
    _good: ClassVar[str]
    name: str

    @property
    def passed(self) -> bool:
        """Whether the claim stands."""
        raise NotImplementedError

    @property
    def verdict(self) -> str:
        """``"convicted"``, or ``"not refuted"`` (audits) and ``"certified"`` (replays)."""
        return self._good if self.passed else "convicted"

    def _row(self) -> dict[str, Any]:
        """Columns of `to_frame`."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """The result as a DataFrame of one row, with the name as index."""
        return pd.DataFrame(self._row(), index=pd.Index([self.name], name="mechanism"))

    def _repr_html_(self) -> str:
        head, *rest = str(self).split("\n")
        body = "<br>".join(html.escape(line.strip()) for line in rest)
        return f"<p><b>{html.escape(head)}</b><br>{body}</p>"


def labelled(ax: Any, results: Sequence[Result], quantity: str) -> Any:
    """Name the bars, one below the other, and count the convictions."""
    ax.set_yticks(np.arange(len(results)), [result.name for result in results])
    ax.set_ylim(len(results) - 0.4, -0.6)
    ax.set_xlabel(quantity)
    convicted = sum(not result.passed for result in results)
    ax.set_title(f"{convicted} of {len(results)} convicted", fontsize="medium")
    return ax
