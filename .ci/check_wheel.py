"""Checks an installed wheel; run by the Python into which it was installed, without extras.

The folder of the wheel and its sdist, if given, must hold no tests and no link that leads nowhere.

Imports every module and every public name, so that a library which is imported and not declared
fails here; makes a release, and measures the size of the package and the time to import a domain
and a synthesizer compared with that of its dependencies.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

LARGEST, SLOWEST = 3_000_000, 1.15
BEGIN = "from skdp import Categorical, Domain, MarginalSynthesizer, Numeric"
# Without garbage collection, which falls into one part or the other.
CLOCK = """import gc, time
gc.disable()
{before}
start = time.process_time()
{statement}
print(time.process_time() - start)"""


def seconds(statement, before=""):
    """CPU seconds of a statement in a fresh interpreter, after another one."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", CLOCK.format(statement=statement, before=before)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return float(done.stdout)


def installed_extras(project):
    """Libraries of its extras that are installed: behind them an undeclared import would hide."""
    lines = metadata.requires(project) or []
    needed, extra = (
        {re.match(r"[\w.-]+", line)[0] for line in lines if ("extra ==" in line) == optional}
        for optional in (False, True)
    )
    installed = {each.name.lower() for each in metadata.distributions()}
    return sorted(name for name in extra - needed if name.lower() in installed)


def failures(package):
    """What goes wrong when all modules of a package are imported and their public names touched."""
    found = []
    # A package that cannot be imported is reported below.
    walked = pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=str)
    for name in [package.__name__, *(each.name for each in walked)]:
        try:
            module = importlib.import_module(name)
        except Exception as error:
            # The server of the wizard is imported where the wizard is asked for.
            if not (isinstance(error, ImportError) and "pip install 'skdp[" in str(error)):
                found.append(f"import {name}: {error}")
            continue
        for public in getattr(module, "__all__", ()):
            try:
                getattr(module, public)
            except Exception as error:
                found.append(f"{name}.{public}: {error}")
    return found


def misplaced(folder):
    """What a package index would show or hold by mistake: relative links, files that are no use."""
    text = metadata.metadata("skdp").get_payload()
    text = text or metadata.metadata("skdp")["Description"]
    links = re.findall(r"""\]\(([^)]+)\)|(?:src|srcset)="([^"]+)""", text)
    found = [link for pair in links for link in pair if link and not link.startswith("https://")]
    for sdist in Path(folder).glob("*.tar.gz"):
        with tarfile.open(sdist) as archive:
            inside = archive.getnames()
        found += [name for name in inside if re.match("[^/]+/(tests|docs|benchmarks)(/|$)", name)]
    return found if links else ["the README, which is not there"]


def main():
    """Run all checks."""
    import numpy as np

    import skdp

    home = Path(skdp.__file__).parent
    if Path(sys.prefix) not in home.parents:
        sys.exit(f"skdp was imported from {home}, not from the wheel installed in {sys.prefix}.")
    if extras := installed_extras("skdp"):
        sys.exit(f"This environment has libraries of the extras: {', '.join(extras)}.")
    if found := failures(skdp):
        sys.exit("Without extras these fail:\n" + "\n".join(found))
    if sys.argv[1:] and (found := misplaced(sys.argv[1])):
        sys.exit("A package index would show: " + ", ".join(found))
    rows = np.random.default_rng(0).uniform(0, 1, (5_000, 2))
    domain = skdp.Numeric(0, 1, bins=16)
    answer = skdp.MarginalSynthesizer(epsilon=1.0, domain=domain).fit(rows).count("x0 < 0.5")
    if not 2_000 < answer < 3_000:
        sys.exit(
            f"A release counts {answer:,.0f} of 5,000 rows in one half; about 2,500 are expected."
        )

    files = [file for file in home.rglob("*") if file.is_file()]
    bytecode = sum(file.stat().st_size for file in files if file.suffix == ".pyc")
    size = sum(file.stat().st_size for file in files) - bytecode

    # Names are imported when they are asked for, so what is measured is how a script begins: first
    # only the modules of others that this loads, then what comes on top of them. Both take turns,
    # each in a fresh interpreter; the best of seven counts.
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; {BEGIN}; print(*sys.modules)"],
        check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    others = [name for name in loaded if name.partition(".")[0] not in {"skdp", "__main__"}]
    imports = (
        f"import contextlib, importlib\nfor name in {' '.join(others)!r}.split():\n"
        "    with contextlib.suppress(ImportError): importlib.import_module(name)"
    )
    times = [(seconds(BEGIN, imports), seconds(imports)) for _ in range(7)]
    on_top, dependencies = (min(column) for column in zip(*times, strict=True))
    ours = on_top + dependencies
    print(
        f"release: {answer:,.0f} of 5,000; package: {size / 1e6:.2f} MB, plus "
        f"{bytecode / 1e6:.2f} MB of bytecode; import: {ours:.2f} s CPU, of which dependencies "
        f"{dependencies:.2f} s (ratio {ours / dependencies:.2f})"
    )
    if size > LARGEST:
        sys.exit(f"The installed package is larger than {LARGEST / 1e6:.1f} MB.")
    if ours > SLOWEST * dependencies:
        sys.exit(
            f"Importing a synthesizer takes more than {SLOWEST} times as long as importing its "
            "dependencies."
        )


if __name__ == "__main__":
    main()
