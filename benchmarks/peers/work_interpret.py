"""Jobs done with interpret-core, in an environment that has it."""

from __future__ import annotations

import numpy as np
from _worker import main
from interpret.privacy import DPExplainableBoostingClassifier

DELTA = 1e-6


def boosting(data, job, clock):
    """Explainable boosting with normal noise, told the bounds of numbers."""
    n_numbers, n_texts = data["numbers"].shape[1], data["texts"].shape[1]
    bounds = list(zip(data["low"].tolist(), data["high"].tolist(), strict=True))
    model = DPExplainableBoostingClassifier(
        feature_types=["continuous"] * n_numbers + ["nominal"] * n_texts,
        epsilon=job["epsilon"],
        delta=DELTA,
        privacy_bounds=dict(enumerate(bounds)),
        n_jobs=1,
    )
    X = np.hstack([data["numbers"], data["texts"]])
    train, test = data["train"], data["test"]
    with clock:
        model.fit(X[train], data["labels"][train])
    return {"predictions": np.asarray(model.predict(X[test]))}


if __name__ == "__main__":
    main({"classify/DPExplainableBoostingClassifier": boosting})
