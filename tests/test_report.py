"""Statistics of columns with margins, and the page about a release."""

import html
import importlib.util
import re
import shutil
import warnings
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from skdp.release.report import report_page

import skdp
from skdp import Categorical, Date, Domain, Identifier, Numeric, Synopsis, derived
from skdp.accounting import PrivacyLoss
from skdp.release import AnySpread, Boxes, BoxModel, GaussianNoise, KnownNoise
from skdp.release.page import bar_chart, heat_map

DOMAIN = Domain(
    {
        "age": Numeric(20, 59, integer=True),
        "pay": Numeric(0, 100, bins=20, special=[-1], nullable=True),
        "sex": Categorical(["F", "M"], nullable=True),
        "day": Date("2024-01-01", "2024-03-31", bins=13),
        "<b>&": Categorical(["'", '"', "<script>"]),
    }
)


def rows(n=3000, seed=0):
    generator = np.random.default_rng(seed)
    pay = generator.gamma(3.0, 10.0, n).clip(0, 100)
    pay[generator.random(n) < 0.1] = np.nan
    pay[generator.random(n) < 0.1] = -1
    sex = generator.choice(np.array(["F", "M", None], dtype=object), n, p=[0.5, 0.4, 0.1])
    return pd.DataFrame(
        {
            "age": generator.binomial(39, 0.4, n) + 20,
            "pay": pay,
            "sex": sex,
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(generator.integers(0, 91, n), "D"),
            "<b>&": generator.choice(["'", '"', "<script>"], n, p=[0.2, 0.7, 0.1]),
        }
    )


def one_box_each(domain, counts, law=None):
    lower = np.indices(domain.shape).reshape(len(domain.shape), -1).T
    return Synopsis(domain, BoxModel(Boxes(lower, lower + 1), counts, domain.shape, law))


@pytest.fixture(scope="module")
def release():
    return skdp.MarginalSynthesizer(2.0, domain=DOMAIN).fit(rows()).synopsis_


def test_statistics_are_those_of_pandas():
    domain = Domain({"n": Numeric(0, 9, integer=True, nullable=True), "c": Categorical(["a", "b"])})
    counts = np.random.default_rng(1).integers(0, 50, 22)
    held = pd.DataFrame(
        {
            "n": np.repeat([*range(10), np.nan], 2).repeat(counts),
            "c": np.tile(["a", "b"], 11).repeat(counts),
        }
    )
    found = one_box_each(domain, counts, KnownNoise(1.0)).describe(numbers=True).T
    expected = held.describe(include="all")
    for row in ("count", "mean", "25%", "50%", "75%"):
        assert found.loc[row, "n"] == pytest.approx(expected.loc[row, "n"])
    assert found.loc["std", "n"] == pytest.approx(held["n"].std(ddof=0))
    assert found.loc[["lower", "upper"], "n"].tolist() == [0, 9]
    assert found.loc[["count", "top", "freq"], "c"].tolist() == (
        expected.loc[["count", "top", "freq"], "c"].tolist()
    )
    assert found.loc["unique", "c"] == 2
    assert pd.isna(found.loc["mean", "c"])
    assert found.loc["mean_margin", "n"] > 0
    assert list(found.index[:2]) == ["count", "count_margin"]


def test_a_description_is_a_line_of_text_for_each_column(release):
    text, numbers = release.describe(), release.describe(numbers=True)
    assert list(text.index) == list(numbers.index) == list(DOMAIN.names)
    assert not [name for name in text if name.endswith("_margin")]
    value, margin = text.loc["pay", "mean"].split(" \u00b1 ")
    assert float(value.replace(",", "")) == pytest.approx(numbers.loc["pay", "mean"], rel=0.01)
    assert float(margin.replace(",", "")) == pytest.approx(
        numbers.loc["pay", "mean_margin"], rel=0.01
    )
    assert text.loc["day", "mean"].startswith("2024-02-") and text.loc["day", "mean"].endswith(
        "days"
    )
    assert text.loc["sex", "top"] == str(numbers.loc["sex", "top"])
    assert text.loc["sex", "mean"] == ""
    assert text.attrs == numbers.attrs
    with pytest.raises(TypeError, match="numbers must be True or False"):
        release.describe(numbers=1)


def test_margins_of_exact_counts_are_zero_and_grow_with_the_noise():
    domain = Domain({"n": Numeric(0, 9, integer=True)})
    counts = np.arange(10) * 10
    exact = one_box_each(domain, counts, GaussianNoise(np.zeros(10))).describe(numbers=True).T
    margins = [row for row in exact.index if row.endswith("_margin")]
    assert len(margins) == 6
    assert exact.loc[margins, "n"].eq(0).all()
    noisy = [
        one_box_each(domain, counts, GaussianNoise(np.full(10, v))).describe(numbers=True).T["n"]
        for v in (1, 9)
    ]
    # A little more: the number of records is less sure too.
    assert noisy[1]["mean_margin"] == pytest.approx(3 * noisy[0]["mean_margin"], rel=0.05)
    assert noisy[0]["count_margin"] == pytest.approx(1.96 * np.sqrt(10), rel=1e-3)
    wide = one_box_each(domain, counts, KnownNoise(1.0))
    margin = [
        wide.describe(level=level, numbers=True).T.loc["mean_margin", "n"] for level in (0.5, 0.95)
    ]
    assert margin[0] < margin[1]


def test_margins_cover_the_error_of_means_and_quantiles():
    """Noise of 300 releases at 90 percent: fewer than 253 hits have a probability of 0.1%."""
    domain = Domain({"n": Numeric(0, 19, integer=True)})
    truth = np.random.default_rng(2).integers(20, 200, 20)
    values = np.repeat(np.arange(20), truth)
    expected = {"mean": values.mean(), "std": values.std(), "50%": np.median(values)}
    generator = np.random.default_rng(3)
    covered, halved = dict.fromkeys(expected, 0), dict.fromkeys(expected, 0)
    for _ in range(300):
        noisy = truth + np.round(generator.normal(0, 10, 20))
        found = one_box_each(domain, noisy, GaussianNoise(np.full(20, 100.0)))
        table = found.describe(level=0.9, numbers=True).T["n"]
        for row, value in expected.items():
            off = abs(table[row] - value)
            covered[row] += off <= table[f"{row}_margin"] + 1e-9
            halved[row] += off <= table[f"{row}_margin"] / 2
    assert min(covered.values()) >= 253
    # Half the scale is refused.
    assert max(halved["mean"], halved["std"]) < 253


def test_margins_cover_uneven_boxes_as_far_as_intervals_do():
    domain = Domain({"n": Numeric(0, 9, integer=True)})
    boxes = Boxes([[0], [5]], [[5], [10]])
    noise, spread = (
        Synopsis(domain, BoxModel(boxes, [500, 500], (10,), law)).describe(numbers=True).T["n"]
        for law in (KnownNoise(1.0), AnySpread(1.0))
    )
    # All records of the first box may be zeros, those of the second fives, or fours and nines.
    assert spread["mean_margin"] > 2.0 > noise["mean_margin"]
    assert (
        "any spread"
        in Synopsis(domain, BoxModel(boxes, [500, 500], (10,), AnySpread(1.0)))
        .describe()
        .attrs["guarantee"]
    )


def test_many_quick_margins_are_near_the_exact_ones():
    boxes = Boxes(np.arange(0, 40, 2)[:, None], np.arange(2, 42, 2)[:, None])
    bound = skdp.release.LeafErrorBound(2.0, 0.0, 3.0, np.ones(20, int), np.arange(1, 21))
    for law in (KnownNoise(0.2), AnySpread(0.2), skdp.release.BoundedSpread(0.2, bound)):
        model = BoxModel(boxes, np.full(20, 300), (40,), law)
        weights = np.zeros((3, 40))
        weights[0, :17], weights[1, 3], weights[2] = 1.0, 1.0, 1.0
        half, _ = model.column_errors(0, weights, 0.95)
        exact = [model.error({0: row}, 0.95) for row in weights]
        np.testing.assert_allclose(half, [max(e.below, e.above) for e in exact], rtol=0.15)


def test_dates_missing_values_and_derived_columns(release):
    found = release.describe(numbers=True).T
    held = rows()
    assert isinstance(found.loc["mean", "day"], pd.Timestamp)
    assert abs(found.loc["mean", "day"] - held["day"].mean()) <= found.loc["mean_margin", "day"]
    assert found.loc["upper", "day"] == pd.Timestamp("2024-03-31")
    assert pd.isna(found.loc["std", "day"])
    assert found.loc["count", "pay"] == pytest.approx(held["pay"].notna().sum(), rel=0.1)
    domain = DOMAIN.select(["age", "sex"])
    names = {n: "old" if n > 39 else "young" for n in range(20, 60)}
    wider = Domain(
        {**dict(domain.items()), "group": Categorical(["young", "old"]), "id": Identifier("P{}")},
        structure=[derived("group", from_="age", map=names)],
    )
    other = one_box_each(wider, np.ones(120), KnownNoise(1.0)).describe(numbers=True).T
    assert other.columns.tolist() == ["age", "sex", "group"]
    assert other.loc["freq", "group"] == pytest.approx(60)


@pytest.mark.parametrize("counts", [np.zeros(10), np.full(10, -5.0)])
def test_empty_releases_have_a_description_and_a_page(counts):
    domain = Domain({"n": Numeric(0, 9, integer=True)})
    empty = one_box_each(domain, counts, KnownNoise(1.0))
    assert pd.isna(empty.describe(numbers=True).T.get("n").get("mean", np.nan))
    assert "unknown" in report_page(empty, "Empty", 0.95)


def test_a_release_without_error_bars_says_so():
    network = skdp.PrivBayesSynthesizer(1.0, domain=DOMAIN).fit(rows(300)).synopsis_
    found = network.describe(numbers=True).T
    assert found.loc[[row for row in found.index if "margin" in row]].isna().all(axis=None)
    assert "no error bars" in found.attrs["guarantee"]
    page = report_page(network, "Network", 0.95)
    assert "How far answers are off" in page
    assert 'class="band"' not in page


# --- the page


class Checked(HTMLParser):
    """Elements are closed in order; what is requested or run is collected."""

    EMPTY = {"meta", "rect", "line", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.asked, self.texts, self.tags = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.asked += [value for name, value in attrs if name in ("src", "href", "srcset", "data")]
        self.asked += [name for name, _ in attrs if name.startswith("on")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_a_page_stands_by_itself(release, tmp_path):
    path = tmp_path / "report.html"
    release.report(path, title="Pay & days <2024>")
    text = path.read_text(encoding="utf-8")
    page = Checked(text)
    assert page.asked == []
    assert not {"script", "link", "img", "iframe", "b&"} & set(page.tags)
    assert not re.search(r"url\(|@import|https?://", text)
    assert "default-src 'none'" in text
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    shown = " ".join(page.texts)
    assert "Pay & days <2024>" in shown
    for name in DOMAIN.names:
        assert name in shown
    assert page.tags.count("svg") >= len(DOMAIN.names)
    for words in ("epsilon = 2", "7.39", "88.1%", "every record", "cannot be answered"):
        assert words in shown
    assert 'class="band"' in text
    assert "Mean" in shown
    assert all("aria-label" in svg for svg in re.findall(r"<svg[^>]*>", text))


def test_a_page_warns_of_seeds_inferred_domains_and_unknown_losses(release):
    def told(loss, domain=DOMAIN):
        return report_page(Synopsis(domain, release.model, privacy_loss=loss), "T", 0.95)

    assert "not recorded" in told(None)
    assert "without any guarantee" in told(PrivacyLoss(1.0, seeded=True))
    person = told(PrivacyLoss(0.5, max_contributions=3))
    assert "for every person" in person
    assert "at most 3 records of each" in person
    assert "Parts of epsilon" in told(PrivacyLoss(1.0))
    assert "no protection" in told(PrivacyLoss(1000))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inferred = Domain.infer(pd.DataFrame({"n": [1, 2, 3]}))
    model = BoxModel(Boxes([[0]], [[3]]), [3], inferred.shape, KnownNoise(1.0))
    page = report_page(Synopsis(inferred, model, privacy_loss=PrivacyLoss(1.0)), "T", 0.95)
    assert "read from the data" in page


def test_bars_have_heights_in_proportion_and_negative_counts_none():
    svg = bar_chart(
        np.array([10.0, 5.0, -3.0]),
        np.full(3, np.nan),
        ["a", "b", "c"],
        [(0.2, "first"), (0.9, "c")],
        "Three bars",
    )
    # The largest number is written at its height.
    assert re.findall(r">([^<]*)</text>", svg) == ["10", "first", "c"]
    heights = [float(h) for h in re.findall(r'class="bar"[^>]* height="([\d.]+)"', svg)]
    assert heights[0] == pytest.approx(2 * heights[1], abs=0.2)
    assert heights[2] == 0
    assert "band" not in svg


def test_many_categories_and_bins_are_drawn_in_part():
    domain = Domain({"c": Categorical(range(300)), "n": Numeric(0, 1000, bins=500)})
    release = skdp.MarginalSynthesizer(1.0, domain=domain).fit(
        pd.DataFrame({"c": np.arange(900) % 300, "n": np.linspace(0, 1000, 900)})
    )
    text = report_page(release.synopsis_, "Many", 0.95)
    assert "281 others" in text
    assert text.count('class="bar"') < 1000


@pytest.mark.slow
def test_a_page_fits_a_phone_in_chromium(release, tmp_path):
    pytest.importorskip("playwright")
    path = Path(__file__).resolve().parent.parent / "docs" / "check_site.py"
    spec = importlib.util.spec_from_file_location("check_site", path)
    check_site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(check_site)
    chromium = next(filter(None, map(shutil.which, check_site.BROWSERS)), None)
    if chromium is None:
        pytest.skip("Chromium is not installed")
    site = tmp_path / "site"
    site.mkdir()
    release.report(site / "index.html")
    problems = check_site.check_in_browser(site, chromium, tmp_path / "shots")
    # There is no page of searches.
    assert not [each for each in problems if "search" not in each]
    assert len(list((tmp_path / "shots").iterdir())) == 4


def test_a_column_with_very_many_categories_is_described():
    domain = Domain({"id": Categorical(list(range(200_000))), "c": Categorical(["a", "b"])})
    boxes = Boxes(np.array([[0, 0], [7, 0], [8, 0]]), np.array([[7, 2], [8, 2], [200_000, 2]]))
    model = BoxModel(boxes, [3, 500, 10], domain.shape, KnownNoise(1.0))
    release = Synopsis(domain, model)
    described = release.describe(numbers=True).T
    assert described.loc["top", "id"] == 7
    assert described.loc["freq_margin", "id"] == pytest.approx(2.8, abs=0.2)
    with pytest.raises(ValueError, match="200,000 groups"):
        release.aggregate("id")


def test_a_page_names_every_category_and_cell(release):
    text = report_page(release, "T", 0.95)
    written = re.findall(r"<text[^>]*>([^<]*)</text>", text)
    assert {"F", "M", "missing", "'", '"', "<script>"} <= {html.unescape(each) for each in written}
    # Numbers have round ends, dates their days.
    assert {"0", "35", "-1, missing", "2024-01-01", "20"} <= set(written)
    table = np.ones((1, 20))
    names = [f"category {k}" for k in range(20)]
    assert all(f">{name}</text>" in heat_map(table, ["row"], names, "alt") for name in names)
    assert "rotate" not in heat_map(table[:, :2], ["row"], ["a", "b"], "alt")


def test_a_page_has_correlations_with_intervals():
    domain = Domain({name: Numeric(0, 9, bins=5) for name in "abcdefghij"})
    frame = pd.DataFrame({name: np.arange(500) % 10 for name in domain.names})
    release = skdp.MarginalSynthesizer(5.0, domain=domain).fit(frame).synopsis_
    text = report_page(release, "T", 0.9)
    found = release.correlation(list("abcdefgh"), return_interval=True, level=0.9)
    low, high = (found[end].loc["a", "b"] for end in ("lower", "upper"))
    number = f"{found['value'].loc['a', 'b']:.2f}<br>\u00b1 {(high - low) / 2:.2f}"
    assert number in text and f"from {low:.2f} to {high:.2f}" in text
    assert "first 8 of 10 columns" in text and "interval at 90%" in text
    Checked(text)
    one = Synopsis(domain.select(["a"]), BoxModel(Boxes([[0]], [[5]]), [9], (5,), KnownNoise(1.0)))
    assert "Correlations" not in report_page(one, "T", 0.9)


def test_bars_of_a_column_hold_equally_many_numbers():
    domain = Domain({"age": Numeric(17, 90, integer=True)})
    text = report_page(one_box_each(domain, np.full(74, 10), KnownNoise(1.0)), "T", 0.95)
    heights = re.findall(r'class="bar"[^>]* height="([\d.]+)"', text)
    assert len(heights) == 37 and len(set(heights)) == 1
