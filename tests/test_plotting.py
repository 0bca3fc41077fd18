import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from skdp import (
    Date,
    GridSynthesizer,
    PrivacyLoss,
    PrivBayesSynthesizer,
)
from skdp._random import sampling_generator
from skdp.domain import Categorical, Domain, Numeric
from skdp.plotting import (
    PlotAxis,
    contrast,
    current_inks,
    loss_title,
    plot_correlations,
    plot_view,
)
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
    return [label.get_text() for label in axis.get_ticklabels() if label.get_text()]


def check_texts(figure):
    """All texts are inside the figure, and labels of an axis apart from each other."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    width, height = figure.canvas.get_width_height()
    for text in figure.findobj(matplotlib.text.Text):
        if text.get_visible() and text.get_text() and not text.get_clip_on():
            box = text.get_window_extent(renderer)
            assert box.x0 >= -1 and box.y0 >= -1, text
            assert box.x1 <= width + 1 and box.y1 <= height + 1, text
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            labels = [label for label in axis.get_ticklabels() if label.get_text()]
            low, high = sorted(axis.get_view_interval())
            places = axis.get_ticklocs()
            shown = [
                label.get_window_extent(renderer)
                for label, place in zip(axis.get_ticklabels(), places, strict=True)
                if label.get_text() and low <= place <= high
            ]
            assert labels == [] or shown
            for k, one in enumerate(shown):
                assert not any(one.overlaps(other) for other in shown[k + 1 :])


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


def test_categories_are_named_and_names_that_do_not_fit_are_shortened_and_turned(synopsis):
    ax = synopsis.plot(["job", "sex"])
    assert ticks(ax.xaxis) == ["clerk", "cook", "teacher of mathemat…", "nurse", "farmer",
                               "none", "missing"]  # fmt: skip
    assert ticks(ax.yaxis) == ["Female", "Male"]
    assert {label.get_rotation() for label in ax.get_xticklabels()} == {90}
    assert {label.get_rotation() for label in ax.get_yticklabels()} == {0}
    # The first category is the uppermost one.
    assert ax.get_ylim() == (1.5, -0.5)


def test_one_column_makes_bars(synopsis):
    ax = synopsis.plot("sex")
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], synopsis.view("sex"))
    assert ax.get_ylabel() == "expected records" and ax.get_xlabel() == "sex"
    # Long names stand beside their bars.
    ax = synopsis.plot("job")
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], synopsis.view("job"))
    assert ax.get_xlabel() == "expected records" and ax.get_ylabel() == "job"
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


def test_fine_cells_are_added_up():
    domain = Domain({"x": Numeric(0, 1, bins=4500), "y": Numeric(0, 1, bins=30)})
    synopsis = Synopsis(domain, BoxModel(Boxes([[0, 0]], [[4500, 30]]), [9000], domain.shape))
    ax = synopsis.plot()
    drawn = np.asarray(ax.collections[0].get_array())
    assert drawn.shape == (30, 125)
    assert drawn.sum() == pytest.approx(9000)
    assert ax.get_xlim() == (0, 1)


def test_fine_bins_are_added_up_and_special_values_stand_alone():
    domain = Domain({"x": Numeric(0, 512, bins=512, special=[0]), "y": Numeric(0, 1, bins=2)})
    boxes = Boxes([[0, 0], [512, 0]], [[512, 2], [513, 2]])
    ax = Synopsis(domain, BoxModel(boxes, [1024, 300], domain.shape)).plot("x")
    assert [bar.get_width() for bar in ax.patches] == [16.0] * 64 + [300.0]
    assert ax.get_yticklabels()[0].get_text() == "0 to 8"
    domain = Domain({"x": Numeric(0, 512, bins=512)})
    ax = Synopsis(domain, BoxModel(Boxes([[0]], [[512]]), [1024], domain.shape)).plot("x")
    assert ax.patches[0].get_data().values.tolist() == [8.0] * 128


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
        privacy_loss=PrivacyLoss(0.5, max_rows_per_id=2),
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


@pytest.mark.parametrize(("n", "shown"), [(10, 10), (45, 45), (56, 56), (1000, 74)])
def test_a_new_picture_has_room_for_all_names_up_to_1400_pixels(n, shown):
    codes = Domain({"code": Categorical([f"c{k}" for k in range(n)]), "x": Numeric(0, 9, 2)})
    made = counted(codes)
    ax = made.plot("code")
    width, height = ax.figure.get_size_inches() * ax.figure.dpi
    assert 400 <= width <= 1400 and 400 <= height <= 1400
    check_texts(ax.figure)
    assert len(ticks(ax.xaxis if n == 10 else ax.yaxis)) == shown


def test_of_many_categories_the_largest_are_drawn_and_the_rest_as_one():
    counts = np.arange(200.0)[::-1]
    axis = PlotAxis("code", np.arange(201) - 0.5, [f"c{k}" for k in range(200)], True)
    _, ax = pyplot.subplots(figsize=(4, 3))
    plot_view(np.append(counts, 7.0), [axis], ax=ax)
    widths = [bar.get_width() for bar in ax.patches]
    n = len(widths) - 2
    assert widths[:n] == counts[:n].tolist() and widths[-1] == 7
    assert widths[n] == counts[n:].sum()
    assert ticks(ax.yaxis)[-2:] == [f"{200 - n} others", "missing"]
    # Their bar is cut off; its number stands in it.
    assert ax.get_xlim()[1] < 400
    assert ax.texts[0].get_text().strip() == f"{counts[n:].sum():,.0f}"
    # Ordered ones are all drawn, and those of a heat map of which blocks are outlined.
    assert len(plot_view(counts, [axis._replace(missing=False, ordered=True)]).patches) == 200
    table = np.outer(counts, [1.0, 2.0])
    two = PlotAxis("x", np.arange(3.0), None, False)
    mesh = plot_view(table, [axis._replace(missing=False), two]).collections[0]
    drawn = np.asarray(mesh.get_array())
    assert drawn.shape[1] < 100 and drawn.sum() == table.sum()
    # The rest does not decide on the colours.
    assert drawn[:, -1].max() > mesh.norm.vmax == table.max()
    blocks = np.array([[[0, 50], [0, 2]]])
    mesh = plot_view(table, [axis._replace(missing=False), two], blocks=blocks).collections[0]
    assert np.asarray(mesh.get_array()).shape[1] == 200


INTERVAL = (np.full((3, 3), -0.2), np.full((3, 3), 0.5))


def messy():
    long = "the industry in which the person worked most of the time during the last year"
    trades = [f"{long} ({letter}), not elsewhere classified" for letter in "ABCDEFGH"]
    return Domain(
        {
            "average_household_income_before_tax_and_transfers_in_2019": Numeric(0, 1e7, bins=8),
            long: Categorical(trades),
            "price ($)": Categorical(["$0-$9", "$10-$99", "$100+"], nullable=True),
            "ok": Categorical([False, True], nullable=True),
            "pay": Numeric(0, 2_000_000, bins=12, scale="log", nullable=True),
            "day": Date("2024-02-03", "2024-02-23", nullable=True),
        }
    )


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [4, 8, 14])
@pytest.mark.parametrize("columns", [[0], [1], [2], [4], [5], [0, 1], [1, 2], [3, 4], [5, 0]])
def test_texts_are_inside_figures_of_all_sizes_and_do_not_overlap(columns, width, dark):
    domain = messy()
    made = counted(domain.select([domain.names[column] for column in columns]))
    with pyplot.style.context("dark_background" if dark else "default"):
        figure, ax = pyplot.subplots(figsize=(width, max(3, width / 2)))
        made.plot(ax=ax)
        ax.set_title(ax.get_title() or "a title")
        check_texts(figure)


def test_names_that_share_their_beginning_are_told_apart(synopsis):
    domain = messy()
    names = domain.names
    _, ax = pyplot.subplots(figsize=(4, 3))
    counted(domain.select([names[1]])).plot(ax=ax)
    shown = ticks(ax.yaxis)
    assert len(set(shown)) == 8 and all(
        f"({x})" in t for x, t in zip("ABCDEFGH", shown, strict=True)
    )
    # The name of the column is whole, broken at underscores, and dollars make no formula.
    _, ax = pyplot.subplots(figsize=(4, 3))
    counted(domain.select([names[0]])).plot(ax=ax)
    assert ax.get_xlabel().replace("\n", "") == names[0]
    assert all(line.endswith("_") for line in ax.get_xlabel().split("\n")[:-1])
    ax = counted(domain.select([names[2]])).plot()
    assert ticks(ax.xaxis)[0] == r"\$0-\$9"


def test_what_dates_share_and_large_numbers_are_written_out():
    ax = counted(Domain({"day": Date("2024-02-03", "2024-02-23")})).plot()
    assert ax.get_xlabel() == "day (2024-Feb)" and "09" in ticks(ax.xaxis)
    ax = counted(Domain({"pay": Numeric(10_000, 2_000_000, 8, scale="log")})).plot()
    assert {"10,000", "100,000", "1,000,000"} <= set(ticks(ax.xaxis))
    ax = counted(Domain({"year": Numeric(1990, 2024, integer=True)})).plot()
    assert "2000" in ticks(ax.xaxis)


@pytest.mark.parametrize("size", [(4, 4), (8, 8), None])
def test_correlations_have_numbers_and_half_widths(size):
    matrix = np.full((3, 3), 0.15) + 0.85 * np.eye(3)
    names = ["a", "hours per week of work", "pay"]
    ax = None if size is None else pyplot.subplots(figsize=size)[1]
    ax = plot_correlations(matrix, names, interval=INTERVAL, title="t", ax=ax)
    texts = [text.get_text() for text in ax.texts]
    assert texts.count("0.15\n±0.35") == 6 and texts.count("1.00") == 3
    image = ax.images[0]
    assert (image.norm.vmin, image.norm.vmax) == (-1, 1)
    for text in ax.texts:
        column, row = (round(place) for place in text.get_position())
        assert contrast(text.get_color(), image.to_rgba(matrix[row, column])[:3]) >= 4.5
    check_texts(ax.figure)


def test_sixty_columns_have_correlations_in_a_new_picture_of_1400_pixels():
    names = [f"measurement_{k:02d}" for k in range(60)]
    many = np.full((60, 60), 0.3)
    ax = plot_correlations(many, names, interval=[many - 0.1, many + 0.1])
    width, height = ax.figure.get_size_inches() * ax.figure.dpi
    assert width <= 1400 and height <= 1400 and not ax.texts
    assert ticks(ax.yaxis) == names


def test_more_than_two_columns_make_a_matrix_of_correlations():
    frame = pd.DataFrame({name: np.arange(300) % 10 for name in "abc"})
    domain = Domain({name: Numeric(0, 9, bins=5) for name in "abc"})
    made = GridSynthesizer(epsilon=1.0, domain=domain).fit(frame).synopsis_
    ax = made.plot(["a", "b", "c"])
    found = made.correlation(return_interval=True)
    np.testing.assert_allclose(ax.images[0].get_array(), found["value"])
    assert "95% intervals" in ax.get_title() and "epsilon = 1" in ax.get_title()
    with pytest.raises(ValueError, match="one or two different"):
        made.plot(["a", "b", "c"], blocks=True)
    with pytest.raises(ValueError, match="sex"):
        counted(DOMAIN.select(["age", "sex", "job"])).plot(["age", "sex", "job"])
    # A network has no error bars.
    network = PrivBayesSynthesizer(epsilon=1.0, domain=domain).fit(frame)
    assert not network.plot(["a", "b", "c"]).collections


@pytest.mark.parametrize("style", ["default", "dark_background", "ggplot", "seaborn-v0_8-dark"])
def test_inks_can_be_read_on_the_paper_of_the_style(style):
    with pyplot.style.context(style):
        inks = current_inks()
        for ink in (inks.ink, inks.main, inks.bad, inks.grey, *inks.lines):
            assert contrast(ink, inks.paper) >= (
                4.5 if style in ("default", "dark_background") else 3.8
            )
        assert contrast(inks.grey, inks.paper) >= 4.5
    assert contrast("black", "white") == pytest.approx(21)


def test_an_empty_release_has_axes_from_zero():
    axes = [PlotAxis("x", np.arange(4.0), None, False), PlotAxis("y", np.arange(3.0), None, False)]
    assert plot_view(np.zeros(3), axes[:1]).get_ylim() == (0, 1)
    for table in (np.zeros((3, 2)), np.full((3, 2), -4.0)):
        norm = plot_view(table, axes).collections[0].norm
        assert (norm.vmin, norm.vmax) == (0, 1)
