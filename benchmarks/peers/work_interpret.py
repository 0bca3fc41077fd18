"""Jobs done with interpret's differentially private EBM, in its environment."""

from __future__ import annotations

import numpy as np
from _worker import main
from interpret.privacy import DPExplainableBoostingClassifier


def classify(data, job, clock):
    """A model of raw numbers with public bounds and of categories; the label is binary."""
    table = np.column_stack([data["numbers"], data["texts"]]).astype(object)
    train, test = data["train"], data["test"]
    kinds = ["continuous"] * data["numbers"].shape[1] + ["nominal"] * data["texts"].shape[1]
    ends = zip(data["low"], data["high"], strict=True)
    bounds = {place: (float(low), float(high)) for place, (low, high) in enumerate(ends)}
    with clock:
        model = DPExplainableBoostingClassifier(
            epsilon=job["epsilon"], delta=job["delta"], feature_types=kinds, privacy_bounds=bounds
        )
        model.fit(table[train], data["labels"][train])
    return {
        "predictions": np.asarray(model.predict(table[test])).astype(np.int64),
        "shares": np.asarray(model.predict_proba(table[test])),
    }


if __name__ == "__main__":
    main({"classify/DP-EBM": classify})
