"""The classifier of `PrivateClassifier` without an estimator."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from .._base import PrivateEstimator, label_classes, match_labelled, without_label
from .._types import FloatArray
from .._validation import as_epsilon, split_epsilon
from ..classification import PrivPfCClassifier
from ..mechanisms import discrete_laplace
from ..models import PrivateAdditiveClassifier
from ..rows import Frame, as_frame, count_rows, read_rows, select_columns

__all__ = ["DefaultClassifier"]

# Below this number of records times epsilon PrivPfC gets all of epsilon: it had the lowest error in
# the mean of eleven labels. Above, the blend had the lowest sum of the excesses of error and of the
# area under the curve (``benchmarks/models.py``).
_BLENDS = 2_000.0
# Less might not fit the noise of a model of half of it into 64-bit integers.
_LEAST = Fraction(1, 10**6)


class DefaultClassifier(ClassifierMixin, PrivateEstimator):
    """PrivPfC with few records times epsilon; otherwise its mean with an additive model.

    PrivPfC finds combinations of columns and is rarely worse than the most frequent label, but its
    cells rank rows coarsely. The additive model ranks finely and misses combinations. Shares are
    geometric means of both, so that the one that is sure counts more.
    """

    def __init__(
        self,
        epsilon: Any = 1.0,
        *,
        domain: Any = None,
        target: str | None = None,
        classes: Any = None,
        max_contributions: int | None = None,
        unit: str | None = None,
        ledger: Any = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.domain = domain
        self.target = target
        self.classes = classes
        self.max_contributions = max_contributions
        self.unit = unit
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Charge all of epsilon, then release the models."""
        read = read_rows(X)
        rows, domain, target = match_labelled(
            self, read, y, self.classes, "the list of", "classes="
        )
        classes, _ = label_classes(domain, target)
        if as_epsilon(self.epsilon) < _LEAST * (self._max_contributions() or 1):
            raise ValueError(
                f"epsilon must be at least {float(_LEAST):g} for each row, got {self.epsilon!r}: "
                "the noise of less might not fit into 64-bit integers."
            )
        parts = split_epsilon(self._record_epsilon(), {"rows": 1, "models": 49})
        loss, source = self._spend(parts)
        # Privacy. Released: the number of records (sensitivity 1, part "rows") and, by sequential
        # composition, models whose epsilons sum to the part "models". Which ones and with what
        # follows from the released number; all of epsilon has been charged before, whatever they
        # are. Each model of persons draws their rows by itself, and pays for as many.
        noise, most = loss.of_record.parts, self._max_contributions() or 1
        bound = self._contributions(loss, source, rows, domain)
        table = count_rows(rows, domain.select([target]), bound)
        total = int(discrete_laplace(table.n, noise["rows"], random_state=source))
        kinds: list[Any] = [PrivPfCClassifier]
        if total * float(noise["models"]) > _BLENDS:
            kinds.append(PrivateAdditiveClassifier)
        epsilon = noise["models"] * most / len(kinds)
        given = self.get_params(deep=False)
        given |= {"epsilon": epsilon, "ledger": None, "random_state": source}
        models = [kind(**given).fit(X, y) for kind in kinds]
        for model in models:
            model.set_params(random_state=None)
        if y is None and isinstance(read, Frame):
            # The label is a column of X; the features are the others.
            X = without_label(X, read, domain, target)
        self._remember_columns(X, rows, target)
        self.classes_ = classes
        self.domain_ = domain
        self.target_ = target
        self.models_ = models
        self.privacy_loss_ = loss
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each class."""
        check_is_fitted(self)
        names = as_frame(X).named
        if self.unit in names:
            X = select_columns(X, [name for name in names if name != self.unit])
        shares = [np.log(np.maximum(model.predict_proba(X), 1e-9)) for model in self.models_]
        parts = np.exp(np.mean(shares, axis=0))
        return np.asarray(parts / parts.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each row."""
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[np.argmax(shares, axis=1)])
