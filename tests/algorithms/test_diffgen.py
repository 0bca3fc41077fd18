"""DiffGen and projected histograms: sensitivities of scores and what is selected."""

import math
from fractions import Fraction

import numpy as np
import pytest
from grids import ATTRIBUTES, Chooser, informative, records, table_of
from hypothesis import given, settings
from hypothesis import strategies as st
from loops import over

from skdp.algorithms import diffgen as diffgen_module
from skdp.algorithms.diffgen import confusion_score, diffgen, projected_histogram
from skdp.tables import CountTable

# ------------------------------------------------------------------- DiffGen and PPH


@settings(max_examples=80)
@given(data=st.data(), n_classes=st.sampled_from([2, 3]))
def test_one_record_moves_the_diffgen_scores_by_0_or_1(data, n_classes):
    rows = data.draw(st.lists(records(n_classes), max_size=20))
    added = data.draw(records(n_classes))
    found = []
    for each in (rows, [*rows, added]):
        record = Chooser()
        with pytest.MonkeyPatch.context() as monkeypatch:
            # The same specialisations for both, so that the scores can be compared.
            def first(scores, epsilon, score_range, *, random_state=None, record=record):
                record(scores, epsilon, score_range, random_state=random_state)
                return len(record.calls) % len(scores)

            monkeypatch.setattr(diffgen_module, "noisy_max", first)
            diffgen(table_of(each, n_classes), ATTRIBUTES, Fraction(1), n_specializations=4)
        found.append(record.calls)
    for before, after in zip(*found, strict=True):
        change = after[0] - before[0]
        assert change.min() >= 0
        assert change.max() <= 1
        assert before[1:] == (Fraction(1, 4), 1)


@over("n_specializations", [1, 3, 50])
def test_diffgen_partitions_the_codes(n_specializations, monkeypatch):
    record = Chooser.installed(monkeypatch)
    axes, groups, labels = diffgen(
        informative(2000), ATTRIBUTES, Fraction(1), n_specializations=n_specializations
    )
    assert sum(epsilon for _, epsilon, _ in record.calls) <= 1
    for axis, of_code, texts in zip(axes, groups, labels, strict=True):
        assert len(of_code) == ATTRIBUTES[axis].size
        assert sorted(set(of_code.tolist())) == list(range(len(texts)))
        assert len(texts) > 1
    # It finds what tells labels apart.
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, a.size, 2000) for a in ATTRIBUTES], axis=1)
    table = table_of(np.column_stack([codes, codes[:, 0] < 4]), 2)
    axes, (groups, *_), _ = diffgen(table, ATTRIBUTES, Fraction(1), n_specializations=1)
    assert axes == [0]
    assert groups.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


@settings(max_examples=150)
@given(data=st.data(), n_classes=st.sampled_from([2, 3]))
def test_one_record_moves_the_confusion_score_within_one_unit(data, n_classes):
    rows = data.draw(st.lists(records(n_classes), max_size=20)) * data.draw(st.integers(1, 3))
    added = data.draw(records(n_classes))
    for axes in ([0, 3], [1, 3], [0, 1, 2, 3]):
        before = confusion_score(table_of(rows, n_classes).project(axes))
        after = confusion_score(table_of([*rows, added], n_classes).project(axes))
        assert -diffgen_module.UNIT <= after - before <= 0


def test_confusion_score_counts_pairs():
    codes = np.array([[0, 0], [0, 1], [1, 0]])
    table = CountTable.from_codes(codes, (2, 2), np.array([3, 1, 5]))
    # Three pairs of different labels among the four records of the first cell.
    assert confusion_score(table) == -math.floor(diffgen_module.UNIT * 3 / 4)
    assert confusion_score(CountTable.from_codes(np.zeros((0, 2), int), (2, 2))) == 0


def test_projection_selects_what_tells_labels_apart(monkeypatch):
    record = Chooser.installed(monkeypatch)
    table = informative(5000)
    axes, groups, _ = projected_histogram(table, ATTRIBUTES, 5000, Fraction(1), n_attributes=2)
    assert axes == [0, 1]
    assert [len(g) for g in groups] == [8, 3]
    assert [epsilon for _, epsilon, _ in record.calls] == [Fraction(1, 2)] * 2
    assert {widest for *_, widest in record.calls} == {diffgen_module.UNIT}


def test_as_published_selections_divide_by_twice_the_sensitivity(monkeypatch):
    record = Chooser()
    monkeypatch.setattr(diffgen_module, "exponential", record)
    monkeypatch.delattr(diffgen_module, "noisy_max")
    given = {"epsilon": Fraction(1), "calibration": "paper"}
    diffgen(informative(500), ATTRIBUTES, n_specializations=2, **given)
    projected_histogram(informative(500), ATTRIBUTES, 500, n_attributes=2, **given)
    assert [widest for *_, widest in record.calls] == [2, 2] + [2 * diffgen_module.UNIT] * 2
    assert {epsilon for _, epsilon, _ in record.calls} == {Fraction(1, 2)}
