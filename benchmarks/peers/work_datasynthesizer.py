"""Jobs done with DataSynthesizer's PrivBayes ("correlated attribute mode"), in its environment."""

from __future__ import annotations

import contextlib
import json
import secrets
import tempfile
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from _worker import answers_from_rows, main
from DataSynthesizer import DataDescriber as describing
from DataSynthesizer.DataGenerator import DataGenerator
from DataSynthesizer.lib import PrivBayes

# Threads instead of processes: their CPU time is seen, and they end when this program is stopped.
PrivBayes.Pool = partial(ThreadPool, 1)


def rows_of(codes, shape, epsilon, parents, clock):
    """Synthetic rows of codes, as many as there are records: that number is not protected.

    ``parents`` is the most columns that a column depends on; 0 lets the library choose.
    """
    names = [f"c{axis}" for axis in range(len(shape))]
    values = {name: list(range(int(size))) for name, size in zip(names, shape, strict=True)}
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(None):
        # The interface is files: a table, the declared values and the description of the model.
        records, domain, model = (str(Path(folder, name)) for name in ("r.csv", "d.json", "m.json"))
        pd.DataFrame(codes.astype(int), columns=names).to_csv(records, index=False)
        Path(domain).write_text(json.dumps(values), encoding="utf-8")
        with clock:
            describer = describing.DataDescriber()
            describer.describe_dataset_in_correlated_attribute_mode(
                records,
                k=parents,
                epsilon=epsilon,
                attribute_to_is_categorical=dict.fromkeys(names, True),
                attribute_to_is_candidate_key=dict.fromkeys(names, False),
                categorical_attribute_domain_file=domain,
                # The default, 0, would make all noise known in advance.
                seed=secrets.randbits(32),
            )
            describer.save_dataset_description_to_file(model)
            generator = DataGenerator()
            generator.generate_dataset_in_correlated_attribute_mode(
                len(codes), model, seed=secrets.randbits(32)
            )
    return generator.synthetic_dataset[names].to_numpy().astype(np.int64)


def marginals(parents):
    """Ranges of pairs of attributes, counted on synthetic rows."""

    def work(data, job, clock):
        rows = rows_of(data["codes"], data["shape"], job["epsilon"], parents, clock)
        return {"answers": answers_from_rows(rows, data["shape"], data["queries"])}

    return work


def synthetic(data, job, clock):
    """Synthetic rows to train on."""
    return {"synthetic": rows_of(data["codes"], data["shape"], job["epsilon"], 1, clock)}


def conduct(data, job, clock):
    """Sum of the epsilons that one description passes to the library's private steps."""
    one_way = "inject_laplace_noise_into_distribution_per_attribute"
    with contextlib.ExitStack() as stack:
        steps = [
            stack.enter_context(
                mock.patch.object(place, name, autospec=True, side_effect=getattr(place, name))
            )
            for place, name in (
                (describing.DataDescriber, one_way),
                (describing, "greedy_bayes"),
                (describing, "construct_noisy_conditional_distributions"),
            )
        ]
        codes = np.indices((2, 2, 2)).reshape(3, -1).T.repeat(50, axis=0)
        rows_of(codes, (2, 2, 2), job["epsilon"], 1, clock)
    # epsilon is the second, third and third argument
    calls = [step.call_args.args for step in steps]
    return {"described": calls[0][1] + calls[1][2] + calls[2][2]}


if __name__ == "__main__":
    main(
        {
            "marginals/PrivBayes": marginals(0),
            "marginals/PrivBayes, one parent": marginals(1),
            "classify/PrivBayes, one parent": synthetic,
            "conduct/as it comes": conduct,
        }
    )
