"""Jobs done with mbi, in its environment or in one of those that hold it."""

from __future__ import annotations

import time

import numpy as np
from _worker import main, noisy_tables, sets_of
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


def inference(data, job, clock):
    """Tables of a graphical model fitted to noisy counts by the estimator that mbi recommends."""
    names = [f"c{axis}" for axis in range(len(data["shape"]))]
    domain = Domain(names, [int(size) for size in data["shape"]])

    def named(axes):
        return tuple(names[axis] for axis in axes)

    measured = [
        LinearMeasurement(table.ravel(), named(axes), float(np.sqrt(variance)))
        for axes, table, variance in zip(
            sets_of(data["sets"]), noisy_tables(data), data["variances"], strict=True
        )
    ]
    with clock:
        model = estimation.MirrorDescent().estimate(domain, measured)
        np.asarray(model.project(measured[0].clique).datavector())
    begin = time.process_time()
    tables = [
        np.asarray(model.project(named(axes)).datavector(), float)
        for axes in sets_of(data["asked"])
    ]
    return {"tables": np.concatenate(tables), "answering": time.process_time() - begin}


if __name__ == "__main__":
    main({"conduct/as it comes": conduct, "inference/MirrorDescent": inference})
