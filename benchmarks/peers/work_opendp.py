"""Jobs done with OpenDP, in its environment; tables of many columns with its extra mbi."""

from __future__ import annotations

import numpy as np
import opendp.prelude as dp
from _worker import answers_from_tables, main
from mbi import Domain, LinearMeasurement, estimation

dp.enable_features("contrib")


def counts_space():
    """Counts of which one record changes one by 1."""
    return dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)


def noise(data, job, clock):
    """Discrete Laplace noise on a vector of integers."""
    n = int(data["n"])
    values = [0] * n
    with clock:
        measurement = counts_space() >> dp.m.then_laplace(scale=1 / job["epsilon"])
        measurement(values)
    return {"n": n}


def tree(data, job, clock):
    """Counts of a tree of intervals, made consistent; the library chooses the branching."""
    counts = data["counts"].tolist()
    with clock:
        branching = dp.t.choose_branching_factor(size_guess=len(counts))
        levels = counts_space() >> dp.t.then_b_ary_tree(
            leaf_count=len(counts), branching_factor=branching
        )
        scale = dp.binary_search(
            lambda s: (levels >> dp.m.then_laplace(scale=s)).map(1) <= job["epsilon"], T=float
        )
        released = (levels >> dp.m.then_laplace(scale=scale))(counts)
        leaves = dp.t.make_consistent_b_ary_tree(branching_factor=branching)(released)
    return {"released": np.asarray(leaves, dtype=float)}


def most_frequent(data, job, clock):
    """Ten selections of the k most frequent items; a person moves each count by at most one."""
    counts, k = data["counts"].tolist(), int(data["k"])
    with clock:
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64", monotonic=True)
        select = space >> dp.m.then_noisy_top_k(dp.max_divergence(), k=k, scale=k / job["epsilon"])
        selected = [select(counts) for _ in range(10)]
    return {"selected": np.asarray(selected, dtype=np.int64)}


def contingency(data, job, algorithm):
    """Model of all columns, whose categories are public: pure epsilon."""
    import polars as pl

    names = [f"c{axis}" for axis in range(len(data["shape"]))]
    rows = pl.DataFrame(data["codes"].astype(np.int64), schema=names)
    context = dp.Context.compositor(
        data=rows.lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=job["epsilon"]),
    )
    keys = {name: list(range(int(size))) for name, size in zip(names, data["shape"], strict=True)}
    query = context.query(epsilon=job["epsilon"]).contingency_table(keys=keys, algorithm=algorithm)
    return query.release(), names


def marginals(algorithm):
    """Ranges of pairs of attributes, from the model's tables of pairs."""

    def work(data, job, clock):
        with clock:
            table, names = contingency(data, job, algorithm())

            def table_of(a, b):
                shape = (int(data["shape"][a]), int(data["shape"][b]))
                values = np.asarray(table.project((names[a], names[b])))
                return values[: shape[0], : shape[1]]

            answers = answers_from_tables(table_of, data["queries"])
        return {"answers": answers}

    return work


def synthetic(algorithm, method="round"):
    """Synthetic rows, as many as the model says there are."""

    def work(data, job, clock):
        with clock:
            table, names = contingency(data, job, algorithm())
            rows = table.synthesize(method=method).select(names)
        codes = rows.fill_null(0).to_numpy().astype(np.int64)
        return {"synthetic": codes}

    return work


def correlation(draw):
    """Correlation of two columns of synthetic rows that the model has independent given a third.

    All three are fair coins; the model, of the mbi that OpenDP requires, is fitted to exact tables
    of the pairs with the first.
    """
    n = 20_000
    domain = Domain(["a", "b", "c"], [2, 2, 2])
    table = np.full(4, n / 4)
    measured = [LinearMeasurement(table, ("a", other), 1.0) for other in ("b", "c")]
    model = estimation.mirror_descent(domain, measured, known_total=n, iters=500)
    rows = draw(model, n).to_dict()
    return float(np.corrcoef(np.asarray(rows["b"], float), np.asarray(rows["c"], float))[0, 1])


def conduct(data, job, clock):
    """What the synthetic rows add to the model, drawn as they are by default and by sampling."""
    return {
        "rows": correlation(lambda model, n: model.synthetic_data(n)),
        "sampled": correlation(lambda model, n: model.synthetic_data(n, method="sample")),
    }


if __name__ == "__main__":
    works = {
        "noise/make_laplace": noise,
        "ranges/b-ary tree": tree,
        "top-k/noisy_top_k": most_frequent,
        "conduct/as it comes": conduct,
    }
    for name in ("MST", "AIM"):

        def algorithm(name=name):
            return getattr(dp.mbi, name)()

        works[f"marginals/{name}"] = marginals(algorithm)
        works[f"classify/{name}"] = synthetic(algorithm)
        works[f"classify/{name}, sampled"] = synthetic(algorithm, "sample")
    main(works)
