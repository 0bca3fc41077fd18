import numpy as np
import pytest

from skdp import PrivacyLoss
from skdp.domain import Categorical, Domain, Numeric
from skdp.plotting import loss_title
from skdp.release import Boxes, BoxModel, Synopsis

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

DOMAIN = Domain(
    {
        "age": Numeric(17, 90, integer=True, nullable=True),
        "pay": Numeric(0, 200_000, bins=50),
        "job": Categorical(["clerk", "cook", "teacher"], nullable=True),
    }
)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    pyplot.close("all")


@pytest.fixture
def synopsis():
    """Boxes of five ages and five ranges of pay, some of them negative."""
    lower = np.indices((15, 10, 4)).reshape(3, -1).T * np.array([5, 5, 1])
    upper = np.minimum(lower + np.array([5, 5, 1]), DOMAIN.shape)
    counts = np.random.default_rng(0).poisson(9, len(lower)) - 7
    return Synopsis(DOMAIN, BoxModel(Boxes(lower, upper), counts, DOMAIN.shape))


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
