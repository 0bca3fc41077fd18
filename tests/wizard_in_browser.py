"""The wizard in Chromium: ``python tests/wizard_in_browser.py build/wizard-check``.

From a messy file to a page as a person would, by clicking and typing alone, with a screenshot of
each step at the widths of a desk and a phone. No page may be wider than the screen,
or request anything from elsewhere. Needs ``playwright`` and an installed Chromium; without it, it
says so and does nothing.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

DESK, PHONE = 1400, 400
HOSTILE = "<script>alert(1)</script> \u202e\U0001f680"
# Semicolons, decimal commas, gaps by two names, dates by points, two spellings, a free text.
HEADER = ["pay in \u20ac", "Region", "asked on", "person", "note", HOSTILE]
ROWS = [
    [
        "NA" if i % 9 == 0 else f"{900 + 37 * (i % 83)},{i % 10}0",
        ("North", "south", "South", "West ")[i % 4],
        *(f"{1 + i % 28:02d}.{1 + i % 12:02d}.2023", str(10_000 + i // 2), f"text {i}, free"),
        ("yes", "no", "")[i % 3],
    ]
    for i in range(1_500)
]


class Visit:
    """A page, and everything that is wrong with what it showed."""

    def __init__(self, page, shots):
        self.page, self.shots = page, shots
        self.problems = []

    def show(self, name):
        """Screenshots of a step, and what is wrong with it."""
        for width in (PHONE, DESK):
            self.page.set_viewport_size({"width": width, "height": 1000})
            self.page.screenshot(path=self.shots / f"{name}-{width}.png", full_page=True)
            wide = self.page.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                self.problems.append(f"{name}: {wide} pixels wide on a screen of {width}")

    def click(self, name, leads_to):
        """Click a button, and wait for the page that it leads to."""
        self.page.get_by_role("button", name=name).click()
        self.page.wait_for_selector(f"h1:has-text('{leads_to}')", timeout=600_000)

    def column(self, name, kind, **fields):
        """Declare a column."""
        column = self.page.locator("details.column").filter(
            has=self.page.get_by_text(name, exact=True)
        )
        if column.get_attribute("open") is None:
            column.locator("summary").first.click()
        column.get_by_label("Kind").select_option(label=kind)
        for label, text in fields.items():
            column.get_by_label(label.replace("_", " ")).fill(text)


def visit(page, address, shots):
    """From the file to the page; one sentence for every problem."""
    seen = Visit(page, shots)
    page.on("pageerror", lambda error: seen.problems.append(f"{page.url}: {error}"))
    page.on("dialog", lambda asked: seen.problems.append(f"{page.url}: {asked.message}"))
    page.on(
        "request",
        lambda asked: (
            asked.url.startswith((address, "data:"))
            or seen.problems.append(f"{page.url}: asks for {asked.url}")
        ),
    )
    page.goto(address)
    page.get_by_label("Between fields").fill(";")
    page.get_by_label("Decimal mark").select_option(label="a comma")
    page.get_by_label("Texts that stand for no value").fill("NA")
    seen.click("Read the names", "The table, and whom")
    seen.show("1-table")
    page.get_by_label("Each person, who may have").check()
    page.get_by_label("Column that identifies the person").select_option("person")
    page.get_by_label("Rows of one person that count").fill("2")
    seen.click("Look at the table", "What is publicly known")
    seen.click("Go on to the questions", "What is publicly known")
    seen.show("2-columns-refused")
    seen.column("pay in \u20ac", "numbers", Smallest_value="0", Largest_value="10000")
    seen.column("Region", "categories", Categories="North\nSouth\nsouth\nWest")
    seen.column("asked on", "dates", Smallest_value="2023-01-01", Largest_value="2023-12-31")
    seen.column("note", "leave this column out")
    seen.column(HOSTILE, "categories", Categories="no\nyes")
    seen.click("Check it against the records", "What is publicly known")
    seen.show("2-columns-checked")
    page.get_by_label("All of this is publicly known").check()
    seen.click("Go on to the questions", "The questions that matter")
    page.get_by_label("Questions").fill('mean(`pay in \u20ac`) where Region == "North"')
    seen.show("3-questions")
    seen.click("Go on to epsilon", "How much privacy")
    page.get_by_label("Number of records").fill("1500")
    page.get_by_label("Epsilons to compare").fill("1, 2")
    seen.click("Show the margins", "How much privacy")
    page.get_by_label("\u03b5 = 2").check()
    seen.show("4-epsilon")
    seen.click("Go on to the ledger", "The ledger")
    page.get_by_label("Total budget").fill("3")
    page.get_by_label("Purpose").fill("a trial")
    seen.click("Go on to the confirmation", "Confirm, and release")
    seen.show("6-confirm")
    page.get_by_label("Spend epsilon").check()
    seen.click("Release", "The release is made")
    seen.show("7-result")
    with page.expect_popup() as opened:
        page.get_by_role("link", name="for people who read").click()
    opened.value.wait_for_load_state()
    opened.value.screenshot(path=shots / "8-page.png", full_page=True)
    for kind in ("Release", "Synthetic rows", "Declaration", "Commands"):
        with page.expect_download():
            page.get_by_role("link", name=re.compile(f"^{kind}")).click()
    return seen.problems


def main(folder):
    """Run the wizard, print every problem, and return the exit code."""
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        print("Chromium was not found: the wizard was not opened.")
        return 0
    from playwright.sync_api import sync_playwright

    shots, out = folder / "pictures", folder / "release"
    for each in (shots, out):
        shutil.rmtree(each, ignore_errors=True)
        each.mkdir(parents=True)
    table = folder / "messy table.csv"
    table.write_text("".join(";".join(row) + "\n" for row in [HEADER, *ROWS]), encoding="utf-8")
    command = [sys.executable, "-m", "skdp", "wizard", table, "--folder", out, "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().split()[-1]
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"])
            problems = visit(browser.new_page(), address, shots)
            browser.close()
    finally:
        server.terminate()
        server.wait()
    print(*problems, sep="\n")
    print(f"{len(problems)} problems; pictures in {shots}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
