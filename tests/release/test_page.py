"""Statistics of columns with margins, and the page that answers questions about a release."""

import hashlib
import json
import random
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from boxed import one_box_each
from ruled import lawful_rows

import skdp
from skdp import Categorical, Date, Domain, Numeric, Synopsis, derived, forbid
from skdp.accounting import PrivacyLoss
from skdp.release import BoxModel, Intervals
from skdp.release.model import Reach

DOMAIN = Domain(
    {
        "age": Numeric(20, 59, integer=True),
        "pay": Numeric(0, 100, bins=20, special=[-1], nullable=True),
        "sex": Categorical(["F", "M"], nullable=True),
        "day": Date("2024-01-01", "2024-03-31", bins=13),
        "<b>&": Categorical(["'", '"', "<script>"]),
    }
)


def data_of(page):
    """What the script of a page reads."""
    return re.search(r'id="data">(.*?)</script>', page.text, re.DOTALL)[1]


def held(page):
    return json.loads(data_of(page))


@cache
def hard_release(epsilon=1.0):
    """Columns of every kind, under rules, with noise that makes some counts negative."""
    young = {n: "old" if n > 40 else "young" for n in range(20, 60)}
    domain = Domain(
        {
            **dict(DOMAIN.select(["age", "pay", "sex", "<b>&"]).items()),
            "stars": Categorical([1, 2, 3], ordered=True),
            "gain": Numeric(0, 99_999, scale="log", integer=True, bins=12, special=[0]),
            "cents": Numeric(0, 5, bins=11, decimals=2, special=[5, 2.5]),
            "day": Date("2024-01-01", "2024-03-31", bins=13),
            "group": Categorical(["young", "old"], ordered=True),
        },
        structure=[derived("group", from_="age", map=young), forbid("sex == 'M' and stars == 3")],
    )
    synthesizer = skdp.MarginalSynthesizer(epsilon=epsilon, domain=domain)
    return synthesizer.fit(lawful_rows(2000, domain)).synopsis_


@pytest.fixture(scope="module")
def release():
    return hard_release(2.0)


def test_cubes_and_range_trees_have_a_page_of_their_numbers(tmp_path):
    rows = pd.DataFrame({"kind": ["A & <b>", "C"] * 500, "age": [30, 60] * 500})
    domain = {"kind": ["A & <b>", "C"], "age": Numeric(edges=[0, 50, 100])}
    cube = skdp.DataCube(epsilon=0.75, domain=domain).fit(rows)
    assert cube.page(tmp_path / "cube.html", title="Ages <all>") is None
    text = (tmp_path / "cube.html").read_text(encoding="utf-8")
    assert "<h1>Ages &lt;all&gt;</h1>" in text and "A &amp; &lt;b&gt;" in text
    assert "<b>epsilon = 0.75</b>" in text and "<script" not in text and "http:" not in text
    tree = skdp.RangeTreeHistogram(epsilon=1.0, domain={"age": (18, 90)}).fit(rows[["age"]])
    assert tree.page().text.count("<tr") == 1 + len(tree.to_frame())
    assert "<iframe" in tree.page()._repr_html_()


def test_statistics_are_those_of_pandas():
    domain = Domain({"n": Numeric(0, 9, integer=True, nullable=True), "c": Categorical([3, 4])})
    counts = np.random.default_rng(1).integers(0, 50, 22)
    held = pd.DataFrame(
        {
            "n": np.repeat([*range(10), np.nan], 2).repeat(counts),
            "c": pd.Series(np.tile([3, 4], 11).repeat(counts), dtype=object),
        }
    )
    release = one_box_each(domain, counts, Intervals(1.0))
    found, expected = release.describe().T, held.describe(include="all")
    for row in ("count", "mean", "25%", "50%", "75%"):
        assert found.loc[row, "n"].value == pytest.approx(expected.loc[row, "n"])
    for row in ("count", "freq"):
        assert found.loc[row, "c"].value == expected.loc[row, "c"]
    # A category that is an integer stays one beside numbers that are none.
    assert repr(found.loc["top", "c"]) == f"{expected.loc['top', 'c']:.0f}"
    assert found.loc["std", "n"].value == pytest.approx(held["n"].std(ddof=0))
    assert found.loc[["lower", "upper"], "n"].tolist() == [0, 9]
    assert found.loc["unique", "c"] == 2 and pd.isna(found.loc["mean", "c"])


def test_empty_releases_have_a_description_and_a_page():
    for count in (0.0, -5.0):
        domain = Domain({"n": Numeric(0, 9, integer=True)})
        empty = one_box_each(domain, np.full(10, count), Intervals(1.0))
        assert pd.isna(empty.describe().T.get("n").get("mean", np.nan))
        assert held(empty.page())["columns"][0]["caption"] == "Mean unknown; median unknown"


# --- the page


def test_a_page_stands_by_itself(release, tmp_path):
    path = tmp_path / "page.html"
    assert release.page(path, title="Pay & days <2024>") is None
    text = path.read_text(encoding="utf-8")
    # Texts of the script aside, nothing is asked of the network, and only two scripts stand there.
    outside = re.sub(r"(<script[^>]*>).*?(</script>)", r"\1\2", text, flags=re.DOTALL)
    tags = re.findall(r"<([\w&]+)", outside)
    assert tags.count("script") == 2 and not {"link", "img", "iframe", "b&"} & {*tags}
    assert set(re.findall(r'\b(?:src|href|srcset|data|on\w+)="(.)', outside)) == {"#"}
    [policy] = re.findall(r'Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert 'name="viewport"' in text and "prefers-color-scheme: dark" in text
    for words in ("Pay &amp; days &lt;2024&gt;", "epsilon = 2", "7.39", "88.1%", "every record"):
        assert words in outside
    # Nothing in the data ends the script that holds it.
    assert "<" not in data_of(release.page())
    assert [column["name"] for column in held(release.page())["columns"]] == list(
        release.domain.columns
    )


def test_a_network_answers_with_estimates(tmp_path):
    rows = lawful_rows(2000, DOMAIN)
    release = skdp.PrivBayesSynthesizer(epsilon=2.0, domain=DOMAIN).fit(rows).synopsis_
    page = release.page()
    assert "the line on it" not in page.text
    columns, generator = held(page)["columns"], random.Random(0)
    questions = [
        {**asked_question(generator, columns), "kind": kind} for kind in ("count", "mean") * 15
    ]
    found = answers_of_node(data_of(page), questions, tmp_path)["found"]
    for answer in found:
        assert "(estimated)" in answer["words"] and "return_interval" not in answer["python"]
        value, expected = answer["cells"][0][0], eval(answer["python"], {"release": release})
        if ".count" in answer["python"]:
            assert abs(value - expected) < 0.005 * release.total


def test_a_page_is_small_and_has_a_fingerprint(release, tmp_path):
    page = release.page()
    facts, arrays = release.model.to_arrays()
    whole = json.dumps([facts, {name: array.tolist() for name, array in arrays.items()}])
    assert len(data_of(page)) < 1.5 * len(whole)
    release.save(tmp_path / "view.skdp")
    # One fingerprint to publish: that of the file of the release.
    digits = hashlib.sha256((tmp_path / "view.skdp").read_bytes()).hexdigest()
    assert set(re.findall("[0-9a-f]{64}", page.text)) == {digits, page.fingerprint}
    assert release.page().text == page.text


def test_bars_of_fine_bins_are_even_or_those_that_were_declared():
    domain = Domain({"a": Numeric(0, 2000, bins=5), "b": (0.0, 2000.0)})
    fitted = skdp.MarginalSynthesizer(epsilon=1.0, domain=domain).fit(lawful_rows(100, domain))
    declared, even = (
        [bar[0].strip("[)]").split(", ") for bar in column["bars"]]
        for column in held(fitted.page())["columns"]
    )
    assert declared == [[f"{400 * i}", f"{400 * i + 400}"] for i in range(5)]
    assert len(even) == 40 and even[1] == ["50", "100"]


def test_a_page_warns_of_seeds_and_unknown_losses(release):
    for loss, words in (
        (None, "not recorded"),
        (PrivacyLoss(1.0, seeded=True), "without any guarantee"),
        (PrivacyLoss(0.5, max_rows_per_id=3), "for every person.*at most 3 records of each"),
        (PrivacyLoss(1.0), "Parts of epsilon(?!.*Epsilon 1 )"),
        (PrivacyLoss(21), "protects hardly anybody"),
        (PrivacyLoss(0.005), "is very small"),
    ):
        page = Synopsis(release.counted, release.model, privacy_loss=loss).page()
        assert re.search(words, page.text, re.DOTALL), words


# --- the script of the page answers as Python does


def asked_condition(generator, column):
    if column["kind"] == "category":
        number = generator.randint(1, max(1, min(column["size"] - 1, 6)))
        return {"codes": sorted(generator.sample(range(column["size"]), number))}
    others = range(column["bins"], column["size"])
    if others and generator.random() < 0.2:
        return {"codes": sorted(generator.sample(others, generator.randint(1, len(others))))}
    low, high = sorted(generator.randrange(column["bins"]) for _ in range(2))
    return {"from": low, "to": high}


def asked_question(generator, columns):
    """A random question as the page has it in its links."""
    kinds = ["count"] * 4 + ["share", "mean", "quantile"] * 3 + ["cross", "means"]
    kind = generator.choice(kinds)
    found = {"kind": kind, "q": round(generator.uniform(0.05, 0.95), 2), "where": []}
    found["level"] = generator.choice([80, 90, 95, 99])
    number = min(len(columns), generator.choice([0, 1, 1, 2, 2, 3, 4]))
    for place in generator.sample(range(len(columns)), number):
        condition = asked_condition(generator, columns[place])
        if kind == "share" and generator.random() < 0.4:
            condition["among"] = True
        found["where"].append([place, condition])
    key = "pieces" if kind == "quantile" else "numbers"
    found["column"] = generator.choice([i for i, c in enumerate(columns) if c.get(key)])
    found["rows"], found["across"] = (generator.sample(range(len(columns)), 2) * 2)[:2]
    return found


def as_number(value):
    """Of a moment the days since 1970."""
    if isinstance(value, pd.Timestamp | pd.Timedelta):
        return value.value / 86400e9
    return np.nan if value is None or value is pd.NaT else value


def python_cells(question, found):
    if question["kind"] in ("cross", "means"):
        first = "count" if question["kind"] == "cross" else "mean"
        parts = (found[name] for name in (first, "std_error", "lower", "upper"))
        flat = [list(map(as_number, part.to_numpy(dtype=object).ravel())) for part in parts]
        return np.array(flat, dtype=float).T
    return [[found.value, found.std, found.lower, found.upper]]


def page_cells(question, columns, release, answer):
    """Cells of the script, with categories as Python has them."""
    column = columns[question["column"]]
    if question["kind"] == "quantile" and column["kind"] == "category":
        categories = release.domain[column["name"]].categories
        value, _, low, high = answer["cells"][0]
        name = None if value is None else categories[value]
        return [[name, np.nan, categories[low], categories[high]]]
    return answer["cells"]


NODE = shutil.which("node")
SCRIPT = Path(skdp.__file__).parent / "release" / "web" / "page.mjs"


def answers_of_node(data, questions, tmp_path):
    if NODE is None:
        pytest.skip("node is not installed: the script of the page was not run")
    file = tmp_path / "questions.json"
    file.write_text(json.dumps({"data": data, "questions": questions}), encoding="utf-8")
    command = [NODE, str(Path(__file__).with_name("page.mjs")), str(SCRIPT), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_the_page_answers_as_python(release, number, tmp_path, seed=0):
    page = release.page()
    columns = held(page)["columns"]
    generator = random.Random(seed)
    questions = [asked_question(generator, columns) for _ in range(number)]
    told = answers_of_node(data_of(page), questions, tmp_path)
    answered = other_texts = 0
    for question, answer in zip(questions, told["found"], strict=True):
        if "refused" in answer:
            continue
        answered += 1
        # What "copy as Python" copies is run here.
        found = eval(answer["python"], {"release": release})
        told_by = found.attrs["guarantee"] if isinstance(found, pd.DataFrame) else found.guarantee
        expected = python_cells(question, found)
        cells = page_cells(question, columns, release, answer)
        for own, theirs in zip(cells, expected, strict=True):
            if any(isinstance(each, str) for each in theirs):
                assert [own[0], *own[2:]] == [theirs[0], *theirs[2:]], answer["python"]
                continue
            own, theirs = (np.array([as_number(x) for x in each], float) for each in (own, theirs))
            # The variance of what is all but certain is a difference of large numbers.
            near = 1e-9 * max(float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)), 1.0)
            # So are quotients of next to no records.
            near *= 1e3 if "too few records" in told_by else 1.0
            np.testing.assert_allclose(own, theirs, 1e-9, near, err_msg=answer["python"])
        assert release.rows in answer["words"]
        other_texts += answer["text"] != told_by
    assert answered > 0.8 * number
    # Where an answer has no variance, rounding decides which part of it is noise.
    assert other_texts <= 0.02 * number


def test_the_page_answers_as_python(tmp_path):
    """Columns of every kind; counts of all columns together; an empty table."""
    assert_the_page_answers_as_python(hard_release(), 40, tmp_path)
    for epsilon, n, names, more in (
        (20.0, 500, ["age", "sex", "<b>&"], {}),
        (1.0, 500, ["age", "pay", "sex"], {("pay", "age"): 1}),
        (1.0, 0, ["age", "sex"], {}),
    ):
        made = skdp.MarginalSynthesizer(
            epsilon=epsilon, domain=DOMAIN.select(names), workload=more or "all"
        ).set_params(privacy_id="who", max_rows_per_id=2)
        rows = lawful_rows(500, DOMAIN)[names].head(n).assign(who=range(n))
        release = made.fit(rows).synopsis_
        assert "at most 2 rows of each person" in release.count(return_interval=True).guarantee
        assert epsilon < 20 or release.model.cells
        assert_the_page_answers_as_python(release, 40, tmp_path)


def boxed_release(monkeypatch, kind, epsilon=1.0):
    """A release of boxes; the noise of one answer is taken as Gaussian, as that of several is."""
    of_many = BoxModel._reach

    def as_of_many(model, queries, level):
        *found, guarantee = of_many(model, [*queries, *queries], level)
        return Reach(*(each[: len(queries)] for each in found), guarantee)

    monkeypatch.setattr(BoxModel, "_reach", as_of_many)
    domain = Domain({**dict(DOMAIN.items()), "stars": Categorical([1, 2, 3], ordered=True)})
    return kind(epsilon=epsilon, domain=domain).fit(lawful_rows(2000, domain)).synopsis_


BOXES = [getattr(skdp, f"{name}Synthesizer") for name in ("Grid", "HDPView", "KDTree", "PrivTree")]


@pytest.mark.parametrize("number", [40, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("asked", [2.0, *BOXES])
def test_the_page_of_each_kind_answers_as_python(tmp_path, monkeypatch, asked, number):
    release = boxed_release(monkeypatch, asked) if asked in BOXES else hard_release(asked)
    assert_the_page_answers_as_python(release, number, tmp_path, 1)


# --- in a browser


@pytest.fixture(scope="module")
def browser():
    driver = pytest.importorskip("playwright.sync_api")
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        pytest.skip("Chromium is not installed: no page was opened")
    with driver.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


def opened_page(browser, path, width=1400, address=""):
    """The page, and what it asked of the network or complained of."""
    page = browser.new_context(viewport={"width": width, "height": 900}).new_page()
    noted = []
    page.on("request", lambda asked: noted.append(asked.url))
    page.on("console", lambda said: noted.append(said.text))
    page.on("pageerror", lambda error: noted.append(str(error)))
    page.goto(path.as_uri() + address)
    page.wait_for_selector("html[data-ready]")
    assert noted == [path.as_uri()] or address
    return page, noted


def answered(page):
    """The answer and its interval, as the page writes them."""
    first = page.locator(".answer .value").inner_text()
    ends = page.locator(".answer p", has_text="interval:").first.inner_text()
    return [float(x.replace(",", "")) for x in (first, *re.findall(r"-?[\d,]+\.?\d*", ends)[1:])]


@pytest.mark.slow
def test_questions_by_clicking_are_those_of_python(browser, tmp_path):
    release = hard_release()
    path = tmp_path / "page.html"
    release.page(path)
    page, noted = opened_page(browser, path)

    def bar(column, words):
        card = page.locator(".card", has=page.locator("h3", has_text=re.compile(f"^{column}$")))
        card.get_by_role("button", name=re.compile(f"^{words}: ")).click()

    def expect(found):
        for own, theirs in zip(
            answered(page), [found.value, found.lower, found.upper], strict=True
        ):
            # Two digits of the error are shown, and whole people.
            assert own == pytest.approx(theirs, abs=0.03 * (found.upper - found.lower) + 1)

    def choose(name, **option):
        page.get_by_role("combobox", name=name, exact=True).select_option(**option)

    both, interval = {"sex": ["F", None], "age": (30, 34)}, {"return_interval": True}
    expect(release.count(**interval))
    for column, words in (("sex", "F"), ("sex", "missing"), ("age", "30"), ("age", "34")):
        bar(column, words)
    expect(release.count(both, **interval))
    choose("Question", value="mean")
    choose("Column", label="pay")
    choose("Confidence", value="80")
    expect(release.mean("pay", both, level=0.8, **interval))
    choose("Question", value="count")
    # The link asks the same, and the keyboard chooses bars.
    again, _ = opened_page(browser, path, address=page.evaluate("location.hash"))
    assert answered(again) == answered(page)
    page.get_by_role("button", name="Remove all conditions").click()
    card = page.locator(".card", has=page.locator("h3", has_text=re.compile("^stars$")))
    card.locator("[tabindex='0']").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(release.count({"stars": 2}, level=0.8, **interval))
    choose("Question", value="cross")
    assert page.locator(".answer table td").count() > 20
    assert not [each for each in noted if not each.startswith("file:")]


@pytest.mark.slow
def test_hostile_names_are_text(browser, tmp_path):
    names = [
        "</script><img src=x onerror=alert(1)>",
        "'\"`${1}\\",
        "a\u202eb",
        "\U0001f600",
        "x" * 10000,
    ]
    domain = Domain({name: Categorical([name, *names[:2]]) for name in names[2:]} | {
        name: Categorical(["a", name]) for name in names[:2]
    })  # fmt: skip
    frame = pd.DataFrame({name: [name] * 50 for name in domain.names})
    path = tmp_path / "page.html"
    view = skdp.MarginalSynthesizer(epsilon=1.0, domain=domain).fit(frame).synopsis_
    view.page(path, title=names[0])
    page, _ = opened_page(browser, path, 400)
    assert page.evaluate("document.documentElement.scrollWidth") == 400
    assert page.locator("img").count() == 0
    titles = page.locator(".card h3").all_inner_texts()
    assert titles[3] == names[0] and len(titles) == 5
    page.get_by_role("combobox", name="Only records where", exact=True).select_option("3")
    assert names[0] in page.locator("blockquote").inner_text()
    code = page.locator("pre").text_content()
    with np.errstate(all="ignore"):
        found = eval(code.splitlines()[-1], {"release": view})
    assert answered(page)[0] == pytest.approx(max(found.value, 0.0), abs=1)


@pytest.mark.slow
def test_a_damaged_page_says_so(browser, tmp_path):
    path = tmp_path / "page.html"
    text = hard_release().page().text
    start = text.index('"bytes": "') + 400
    path.write_text(text[:start] + "AAAA" + text[start + 4 :], encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    assert "damaged" in page.locator("#damage").inner_text()
