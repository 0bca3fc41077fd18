"""The metadata agree with each other and with the code."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import skdp

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_oldest_environment_sits_exactly_on_the_floors():
    lines = (ROOT / "requirements-oldest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    extras = PROJECT["optional-dependencies"]
    for line in [*PROJECT["dependencies"], *extras["plot"], *extras["demo"], *extras["test"]]:
        name, floor = re.fullmatch(r"([\w-]+)>=([\d.]+)", line).groups()
        # 1.6 is 1.6.0.
        assert re.fullmatch(rf"{re.escape(floor)}(\.0)*", pinned[name]), name


def test_version_is_the_same_everywhere():
    assert skdp.__version__ == PROJECT["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[?{re.escape(skdp.__version__)}\b", changelog, re.MULTILINE)
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(rf"^version: {re.escape(skdp.__version__)}$", citation, re.MULTILINE)


def test_a_strict_type_checker_knows_what_a_user_makes(tmp_path):
    pytest.importorskip("mypy")
    config = tmp_path / "mypy.ini"
    # Only the types of scikit-learn are not there.
    config.write_text("[mypy]\nstrict = True\n[mypy-sklearn.*]\nignore_missing_imports = True\n")
    readme = tmp_path / "readme.py"
    (code,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    readme.write_text(code)
    command = [sys.executable, "-m", "mypy", "--config-file", config, "--follow-imports=silent"]
    command += ["--cache-dir", ROOT / ".mypy_cache" / "user", readme, ROOT / "tests" / "typed.py"]
    path = {**os.environ, "MYPYPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_links_and_pictures_of_the_readme_work_on_a_package_index():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    hook = settings["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = (ROOT / "README.md").read_text()
    for each in hook["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    found = re.findall(r"\]\(([^)]+)\)|(?:src|srcset)=\"([^\"]+)", text)
    links = {link for pair in found for link in pair if link}
    base = PROJECT["urls"]["Homepage"]
    assert all(url.startswith(base) for url in PROJECT["urls"].values())
    assert len(links) > 15
    for link in links:
        assert link.startswith(base + "/"), link
        path = re.sub(r"^/(blob/main|raw/main)/", "", link.removeprefix(base))
        page = re.fullmatch(r"/(docs/.*)\.html", path)
        assert (ROOT / (f"{page[1]}.rst" if page else path)).is_file(), link


def test_one_address_is_to_be_filled_in():
    base = PROJECT["urls"]["Homepage"]
    for name in ("pyproject.toml", "README.md", "SECURITY.md", "CITATION.cff", "docs/index.rst"):
        rest = (ROOT / name).read_text().replace(base, "").replace("security@example.org", "")
        assert "example.org" not in rest, name
    security = (ROOT / "SECURITY.md").read_text()
    assert "security@example.org" in security and "3 working days" in security


def test_the_conda_recipe_and_pre_commit_say_what_the_metadata_say():
    recipe = pytest.importorskip("yaml").safe_load((ROOT / "conda" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == PROJECT["version"]
    needed = [each.replace(" ", "") for each in recipe["requirements"]["run"]]
    assert needed == [f"python{PROJECT['requires-python']}", *PROJECT["dependencies"]]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    for line in PROJECT["optional-dependencies"]["dev"]:
        name, version = line.split("==")
        assert name not in hooks or version in hooks, line


def test_workflows_do_what_the_checks_of_a_commit_do():
    yaml = pytest.importorskip("yaml")
    folder = ROOT / ".github" / "workflows"
    found = {file.stem: yaml.safe_load(file.read_text()) for file in folder.glob("*.yml")}
    script = (ROOT / ".ci" / "run").read_text()
    lines = re.findall(r"^\s*(?:pass|lane) ([\w -]+?)(?: >.*)?$", script, re.M)
    passed = [target for line in lines for target in line.split()]
    assert sorted(found["ci"]["jobs"]["make"]["strategy"]["matrix"]["target"]) == sorted(passed)
    texts = "".join((ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md"))
    named = {*passed, *re.findall(r"(?:`|\$ )make ([\w-]+)", texts)}
    assert named <= {*re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)}
    publish = found["release"]["jobs"]["publish"]
    assert publish["needs"] == "build" and publish["permissions"]["id-token"] == "write"
    assert found["release"][True] == {"push": {"tags": ["v*"]}}
    # Nothing is uploaded with a token that somebody could steal.
    assert "secrets." not in (folder / "release.yml").read_text()
