"""Jobs done with mbi, in its environment or in one of those that hold it."""

from __future__ import annotations

import numpy as np
from _worker import main
from mbi import Domain, LinearMeasurement, estimation


def correlation(draw):
    """Correlation of two columns of synthetic rows that the model has independent given a third.

    All three are fair coins; the model is fitted to exact tables of the pairs with the first.
    """
    n = 20_000
    domain = Domain(["a", "b", "c"], [2, 2, 2])
    table = np.full(4, n / 4)
    measured = [LinearMeasurement(table, ("a", other), 1.0) for other in ("b", "c")]
    if hasattr(estimation, "mirror_descent"):
        model = estimation.mirror_descent(domain, measured, known_total=n, iters=500)
    else:
        model = estimation.MirrorDescent().estimate(domain, measured, iters=500)
    rows = draw(model, n).to_dict()
    return float(np.corrcoef(np.asarray(rows["b"], float), np.asarray(rows["c"], float))[0, 1])


def conduct(data, job, clock):
    """What the synthetic rows add to the model, drawn as they are by default and by sampling."""
    return {
        "rows": correlation(lambda model, n: model.synthetic_data(n)),
        "sampled": correlation(lambda model, n: model.synthetic_data(n, method="sample")),
    }


if __name__ == "__main__":
    main({"conduct/as it comes": conduct})
