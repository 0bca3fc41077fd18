"""The synthesizer of PrivBayes: releases, files, odd cases."""

import numpy as np
import pytest
from replays import spread

import skdp
from skdp.tables import CountTable

DOMAIN = skdp.Domain(
    {
        "age": skdp.Numeric(17, 89, bins=12, nullable=True),
        "work": skdp.Categorical(
            ["none", "part", "full", "own"],
            taxonomy=skdp.Taxonomy.from_tree(
                {"all": {"some": ["part", "full", "own"], "no": ["none"]}}
            ),
        ),
        "sex": skdp.Categorical(["F", "M"]),
        "income": skdp.Categorical(["low", "high"]),
        "country": skdp.Categorical(["here"]),
    }
)


def people(n_rows=3000):
    return spread(DOMAIN, n_rows)


def test_much_budget_gives_the_records():
    rows = people(2000)
    view = skdp.PrivBayesSynthesizer(epsilon=1e6, domain=DOMAIN, random_state=0).fit(rows)
    true = CountTable.from_codes(DOMAIN.encode(rows), DOMAIN.shape).dense()
    # All columns fit into one table: the network is complete and loses nothing.
    np.testing.assert_allclose(view.synopsis_.model.view(range(5)), true, atol=0.5)
    assert view.count("age >= 53 and sex == 'F'") == pytest.approx(
        ((rows["age"] >= 53) & (rows["sex"] == "F")).sum(), abs=0.5
    )


def test_a_table_of_the_release_has_its_pairs():
    view = skdp.PrivBayesSynthesizer(epsilon=8.0, domain=DOMAIN, encoding="hierarchical", theta=30)
    synopsis = view.fit(people()).synopsis_
    table = synopsis.to_frame()
    np.testing.assert_allclose(table.groupby(["first", "second"])["count"].sum(), synopsis.total)
    assert set(table["first"]) == set(DOMAIN.names) and set(table["second"]) > {""}
