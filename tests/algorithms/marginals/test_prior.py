"""A prior: when rows start from it, what is refused, and that the release names it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from loops import over

import skdp
from skdp import (
    Categorical,
    Domain,
    MarginalSynthesizer,
    Numeric,
    PrivacyLedger,
    PublicTable,
    Synopsis,
)
from skdp.quality import k_marginal
from skdp.synthesis.marginals import as_prior

KINDS = list("pqrstu")
DOMAIN = Domain(
    {
        "a": Categorical(KINDS),
        "b": Numeric(0, 8, bins=8),
        "c": Categorical(["no", "yes"]),
        "d": Numeric(0, 8, bins=8),
        "e": Categorical(KINDS),
    }
)
RULED = Domain(DOMAIN.items(), structure=[skdp.forbid("c == 'yes' and b < 4.5")])


def rows(n, seed=0):
    """Five columns that all depend on a hidden one."""
    rng = np.random.default_rng(seed)
    level = rng.beta(0.8, 0.8, (n, 1))
    noisy = np.clip(level + rng.normal(0, 0.12, (n, 5)), 0, 0.999)
    kinds = np.array(KINDS, dtype=object)
    return pd.DataFrame(
        {
            "a": kinds[(noisy[:, 0] * 6).astype(int)],
            "b": noisy[:, 1] * 8,
            "c": np.where(noisy[:, 2] > 0.5, "yes", "no"),
            "d": 8 - noisy[:, 3] * 8,
            "e": kinds[(noisy[:, 4] * 6).astype(int)],
        }
    )


def release(records, prior, epsilon=0.2, seed=0, domain=DOMAIN, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", skdp.InsecureSeedWarning)
        made = MarginalSynthesizer(
            epsilon=epsilon, domain=domain, prior=prior, random_state=seed, **parameters
        )
        return made.fit(records)


def score(made, records, domain=DOMAIN):
    drawn = domain.encode(made.sample(len(records), random_state=0))
    return k_marginal(domain.encode(records), drawn, domain.shape)


def test_a_good_prior_makes_rows_better_and_a_bad_one_costs_little():
    records, good = rows(4_000), rows(4_000, seed=1)
    turned = good.assign(a=good["a"].map(dict(zip(KINDS, KINDS[::-1], strict=True))))
    without, right, wrong = (
        np.mean([score(release(records, prior, seed=seed), records) for seed in range(4)])
        for prior in (None, PublicTable(good), PublicTable(turned))
    )
    assert right > without + 30 and wrong > without - 10


def test_a_release_is_a_prior_and_costs_nothing_more():
    ledger = PrivacyLedger(2)
    records = rows(4_000)
    first = release(records, None, epsilon=1.0, ledger=ledger)
    second = release(records, first.synopsis_, ledger=ledger)
    assert float(ledger.spent) == 1.2
    assert second.synopsis_.model.prior.startswith("a release, SHA-256 ")
    assert score(second, records) > score(release(records, None), records) + 20


@over("epsilon", [0.2, 30.0])
def test_no_row_breaks_a_rule_and_rows_of_the_prior_that_do_are_left_out(epsilon):
    public = PublicTable(rows(1_000, seed=1))
    with pytest.warns(UserWarning, match="of 1,000 rows of the prior .* break its rules"):
        made = MarginalSynthesizer(epsilon=epsilon, domain=RULED, prior=public).fit(rows(4_000))
    drawn = made.sample(5_000, random_state=0)
    assert not ((drawn["c"] == "yes") & (drawn["b"] < 4.5)).any()
    assert made.count("c == 'yes' and b < 4.5") == 0


def test_the_release_and_its_guarantee_name_the_prior(tmp_path):
    public = rows(4_000, seed=1)
    made = release(rows(4_000), PublicTable(public)).synopsis_
    name = as_prior(PublicTable(public.sample(frac=1, random_state=0)), DOMAIN.fine).name
    assert len(name.split()[-1]) == 64 and name == made.model.prior
    assert as_prior(PublicTable(public[1:]), DOMAIN.fine).name != name
    assert f"prior: {name}, used for rows" in made.mechanism
    made.save(tmp_path / "release.skdp")
    again = Synopsis.load(tmp_path / "release.skdp")
    assert again.mechanism == made.mechanism
    for each in (made, again):
        answer = each.count("a == 'p' and d > 2.5 and e == 'q'", return_interval=True)
        assert f"with a prior: {name}" in answer.guarantee
    assert as_prior(made, DOMAIN.fine).name == as_prior(again, DOMAIN.fine).name
