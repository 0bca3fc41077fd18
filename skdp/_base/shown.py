"""What notebooks show above an estimator: what a fit will spend, or has spent."""

from __future__ import annotations

import html
from fractions import Fraction
from typing import Any

from sklearn.utils import estimator_html_repr

from .._validation import as_epsilon

__all__ = ["ShowsPrivacy"]

# Fitted attributes that repeat what was declared.
_PUBLIC_FACTS = {"privacy_loss_", "n_features_in_", "feature_names_in_", "domain_", "classes_"}


def privacy_html(estimator: Any) -> str:
    """What a notebook shows above an estimator: what was spent, on what, and what is public."""
    loss = getattr(estimator, "privacy_loss_", None)
    if loss is None:
        return f"<div>Not fitted; {html.escape(estimator._price_text())}</div>"
    released = sorted(
        name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")
    )
    ours = [name for name in released if name not in _PUBLIC_FACTS]
    public = [
        name
        for name in ("domain", "bounds", "target", "classes", "n_samples", "target_range")
        if getattr(estimator, name, None) is not None
    ]
    return (
        f"<div>{loss._repr_html_()}<small>public: parameters"
        f"{html.escape(' (' + ', '.join(public) + ')' if public else '')}; "
        f"released: {html.escape(', '.join(ours))}</small></div>"
    )


class ShowsPrivacy:
    """Notebooks show what was spent above scikit-learn's diagram."""

    epsilon: Any  # of the estimator that this is mixed into

    def _price(self) -> Fraction | None:
        """What a fit will spend; None where it is not known beforehand."""
        return as_epsilon(self.epsilon)

    def _price_text(self) -> str:
        try:
            price = self._price()
        except (TypeError, ValueError) as error:
            return f"a fit will refuse: {error}"
        if price is None:
            return "what a fit will spend is not known."
        return f"a fit will spend \u03b5 = {float(price):g}."

    def _repr_html_(self) -> str:
        return privacy_html(self) + estimator_html_repr(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
