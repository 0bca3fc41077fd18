"""The frozen baseline: what the file says of each figure, and what fails a comparison with it."""

import copy

import pytest

baseline = pytest.importorskip("benchmarks.baseline")
data = pytest.importorskip("benchmarks._data")

FILE = baseline.read()


def cells(**figures):
    """Eight tables with the same figures."""
    return {
        baseline.key_of(f"table {place}", 1.0, "tails"): {"n": 20, **figures} for place in range(8)
    }


CELLS = cells(rms=[10.0, 1.0], holds=[0.95, 0.01], useless=[0.4, 0.05], over=[1.2, 0.1])
ONE = "table 3 | 1 | tails"


def with_one(**figures):
    """The cells with other figures in one of them."""
    found = copy.deepcopy(CELLS)
    found[ONE] |= figures
    return found


def test_the_file_says_of_all_figures_what_was_measured():
    needed = {"quick", "questions", "unseen questions", "ranges", "models", "targets"}
    assert needed <= set(FILE) <= set(baseline.SECTIONS)
    for title, section in FILE.items():
        data.check_stamp(section)
        assert section["fits"] >= 2 and section["seeds"] == list(range(section["fits"])), title
        tables = {key.split(" | ")[0] for key in section["cells"]}
        named = {each.removeprefix("ranges: ") for each in baseline.SECTIONS[title].tables}
        # Of unseen tables and other libraries, those that were measured in time.
        partly = title in ("unseen questions", "unseen models", "peers")
        assert tables and (tables <= named if partly else tables == named), title
        for of in section["cells"].values():
            figures = [value for value in of.values() if isinstance(value, list)]
            assert figures and all(len(value) == 2 for value in figures)


def test_any_other_figure_is_seen():
    fewer = with_one()
    del fewer[ONE]["holds"]
    for before, after, said in (
        (CELLS, CELLS, []),
        (CELLS, with_one(rms=[10.001, 1.0]), [f"{ONE} | rms: 10, now 10.001"]),
        (CELLS, fewer, [f"{ONE} | holds: missing"]),
        (fewer, CELLS, [f"{ONE} | holds: new"]),
        (CELLS, with_one(useless=[None, None]), [f"{ONE} | useless: 0.4, now nan"]),
    ):
        assert baseline.changed(before, after) == said


def test_what_is_within_tolerance_or_better_passes():
    for found in (
        CELLS,
        with_one(rms=[14.0, 1.4], holds=[0.93, 0.01]),
        cells(rms=[11.0, 1.0], holds=[0.945, 0.01], useless=[0.45, 0.05], over=[1.2, 0.1]),
        cells(rms=[2.0, 0.1], holds=[0.99, 0.01], useless=[0.1, 0.05], over=[1.0, 0.1]),
    ):
        lines, bad = baseline.compared(CELLS, found)
        assert bad == [] and {line.cells for line in lines} == {8}
    [line], _ = baseline.compared(CELLS, cells(rms=[5.0, 0.5]), partly=True)
    # Errors of 10% on both sides and eight tables: the mean of a ratio of 1/2.
    assert line.errors == pytest.approx(-0.6931 / 0.1 / 2**0.5 * 8**0.5, rel=1e-3)


def test_a_figure_of_one_table_that_is_far_worse_fails():
    for name, figure in (("rms", [40, 1]), ("holds", [0.7, 0.01]), ("useless", [1, 0.05])):
        _, bad = baseline.compared(CELLS, with_one(**{name: figure}))
        assert any(said.startswith(f"{ONE} | {name}") for said in bad)
