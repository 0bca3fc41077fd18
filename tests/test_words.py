"""Words that readers had to decode: those of the left column of the vocabulary may not come back.

`layers.toml` has how often each stands in the code and the documentation. Counts only fall; what is
at zero stays there.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Names of parameters and packages that went: never again.
GONE = (
    "max_contributions",
    "conformal",
    "skdp.kernels",
    "skdp.rows",
    "skdp.models",
    "successive halving",
)


def counts(text: str, words: object) -> dict[str, int]:
    """How often each word stands in a text, in any case."""
    return {
        word: len(re.findall(rf"(?<![\w.]){re.escape(word)}(?![\w])", text, re.IGNORECASE))
        for word in words
    }


def test_words_that_went_do_not_come_back():
    folders = "skdp/**/*.py examples/*.py docs/*.rst docs/user_guide/*.rst docs/theory/*.rst"
    files = [path for each in (*folders.split(), "README.md") for path in ROOT.glob(each)]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    most = tomllib.loads((ROOT / "layers.toml").read_text(encoding="utf-8"))["words"]
    found = counts(text, [*most, *GONE])
    above = {word: n for word, n in found.items() if n > most.get(word, 0)}
    assert not above, f"use the standard words instead: {above}"
    assert not {word: n for word, n in most.items() if n > found[word]}, "lower them in layers.toml"
    assert counts("Told, untold: skdp.rows", ["told", "skdp.rows"]) == {"told": 1, "skdp.rows": 1}
