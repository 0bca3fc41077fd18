import numpy as np
import pandas as pd
import pytest

from skdp import GridSynthesizer, PrivacyLoss, PrivBayesSynthesizer
from skdp._random import sampling_generator
from skdp.domain import Categorical, Domain, Numeric
from skdp.plotting import contrast, loss_title
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


def test_more_than_two_columns_make_a_matrix_of_correlations(synopsis):
    frame = pd.DataFrame({name: np.arange(300) % 10 for name in "abc"})
    domain = Domain({name: Numeric(0, 9, bins=5) for name in "abc"})
    made = GridSynthesizer(epsilon=1.0, domain=domain).fit(frame).synopsis_
    ax = made.plot(["a", "b", "c"])
    found = made.correlation(return_interval=True)
    image = ax.images[0]
    covers = (found["lower"] <= 0) & (found["upper"] >= 0)
    np.testing.assert_allclose(image.get_array(), found["value"].where(~covers, 0.0))
    assert (image.norm.vmin, image.norm.vmax) == (-1, 1)
    assert [text.get_text() for text in ax.texts].count("1.00") == 3
    for text in ax.texts:
        column, row = (round(place) for place in text.get_position())
        shade = image.to_rgba(image.get_array()[row, column])[:3]
        assert contrast(text.get_color(), shade) >= 4.5
    assert "95% intervals" in ax.get_title() and "epsilon = 1" in ax.get_title()
    with pytest.raises(ValueError, match="one or two different"):
        made.plot(["a", "b", "c"], blocks=True)
    with pytest.raises(ValueError, match="sex"):
        synopsis.plot(["age", "sex", "job"])
    # A network has no error bars.
    network = PrivBayesSynthesizer(epsilon=1.0, domain=domain).fit(frame)
    assert not network.plot(["a", "b", "c"]).collections
