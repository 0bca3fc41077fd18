"""Virtual environments of the peers: made once, kept outside the repository, measured."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["CURRENT", "PEERS", "Environment", "Peer", "default_cache", "make"]

ROOT = Path(__file__).resolve().parents[2]
# What every environment holds before anything is installed into it.
_BARE = ("pip", "setuptools", "pkg_resources", "wheel", "_distutils_hack")


class Peer(NamedTuple):
    """A library, what pip installs for it, and how it is checked."""

    name: str
    package: str
    requirements: tuple[str, ...]
    module: str
    worker: str | None = None
    note: str = ""


PEERS = {
    peer.name: peer
    for peer in (
        Peer(
            "skdp",
            "skdp",
            ("numpy", "scipy", "pandas", "scikit-learn", "narwhals"),
            "skdp",
            "work_skdp.py",
        ),
        Peer(
            "diffprivlib",
            "diffprivlib",
            ("diffprivlib==0.6.6", "scikit-learn==1.7.2"),
            "diffprivlib",
            "work_diffprivlib.py",
            "scikit-learn is held at 1.7.2",
        ),
        Peer(
            "OpenDP",
            "opendp",
            ("opendp[mbi]==0.16.0", "pandas==3.1.1"),
            "opendp.prelude",
            "work_opendp.py",
            "with its extra mbi, which holds mbi at 1.1.0 and needs pandas",
        ),
        Peer(
            "SmartNoise",
            "smartnoise-synth",
            ("smartnoise-synth==1.0.8",),
            "snsynth",
            "work_smartnoise.py",
            "PyPI's torch for Linux, which holds the CUDA libraries",
        ),
        Peer(
            "interpret",
            "interpret-core",
            ("interpret-core==0.7.8",),
            "interpret.privacy",
            "work_interpret.py",
            "models alone",
        ),
        Peer(
            "DataSynthesizer",
            "datasynthesizer",
            ("DataSynthesizer==0.1.13",),
            "DataSynthesizer.DataDescriber",
            "work_datasynthesizer.py",
        ),
        Peer(
            "dpmm",
            "dpmm",
            ("dpmm==0.1.9",),
            "dpmm.models",
            "work_dpmm.py",
            "holds numpy, pandas and scikit-learn at one version each; no Python above 3.11",
        ),
        # An algorithm without a library: it runs where this program does.
        Peer("AdaSSP", "", (), "numpy", "work_adassp.py"),
        Peer(
            "DP-SGD",
            "dp-accounting",
            ("dp-accounting==0.6.0",),
            "dp_accounting",
            "work_dpsgd.py",
            "a softmax regression of our own with its accountant",
        ),
        Peer(
            "mbi",
            "mbi",
            ("mbi==2.0.0",),
            "mbi",
            "work_mbi.py",
            "inference alone, without noise: no release to run; OpenDP and SmartNoise hold 1.1.0",
        ),
    )
}
# Does the peer that needs an older scikit-learn import beside the current one?
CURRENT = Peer(
    "diffprivlib, current scikit-learn",
    "diffprivlib",
    ("diffprivlib==0.6.6", "scikit-learn==1.9.1"),
    "diffprivlib.models",
)


class Environment(NamedTuple):
    """An environment that was made, or ``error`` why not."""

    python: Path
    facts: dict[str, Any]
    error: str | None = None

    def variables(self) -> dict[str, str]:
        """Variables of a process in it: one thread a library, and this project importable."""
        return {
            **{key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
        }


def default_cache() -> Path:
    """Where environments are kept unless told otherwise."""
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "skdp-peers"


def make(peer: Peer, cache: Path, timeout: float = 1800) -> Environment:
    """Return the environment of a peer, made now if it is not in the cache.

    A peer without requirements runs with the Python that runs this program.
    """
    if not peer.requirements:
        return Environment(Path(sys.executable), {})
    key = hashlib.sha256(repr((peer.requirements, sys.version_info[:2])).encode()).hexdigest()[:8]
    place = cache / f"{peer.package}-{key}"
    python, marker = place / "bin" / "python", place / "facts.json"
    if marker.exists():
        return Environment(python, json.loads(marker.read_text(encoding="utf-8")))
    shutil.rmtree(place, ignore_errors=True)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", str(place)], timeout)
        _run([str(python), "-m", "pip", "install", "-q", *peer.requirements], timeout)
        environment = Environment(python, {})
        facts = _facts(peer, environment, timeout)
    except (OSError, subprocess.SubprocessError) as error:
        return Environment(python, {}, _reason(error))
    marker.write_text(json.dumps(facts, indent=1), encoding="utf-8")
    return Environment(python, facts)


def _run(command: list[str], timeout: float, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, check=True, env=env
    )
    return done.stdout


def _reason(error: Exception) -> str:
    """Last line of what a failed process wrote, or the error itself."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"stopped after {error.timeout:.0f} s"
    text = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
    lines = [line for line in (text or "").splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else type(error).__name__


_IMPORT = """
import importlib, json, sys, time
begin = time.process_time()
try:
    importlib.import_module(sys.argv[1])
    error = None
except Exception as e:
    error = f"{type(e).__name__}: {e}"
with open("/proc/self/status") as file:
    peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
print(json.dumps({
    "imports": error is None,
    "import_error": error,
    "import_cpu": time.process_time() - begin,
    "import_mb": peak / 1024,
}))
"""


def _facts(peer: Peer, environment: Environment, timeout: float) -> dict[str, Any]:
    """Versions, installed size, and whether the library imports."""
    command = [str(environment.python), "-m", "pip", "list", "--format", "json"]
    versions = {
        each["name"].lower(): each["version"]
        for each in json.loads(_run(command, timeout))
        if each["name"] not in _BARE
    }
    site = next((environment.python.parents[1] / "lib").glob("python*")) / "site-packages"
    size = sum(
        _size(entry)
        for entry in site.iterdir()
        if not entry.name.startswith(tuple(f"{name}-" for name in _BARE))
        and entry.name not in _BARE
    )
    if peer.package == "skdp":
        from skdp import __version__

        versions["skdp"] = __version__
        size += _size(ROOT / "skdp")
    variables = environment.variables()
    # The first import compiles what pip left uncompiled.
    for _ in range(2):
        found = _run([str(environment.python), "-c", _IMPORT, peer.module], timeout, variables)
    return {
        "peer": peer.name,
        "package": peer.package,
        "version": versions.get(peer.package, ""),
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": versions.get("numpy", ""),
        "scikit_learn": versions.get("scikit-learn", ""),
        "packages": len(versions),
        "installed_mb": size / 1e6,
        **json.loads(found.splitlines()[-1]),
        "note": peer.note,
    }


def _size(path: Path) -> int:
    """Bytes of a file or of the files of a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
