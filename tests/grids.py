"""Tables, options and selections that tests of grids for classification share."""

import numpy as np
from hypothesis import strategies as st

from skdp.algorithms import diffgen as diffgen_module
from skdp.algorithms import privpfc
from skdp.domain import Categorical, Numeric, Taxonomy
from skdp.tables import CountTable

ATTRIBUTES = [
    Numeric(0, 8, bins=8),
    Categorical(["a", "b", "c"]),
    Categorical(
        list("pqrs"),
        taxonomy=Taxonomy.from_tree({"any": {"left": ["p", "q"], "right": ["r", "s"]}}),
    ),
]


def table_of(rows, n_classes):
    shape = (*(attribute.size for attribute in ATTRIBUTES), n_classes)
    return CountTable.from_codes(np.array(rows, dtype=np.int32).reshape(-1, 4), shape)


def records(n_classes):
    codes = [st.integers(0, attribute.size - 1) for attribute in ATTRIBUTES]
    return st.tuples(*codes, st.integers(0, n_classes - 1))


class Chooser:
    """Stands for a selection: notes what it was asked and takes the best."""

    def __init__(self):
        self.calls = []

    @classmethod
    def installed(cls, monkeypatch):
        record = cls()
        monkeypatch.setattr(privpfc, "noisy_max", record)
        monkeypatch.setattr(privpfc, "exponential", record)
        monkeypatch.setattr(diffgen_module, "noisy_max", record)
        return record

    def __call__(self, scores, epsilon, score_range, *, random_state=None):
        self.calls.append((np.array(scores), epsilon, score_range))
        return int(np.argmax(scores))


def informative(n_rows, seed=0):
    """The label is the first half of the numbers, and whether the category is "b"."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, a.size, n_rows) for a in ATTRIBUTES], axis=1)
    label = (codes[:, 0] < 4) ^ (codes[:, 1] == 1)
    return table_of(np.column_stack([codes, label]), 2)
