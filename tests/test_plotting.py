import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from skdp import (
    DomainError,
    GridSynthesizer,
    HDPViewSynthesizer,
    PrivacyLeakWarning,
    PrivacyLoss,
)
from skdp._random import sampling_generator
from skdp.domain import Categorical, Domain, Numeric
from skdp.plotting import PlotAxis, current_inks, loss_title, plot_distances, plot_view
from skdp.release import Boxes, BoxModel, Synopsis

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

JOBS = ["clerk", "cook", "teacher of mathematics and physics", "nurse", "farmer", "none"]
DOMAIN = Domain(
    {
        "age": Numeric(17, 90, integer=True, nullable=True),
        "pay": Numeric(0, 200_000, bins=50),
        "job": Categorical(JOBS, nullable=True),
        "sex": Categorical(["Female", "Male"]),
    }
)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture
def synopsis():
    generator = sampling_generator(0)
    grid = np.stack(np.meshgrid(*(np.arange(n) for n in (15, 10, 7, 2)), indexing="ij"), -1)
    grid = grid.reshape(-1, 4)
    steps = np.array([5, 5, 1, 1])
    lower = grid * steps
    upper = np.minimum(lower + steps, DOMAIN.shape)
    expected = 400 * np.exp(-((grid[:, 0] - 5) ** 2 + (grid[:, 1] - 3) ** 2) / 8) / (1 + grid[:, 2])
    return Synopsis(
        DOMAIN, BoxModel(Boxes(lower, upper), generator.poisson(expected) - 2, DOMAIN.shape)
    )


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_two_numbers_make_a_heat_map_in_their_units(synopsis):
    ax = synopsis.plot(["pay", "age"])
    assert ax.get_xlabel() == "pay" and ax.get_ylabel() == "age"
    assert ax.get_xlim() == (0, 200_000)
    bottom, top = ax.get_ylim()
    assert bottom == 16.5 and top > 90.5  # a strip for the missing values above
    assert "missing" in ticks(ax.yaxis)
    (mesh,) = ax.collections
    np.testing.assert_allclose(np.asarray(mesh.get_array()).T, synopsis.view(["pay", "age"]))
    assert mesh.get_cmap().name == "viridis"
    assert mesh.norm.vmin == 0
    assert mesh.colorbar.ax.get_ylabel() == "expected records"
    assert mesh.colorbar.extend == "min"  # there are negative cells


def test_categories_are_named_and_long_names_are_shortened_and_turned(synopsis):
    ax = synopsis.plot(["job", "sex"])
    assert ticks(ax.xaxis) == ["clerk", "cook", "teacher of mathem…", "nurse", "farmer",
                               "none", "missing"]  # fmt: skip
    assert ticks(ax.yaxis) == ["Female", "Male"]
    assert {label.get_rotation() for label in ax.get_xticklabels()} == {45}
    assert {label.get_rotation() for label in ax.get_yticklabels()} == {0}


def test_one_column_makes_bars(synopsis):
    for name in ("job", "sex"):
        ax = synopsis.plot(name)
        heights = [patch.get_height() for patch in ax.patches]
        np.testing.assert_allclose(heights, synopsis.view(name))
        assert ax.get_ylabel() == "expected records" and ax.get_xlabel() == name
    ax = synopsis.plot("age")
    (steps,) = ax.patches
    np.testing.assert_allclose(steps.get_data().values, synopsis.view("age"))
    assert "missing" in ticks(ax.xaxis)


def test_the_default_is_the_first_two_columns_and_axes_are_used(synopsis):
    _, given = pyplot.subplots()
    assert synopsis.plot(ax=given) is given
    assert (given.get_xlabel(), given.get_ylabel()) == ("age", "pay")
    alone = Synopsis(
        DOMAIN.select(["sex"]), BoxModel(Boxes([[0]], [[2]]), [5], DOMAIN.select(["sex"]).shape)
    )
    assert alone.plot().get_xlabel() == "sex"


def test_blocks_are_outlined(synopsis):
    ax = synopsis.plot(["age", "pay"], blocks=True)
    _, outlines = ax.collections
    assert len(outlines.get_paths()) == 15 * 10
    corners = np.concatenate([path.vertices for path in outlines.get_paths()])
    assert corners[:, 0].min() == 16.5 and corners[:, 1].max() == 200_000
    with pytest.raises(ValueError, match="over two columns"):
        synopsis.plot("age", blocks=True)


def test_too_many_blocks_are_refused():
    axis = PlotAxis("x", np.arange(101.0), None, False)
    blocks = np.zeros((6000, 2, 2), dtype=int)
    with pytest.raises(ValueError, match=r"6,000 different blocks.*blocks=False"):
        plot_view(np.zeros((100, 100)), [axis, axis], blocks=blocks)


def test_more_cells_than_pixels_are_added_up():
    domain = Domain({"x": Numeric(0, 1, bins=4500), "y": Numeric(0, 1, bins=30)})
    synopsis = Synopsis(domain, BoxModel(Boxes([[0, 0]], [[4500, 30]]), [9000], domain.shape))
    ax = synopsis.plot()
    drawn = np.asarray(ax.collections[0].get_array())
    assert drawn.shape == (30, 900)
    assert drawn.sum() == pytest.approx(9000)
    assert ax.get_xlim() == (0, 1)


def test_a_norm_can_be_given(synopsis):
    norm = matplotlib.colors.PowerNorm(0.5, vmin=0, clip=True)
    ax = synopsis.plot(["age", "pay"], norm=norm)
    assert ax.collections[0].norm is norm


def test_every_picture_can_be_drawn(synopsis, tmp_path):
    for columns in (["age", "job"], ["job", "pay"], ["sex", "age"], "age", "pay"):
        ax = synopsis.plot(columns)
        ax.figure.savefig(tmp_path / "picture.png")
    empty = Synopsis(DOMAIN, BoxModel(Boxes([[0] * 4], [DOMAIN.shape]), [0], DOMAIN.shape))
    empty.plot(["age", "pay"]).figure.savefig(tmp_path / "picture.png")
    empty.plot("age").figure.savefig(tmp_path / "picture.png")


def test_without_matplotlib_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from skdp.domain import Domain, Numeric\n"
        "from skdp.release import Boxes, BoxModel, Synopsis\n"
        "s = Synopsis(Domain({'x': Numeric(0, 1, 4)}), BoxModel(Boxes([[0]], [[4]]), [1], (4,)))\n"
        "assert s.count() == 1\n"
        "try: s.plot()\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'skdp[plot]'" in done.stdout


def test_bins_beside_special_values_are_named_by_short_numbers():
    money = Numeric(1, 20_000, bins=3, scale="log", special=[0])
    ages = Numeric(0, 99, bins=2, integer=True, special=[999])
    domain = Domain({"money": money, "ages": ages})
    boxes = Boxes(np.array([[0, 0]]), np.array([domain.shape]))
    ax = Synopsis(domain, BoxModel(boxes, np.array([90]), domain.shape)).plot(["money", "ages"])
    assert ticks(ax.xaxis) == ["1 to 27.1", "27.1 to 737", "737 to 20000", "0"]
    assert ticks(ax.yaxis) == ["[0, 50)", "[50, 100)", "999"]


def test_edges_that_three_digits_do_not_tell_apart_are_written_out():
    near = Numeric(edges=[1000, 1000.5, 1001], special=[0])
    domain = Domain({"near": near, "sex": Categorical(["F", "M"])})
    boxes = Boxes(np.array([[0, 0]]), np.array([domain.shape]))
    ax = Synopsis(domain, BoxModel(boxes, np.array([90]), domain.shape)).plot(["near"])
    assert ticks(ax.xaxis) == ["[1000, 1000.5)", "[1000.5, 1001]", "0"]


def test_skewed_counts_get_a_skewed_scale_and_even_ones_a_linear_one():
    axes = [PlotAxis(name, np.arange(11.0), None, False) for name in "xy"]
    table = np.ones((10, 10))
    assert type(plot_view(table, axes).collections[0].norm).__name__ == "Normalize"
    table[3, 4] = 901
    mesh = plot_view(table, axes).collections[0]
    assert mesh.norm.linear_width == 10 and (mesh.norm.vmin, mesh.norm.vmax) == (0, 901)
    texts = [text.get_text() for text in mesh.colorbar.ax.get_yticklabels()]
    assert texts == ["0", "10", "30", "100", "300"]
    assert plot_view(table, axes, norm="linear").collections[0].norm.vmax == 901


def test_titles_say_what_was_released_and_its_epsilon(synopsis):
    assert synopsis.plot("age").get_title() == ""
    told = Synopsis(
        DOMAIN,
        synopsis.model,
        privacy_loss=PrivacyLoss(0.5, max_contributions=2),
        mechanism="boxes",
    )
    assert told.plot("age").get_title() == "boxes\nepsilon = 0.5 for a person"
    _, given = pyplot.subplots()
    given.set_title("mine")
    assert told.plot("age", given).get_title() == "mine"
    assert "seeded" in loss_title("", PrivacyLoss(1, seeded=True)) and loss_title("x", None) == "x"


def test_pictures_follow_the_style(synopsis):
    light = current_inks()
    with pyplot.style.context("dark_background"):
        dark = current_inks()
        bars = synopsis.plot("sex").patches
    assert (light.paper, dark.paper) == ("white", "black")
    assert bars[0].get_facecolor() == matplotlib.colors.to_rgba(dark.main)


def test_records_are_drawn_beside_the_release_for_the_data_owner():
    domain = DOMAIN.select(["age", "sex"])
    rows = pd.DataFrame(
        {"age": [20, 20, None, 40] * 50, "sex": ["Male", "Male", "Female", "?"] * 50}
    )
    model = GridSynthesizer(1.0, domain=domain).fit(rows)
    with pytest.warns(PrivacyLeakWarning, match="not private"):
        left, right = model.plot(["sex", "age"], records=rows)
    exact = np.asarray(left.collections[0].get_array()).T
    assert exact.sum() == 150 and exact[1, 3] == 100 and exact[0, -1] == 50
    assert "NOT PRIVATE" in left.get_title() and "epsilon = 1" in right.get_title()
    assert left.collections[0].norm is right.collections[0].norm
    _, pair = pyplot.subplots(1, 2)
    with pytest.warns(PrivacyLeakWarning):
        assert list(model.plot("sex", records=rows, ax=pair)) == list(pair)
    with pytest.warns(PrivacyLeakWarning), pytest.raises(ValueError, match="two axes"):
        model.plot("sex", records=rows, ax=pair[0])
    with pytest.raises(DomainError):
        model.plot("sex", records=rows[["sex"]])
    boxes = HDPViewSynthesizer(1.0, domain=domain).fit(rows).plot(["age", "sex"], blocks=True)
    assert len(boxes.collections) == 2


def test_distances_have_one_scale_and_numbers():
    ax = plot_distances(np.array([[0.1, np.nan], [0.5, 0.02]]), ["a", "b"], title="t")
    norm = ax.images[0].norm
    assert (norm.vmin, norm.vmax) == (0, 1)
    assert [text.get_text() for text in ax.texts] == ["0.10", "0.50", "0.02"]
    assert not plot_distances(np.zeros((17, 17)), list("abcdefghijklmnopq"), title="t").texts


@pytest.mark.parametrize("norm", ["log", "linear"])
def test_cells_that_a_scale_cannot_show_have_its_lowest_colour(norm):
    table = np.array([[-5.0, 0.0], [3.0, 40.0]])
    axes = [PlotAxis(name, np.arange(3.0), None, False) for name in "ab"]
    mesh = plot_view(table, axes, norm=norm).collections[0]
    colours = mesh.to_rgba(np.ma.array(table.T).ravel())
    dark = mesh.cmap(0.0)
    # Not white, nor transparent.
    assert tuple(colours[0]) == dark
    assert (tuple(colours[2]) == dark) == (norm == "log")


def counted(domain):
    n = np.random.default_rng(0).poisson(20, domain.shape).astype(float)
    cells = np.argwhere(np.ones(domain.shape))
    boxes = Boxes(cells, cells + 1)
    return Synopsis(domain, BoxModel(boxes, n.reshape(-1).astype(np.int64), domain.shape))


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize(("lower", "scale"), [(1, "log"), (0, "symlog")])
def test_numbers_on_a_declared_logarithmic_scale(tmp_path, lower, scale, nullable):
    pay = Numeric(lower, 10_000, 16, scale="log", nullable=nullable)
    domain = Domain({"pay": pay, "age": Numeric(0, 99, 10)})
    ax = counted(domain).plot("pay")
    assert ax.get_xscale() == scale and ax.get_yscale() == "linear"
    assert ax.get_xlim()[1] > 10_000 or not nullable
    assert ("missing" in ticks(ax.xaxis)) == nullable
    ax.figure.savefig(tmp_path / "log.png")
    ax = counted(domain).plot(["age", "pay"])
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", scale)
    ax.figure.savefig(tmp_path / "map.png")


@pytest.mark.parametrize(("n", "shown"), [(10, 10), (45, 45), (56, 56), (100, 50)])
def test_a_new_picture_has_room_for_all_names_up_to_1400_pixels(n, shown):
    codes = Domain({"code": Categorical([f"c{k}" for k in range(n)]), "x": Numeric(0, 9, 2)})
    ax = counted(codes).plot("code")
    width, height = ax.figure.get_size_inches() * ax.figure.dpi
    assert 400 <= width <= 1400 and 400 <= height <= 1400
    assert len(ticks(ax.xaxis)) == shown
    ax = counted(codes).plot(["x", "code"])
    assert len(ticks(ax.yaxis)) == shown
