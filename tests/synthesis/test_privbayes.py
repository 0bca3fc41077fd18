"""The synthesizer of PrivBayes: releases, files, odd cases."""

import numpy as np
import pytest
from loops import over
from replays import spread

import skdp
from skdp.exceptions import DomainError
from skdp.tables import CountTable

# --------------------------------------------------------------------------------- the synthesizer


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
    model = view.synopsis_.model
    # All columns fit into one table: the network is complete and loses nothing.
    np.testing.assert_allclose(model.view(range(5)), true, atol=0.5)
    assert view.count("age >= 53 and sex == 'F'") == pytest.approx(
        ((rows["age"] >= 53) & (rows["sex"] == "F")).sum(), abs=0.5
    )


def test_a_table_of_the_release_has_its_pairs():
    view = skdp.PrivBayesSynthesizer(epsilon=8.0, domain=DOMAIN, encoding="hierarchical", theta=30)
    synopsis = view.fit(people()).synopsis_
    table = synopsis.to_frame()
    sums = table.groupby(["first", "second"])["count"].sum()
    np.testing.assert_allclose(sums, synopsis.total)
    assert set(table["first"]) == set(DOMAIN.names) and set(table["second"]) > {""}


@over(
    "parameters, error, text",
    [
        ({"score_function": "F"}, DomainError, "'age' has 13"),
        ({"theta": 0}, ValueError, "theta"),
        ({"beta": 1}, ValueError, "beta"),
        ({"epsilon": 1e-300}, ValueError, "does not fit"),
        ({"epsilon": 2e-13, "beta": 0.979}, ValueError, "does not fit"),
        ({"epsilon": 1e-8, "score_function": "mutual_information"}, ValueError, "does not fit"),
    ],
)
def test_parameters_are_checked_before_the_charge(parameters, error, text):
    ledger = skdp.PrivacyLedger(1)
    synthesizer = skdp.PrivBayesSynthesizer(domain=DOMAIN, ledger=ledger, **parameters)
    with pytest.raises(error, match=text):
        synthesizer.fit(people(20))
    ruled = skdp.Domain(DOMAIN.items(), structure=[skdp.forbid("sex == 'F' and income == 'low'")])
    with pytest.raises(DomainError, match="PrivBayesSynthesizer"):
        skdp.PrivBayesSynthesizer(domain=ruled, ledger=ledger).fit(people(20))
    assert ledger.spent == 0
