"""Jobs done with smartnoise-synth, in its environment."""

from __future__ import annotations

import numpy as np
import pandas as pd
from _worker import answers_from_rows, main
from snsynth import Synthesizer


def rows_of(name, data, job, clock):
    """Synthetic rows of codes, as many as there are records: that number is not protected."""
    codes = data["codes"].astype(int)
    names = [f"c{axis}" for axis in range(codes.shape[1])]
    frame = pd.DataFrame(codes, columns=names)
    with clock:
        model = Synthesizer.create(name, epsilon=job["epsilon"], delta=job["delta"])
        model.fit(frame, categorical_columns=names, preprocessor_eps=0.0)
        rows = model.sample(len(frame))
    return pd.DataFrame(rows, columns=names).to_numpy().astype(np.int64)


def marginals(name):
    """Ranges of pairs of attributes, counted on synthetic rows."""

    def work(data, job, clock):
        rows = rows_of(name, data, job, clock)
        return {"answers": answers_from_rows(rows, data["shape"], data["queries"])}

    return work


def synthetic(name):
    """Synthetic rows to train on."""

    def work(data, job, clock):
        return {"synthetic": rows_of(name, data, job, clock)}

    return work


if __name__ == "__main__":
    works = {}
    for name in ("mst", "aim"):
        works[f"marginals/{name.upper()}"] = marginals(name)
        works[f"classify/{name.upper()}"] = synthetic(name)
    main(works)
