"""A domain with rules of every kind, records that follow them, and rows that do not."""

import numpy as np

from skdp import Categorical, Domain, Identifier, Numeric, at_most, derived, forbid

RULED = Domain(
    {
        "id": Identifier(),
        "amount": Numeric(0, 5000, bins=12, scale="log", special=[0], decimals=2),
        "balance": Numeric(0, 5000, bins=12, scale="log", special=[0], decimals=2),
        "city": Categorical(["a1", "a2", "b1", "b2"]),
        "state": Categorical(["A", "B"]),
        "age": Numeric(0, 89, integer=True, bins=30),
        "old": Categorical(["young", "old"]),
        "type": Categorical(["single", "joint"]),
        "joint": Numeric(0, 1000, bins=10, nullable=True),
        "married": Categorical(["y", "n"]),
    },
    structure=[
        at_most("balance", "amount"),
        derived("state", "city", {"a1": "A", "a2": "A", "b1": "B", "b2": "B"}),
        derived("old", from_="age", map={(0, 60): "young", (60, 90): "old"}),
        forbid("joint != None and type != 'joint'"),
        forbid("age < 15 and married == 'y'"),
    ],
)


def lawful_rows(n, domain=RULED, seed=0):
    """Rows of a domain, evenly over the codes that its rules allow."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, 9 * n) for size in domain.shape], axis=1)
    return domain.decode(codes[~domain.structure.zeros.breaks(codes)][:n], rng)


def violations(frame):
    return (
        (frame["balance"] > frame["amount"])
        | (frame["state"] != frame["city"].str[0].str.upper())
        | ((frame["age"] >= 60) != (frame["old"] == "old"))
        | ((frame["type"] == "single") & frame["joint"].notna())
        | ((frame["age"] < 15) & (frame["married"] == "y"))
    ).sum()
