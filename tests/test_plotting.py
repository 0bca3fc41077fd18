import numpy as np
import pandas as pd
import pytest
from loops import over

from skdp import Date, GridSynthesizer, PrivacyLoss, PrivBayesSynthesizer
from skdp._random import sampling_generator
from skdp.domain import Categorical, Domain, Numeric
from skdp.plotting import contrast, loss_title, plot_correlations
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


def test_titles_say_what_was_released_and_its_epsilon(synopsis):
    loss = PrivacyLoss(0.5, max_rows_per_id=2)
    told = Synopsis(DOMAIN, synopsis.model, privacy_loss=loss, mechanism="boxes")
    assert told.plot("age").get_title() == "boxes\nepsilon = 0.5 for a person"
    assert "seeded" in loss_title("", PrivacyLoss(1, seeded=True)) and loss_title("x", None) == "x"


def counted(domain):
    n = np.random.default_rng(0).poisson(20, domain.shape).astype(float)
    cells = np.argwhere(np.ones(domain.shape))
    boxes = Boxes(cells, cells + 1)
    return Synopsis(domain, BoxModel(boxes, n.reshape(-1).astype(np.int64), domain.shape))


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


@over(
    "columns, width, dark",
    [
        *(([column], 4, False) for column in (0, 1, 2, 4, 5)),
        *((columns, width, True) for columns in ([0, 1], [3, 4]) for width in (4, 14)),
        ([1, 2], 8, False),
        ([5, 0], 4, False),
    ],
)
def test_texts_are_inside_figures_of_all_sizes_and_do_not_overlap(columns, width, dark):
    domain = messy()
    made = counted(domain.select([domain.names[column] for column in columns]))
    with pyplot.style.context("dark_background" if dark else "default"):
        figure, ax = pyplot.subplots(figsize=(width, max(3, width / 2)))
        made.plot(ax=ax)
        ax.set_title(ax.get_title() or "a title")
        check_texts(figure)


@over("size", [(4, 4), (8, 8), None])
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
