"""Jobs done with dpmm's PrivBayes, in its environment."""

from __future__ import annotations

import numpy as np
import pandas as pd
from _worker import answers_from_rows, main
from dpmm.models.base.mbi import Dataset, Domain
from dpmm.models.priv_bayes import MI, ExponentialMechanism
from dpmm.pipelines import PrivBayesPipeline


def rows_of(data, job, clock):
    """Synthetic rows of codes, as many as there are records: that number is not protected."""
    codes = data["codes"].astype(int)
    names = [f"c{axis}" for axis in range(codes.shape[1])]
    frame = pd.DataFrame(codes, columns=names)
    sizes = {name: int(size) for name, size in zip(names, data["shape"], strict=True)}
    with clock:
        # The values are codes of a declared domain already: nothing is left to discretize.
        model = PrivBayesPipeline(
            epsilon=job["epsilon"], delta=job["delta"], n_jobs=1, disable_processing=True
        )
        model.fit(frame, domain=sizes)
        rows = model.generate(n_records=len(frame))
    return rows[names].to_numpy().astype(np.int64)


def marginals(data, job, clock):
    """Ranges of pairs of attributes, counted on synthetic rows."""
    rows = rows_of(data, job, clock)
    return {"answers": answers_from_rows(rows, data["shape"], data["queries"])}


def synthetic(data, job, clock):
    """Synthetic rows to train on."""
    return {"synthetic": rows_of(data, job, clock)}


def conduct(data, job, clock):
    """Log of the ratio of the probabilities of one selection on two tables one record apart.

    Columns a and b are 0 in all records but the one; c is half and half. The step chooses the
    column, b or c, that is put beside a first. It gets a third of half the budget.
    """
    names, chances = ["a", "b", "c"], []
    codes = np.zeros((1000, 3), dtype=int)
    codes[::2, 2] = 1
    for table in (codes, np.vstack([codes, [1, 1, 0]])):
        records = Dataset(pd.DataFrame(table, columns=names), Domain(names, [2, 2, 2]))
        score = MI(records)
        choose = ExponentialMechanism(records, epsilon=job["epsilon"] / 2)
        chances.append(choose(np.array([score(("a",), other) for other in names[1:]])))
    return {"selection": float(np.abs(np.log(chances[0] / chances[1])).max())}


if __name__ == "__main__":
    main(
        {
            "marginals/PrivBayes": marginals,
            "classify/PrivBayes": synthetic,
            "conduct/as it comes": conduct,
        }
    )
