"""Jobs done with AdaSSP, an algorithm that needs NumPy alone."""

from __future__ import annotations

import numpy as np
from _adassp import ada_ssp
from _worker import indicators, main


def regress(data, job, clock):
    """Indicators of all columns; a row has as many ones as there are columns."""
    middle, half = (data["high"] + data["low"]) / 2, (data["high"] - data["low"]) / 2
    norm = np.sqrt(len(data["shape"]))
    features, asked = (indicators(data[part], data["shape"]) / norm for part in ("codes", "asked"))
    seed = int.from_bytes(np.random.default_rng().bytes(4), "little")
    with clock:
        target = (data["target"] - middle) / half
        coef = ada_ssp(features, target, job["epsilon"], job["delta"], seed)
    return {"predictions": asked @ coef * half + middle}


if __name__ == "__main__":
    main({"regress/AdaSSP": regress})
