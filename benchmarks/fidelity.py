"""Fidelity: how near a release comes to the truth, from little signal to a lot of it.

Tasks, each measured for any synthesizer of the library and for baselines ("independent", "uniform",
"cells", "privtree", "bootstrap", "true"):

``nist``
    NIST's k-marginal score of sampled frames, pairs and triples of ten columns.
``adult``
    Error of boosted trees and of logistic regression trained on the release in label mode; it must
    not rise with epsilon.
``label``
    Mean error of three learners on four tables in label mode, beside the majority label, PrivPfC
    and a naive Bayes of class histograms.
``ranges``
    Ranges of two columns of five tables, of three and four columns of the wide ones.
``single``
    Error of single columns, as a ratio to that of independent columns.
``convergence``
    Total variation of all three-way marginals at epsilon 1,000, less that of a bootstrap.
``dominance``
    Error as a ratio to that of simple methods, over epsilon.
``curves``
    Errors over epsilon and over the number of rows, drawn with ``--pictures FOLDER``.
``speed``
    CPU time and memory of a fit, in a process of its own.

Every line has the mean, its standard error, the target, and whether it is met. Run as
``python -m benchmarks.fidelity nist ranges --method MarginalSynthesizer independent``. A table
whose file is missing is replaced by a small generated one; ``--small`` does so with all tables.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks._fidelity_classify import adult, label
from benchmarks._fidelity_curves import curves, dominance
from benchmarks._fidelity_results import HEADER, Options, Result, append, show
from benchmarks._fidelity_speed import speed
from benchmarks._fidelity_tables import TABLES
from benchmarks._fidelity_tasks import convergence, nist, ranges, single
from skdp.exceptions import InsecureSeedWarning

__all__ = ["TASKS", "main"]

TASKS: dict[str, Callable[[Options], Iterator[Result]]] = {
    task.__name__: task
    for task in (nist, adult, label, ranges, single, convergence, dominance, curves, speed)
}


def options_of(arguments: argparse.Namespace) -> Options:
    """The options of the command line."""
    return Options(
        methods=tuple(arguments.method),
        epsilons=None if arguments.epsilon is None else tuple(arguments.epsilon),
        tables=None if arguments.table is None else tuple(arguments.table),
        runs=arguments.runs,
        folds=arguments.folds,
        small=arguments.small,
        pictures=arguments.pictures,
    )


def main(arguments: Sequence[str] | None = None) -> list[Result]:
    """Run tasks, print their results, and add them to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", nargs="*", help=f"of {', '.join(TASKS)}; by default all")
    parser.add_argument("--method", nargs="+", default=["MarginalSynthesizer"])
    parser.add_argument("--epsilon", nargs="+", type=float)
    parser.add_argument("--table", nargs="+", choices=sorted(TABLES))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--folds", type=int, help="the first of 15 folds")
    parser.add_argument("--small", action="store_true", help="small generated tables")
    parser.add_argument("--out", type=Path, help="JSON file that the results are added to")
    parser.add_argument("--pictures", type=Path, help="folder for the pictures of the curves")
    chosen = parser.parse_args(arguments)
    unknown = set(chosen.task) - set(TASKS)
    if unknown:
        parser.error(f"there is no task {sorted(unknown)}; the tasks are {list(TASKS)}")
    warnings.simplefilter("ignore", InsecureSeedWarning)
    print(HEADER)
    results = []
    for task in chosen.task or TASKS:
        before = len(results)
        for result in TASKS[task](options_of(chosen)):
            show(result)
            results.append(result)
            append(chosen.out, [result])
        if len(results) == before:
            print(f"{task}: nothing was measured. The task may not have the chosen tables.")
    return results


if __name__ == "__main__":
    main()
