"""Selection of features and of frequent items."""

import math

import numpy as np
import pandas as pd
import pytest
from loops import over
from scipy import stats

import skdp
from skdp import DPTopKSelector, selection
from skdp._random import noise_source
from skdp.domain import Categorical, Numeric
from skdp.mechanisms import sparse_vector_top_k
from skdp.selection import _bounded_counts, _ByClass, _ByNumber, most_frequent_items

# Statistical tests have fixed seeds; with another seed they fail with this probability.
ALARM = 1e-6
CLASSES = ["a", "b", "c"]


def signal(n=4000, seed=0, rare=0.5):
    """Columns 1 and 4 of six predict the class; the others are noise."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rare).astype(int)
    X = rng.uniform(0, 1, (n, 6))
    X[:, 1] = (X[:, 1] + y) / 2
    X[:, 4] = (X[:, 4] + 0.5 * y) / 1.5
    return X, y


def selector(**params):
    return DPTopKSelector(
        **{"k": 2, "epsilon": 1.0, "domain": Numeric(0, 1, bins=8), "classes": [0, 1]} | params
    )


# ---------------------------------------------------------------------------------------------
# Scores


@over(
    "label, make, up",
    [(Categorical(CLASSES), _ByClass, True), (Numeric(0, 10, bins=3), _ByNumber, False)],
)
def test_one_record_moves_the_scores_by_at_most_the_range(label, make, up):
    rng = np.random.default_rng(0)
    widest = 0
    for _ in range(12):
        codes, labels = rng.integers(0, 4, (40, 5)), rng.integers(0, 3, 40)
        score = make(label, np.bincount(labels, minlength=3) + rng.integers(-4, 5, 3))
        before = [score.of(codes[:, j], 4, labels) for j in range(5)]
        for new in range(3):
            changes = []
            for cell in range(4):
                more = np.vstack([codes, np.full(5, cell)])
                after = [score.of(more[:, j], 4, np.append(labels, new)) for j in range(5)]
                changes += np.subtract(after, before).tolist()
            assert max(changes) - min(changes) <= score.range
            # What a sparse vector declares.
            assert np.abs(changes).max() <= selection._GRID
            assert not up or min(changes) >= 0
            widest = max(widest, (max(changes) - min(changes)) / score.range)
    # The bound does not hold merely because it is far too large.
    assert widest > 0.9


@pytest.mark.parametrize("numeric", [False, True])
def test_a_sparse_vector_selects_what_is_informative(numeric, monkeypatch):
    given = {}

    def select(*args, **options):
        given.update(options, sensitivity=args[4])
        return sparse_vector_top_k(*args, **options)

    monkeypatch.setattr(selection, "sparse_vector_top_k", select)
    X, y = signal()
    label = {"classes": Numeric(0, 1, integer=True)} if numeric else {}
    found = selector(epsilon=5.0, method="sparse-vector", **label).fit(X, y)
    assert found.get_support(indices=True).tolist() == [1, 4]
    # Scores of classes move in one direction, those of numbers do not.
    assert given["monotonic"] is not numeric
    assert given["sensitivity"] == selection._GRID


@pytest.mark.parametrize("label", [Categorical(CLASSES), Numeric(0, 9, bins=3)])
def test_scores_are_those_of_the_definition(label):
    rng = np.random.default_rng(1)
    codes, labels = rng.integers(0, 7, 300), rng.integers(0, 3, 300)
    noisy = np.bincount(labels)
    score = (_ByNumber if isinstance(label, Numeric) else _ByClass)(label, noisy)
    expected = 0
    for cell in range(7):
        inside = np.bincount(labels[codes == cell], minlength=3)
        if isinstance(label, Numeric):
            expected += abs(int(inside @ score.weights))
        else:
            expected += int((inside * score.weights).max())
    expected -= round(score.spread * math.sqrt(300 * 7))
    assert score.of(codes, 7, labels) == expected


# ---------------------------------------------------------------------------------------------
# The estimator


def test_finds_what_tells_a_number():
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.uniform(-1, 1, (4000, 4)), columns=list("abcd"))
    frame["pay"] = 100 * frame["c"] ** 2 + rng.normal(0, 5, 4000)
    domain = dict.fromkeys("abcd", Numeric(-1, 1, bins=6)) | {"pay": Numeric(0, 100, bins=20)}
    # No linear relation: its covariance with the target is zero.
    for rows in ((frame[list("abcd")], frame["pay"]), (frame,)):
        found = DPTopKSelector(1, epsilon=1.0, domain=domain, target="pay").fit(*rows)
        assert found.selected_ == ["c"] and found.transform(rows[0]).shape == (4000, 1)


# ---------------------------------------------------------------------------------------------
# Frequent items


ITEMS = [f"i{j}" for j in range(40)]


def shopping(n=3000, seed=0, size=4):
    rng = np.random.default_rng(seed)
    p = 1 / np.arange(1, 41)
    return [list(rng.choice(ITEMS, size, replace=False, p=p / p.sum())) for _ in range(n)]


@over("max_items", [2, 4, 30])
def test_finds_the_most_frequent(max_items):
    baskets = shopping()
    found = most_frequent_items(baskets, 5, ITEMS, epsilon=2.0, max_items=max_items)
    assert sorted(found["item"][:3]) == ["i0", "i1", "i2"]
    truth = pd.Series([item for basket in baskets for item in basket]).value_counts()
    if max_items >= 4:
        np.testing.assert_allclose(found["count"], truth[found["item"]], atol=400)


def test_baskets_of_one_person_count_once():
    baskets = shopping(500)
    persons = [f"p{i}" for i, basket in enumerate(baskets) for _ in basket]
    column = [item for basket in baskets for item in basket]
    usual = {"k": 5, "items": ITEMS, "epsilon": 1.0, "max_items": 9, "random_state": 3}
    expected = most_frequent_items(baskets, **usual)
    for times in (1, 2):
        found = most_frequent_items(pd.Series(column * times), persons=persons * times, **usual)
        pd.testing.assert_frame_equal(found, expected)


def test_sets_of_items_are_counted_where_a_basket_holds_all_of_them(monkeypatch):
    monkeypatch.setattr(selection, "discrete_laplace", lambda counts, *_, **__: np.array(counts))
    sets = ["i0", ("i0", "i1"), ("i2", "i1", "i0"), ("i7",), ("i38", "i39")]
    baskets = shopping(400)
    truth = [
        sum(set(each if isinstance(each, tuple) else [each]) <= set(b) for b in baskets)
        for each in sets
    ]
    given = {"k": 5, "items": sets, "epsilon": 1.0}
    ledger = skdp.PrivacyLedger(1)
    found = most_frequent_items(baskets, max_items=5, ledger=ledger, **given)
    cost = found.attrs["privacy_loss"]
    assert ledger.spent == 1 == cost["epsilon"] == sum(cost["parts"].values())
    found = found.set_index("item")["count"]
    shown = ["i0", ("i0", "i1"), ("i0", "i1", "i2"), "i7", ("i38", "i39")]
    assert dict(zip(shown, truth, strict=True)) == found.to_dict()
    # In long form, and at most so many sets of a person.
    persons, items = zip(*[(p, item) for p, b in enumerate(baskets) for item in b], strict=True)
    ledger = skdp.PrivacyLedger(1)
    long = most_frequent_items(
        pd.Series(items), max_items=1, persons=persons, ledger=ledger, **given
    )
    assert ledger.to_frame()[["unit", "max_rows_per_id"]].values.tolist() == [["person", 1]]
    assert long["count"].sum() == sum(
        any(set(each if isinstance(each, tuple) else [each]) <= set(b) for each in sets)
        for b in baskets
    )
    tiny = {**given, "baskets": baskets, "max_items": 1, "ledger": skdp.PrivacyLedger(1)}
    for more in ({"epsilon": 2e-6}, {"count_share": 1e-9, "k": 1, "max_items": 5}):
        with pytest.raises(ValueError, match="epsilon must be at least"):
            most_frequent_items(**{**tiny, **more})
    assert tiny["ledger"].spent == 0
    with pytest.raises(ValueError, match="one set of items twice"):
        most_frequent_items(baskets, 1, [("i0", "i1"), ("i1", "i0")], epsilon=1, max_items=1)


@over("bound", [1, 3, 50])
def test_a_person_counts_for_no_more_items_than_the_bound(bound):
    rng = np.random.default_rng(0)
    owners, codes = rng.integers(0, 30, 2000), rng.integers(0, 20, 2000).astype(np.int32)
    codes[::7], owners[::11] = -1, -1
    source = noise_source(1)
    counts = _bounded_counts(codes, owners, 20, bound, source)
    keep = (codes >= 0) & (owners >= 0)
    sizes = [len(set(codes[keep & (owners == person)])) for person in range(30)]
    assert counts.sum() == sum(min(size, bound) for size in sizes)
    # Each of a person's items has the same chance.
    many = sum(
        _bounded_counts(np.arange(8, dtype=np.int32), np.zeros(8, int), 8, 2, source)
        for _ in range(2000)
    )
    assert many.sum() == 4000
    assert stats.chisquare(many).pvalue > ALARM
