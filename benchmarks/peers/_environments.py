"""Environments of the peers: made once, kept outside the repository, measured; and jobs in them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
# Bytes that a program may take.
MEMORY = 12 * 2**30
# What every environment holds before anything is installed into it.
_BARE = ("pip", "setuptools", "pkg_resources", "wheel", "_distutils_hack")


class Peer(NamedTuple):
    """A library, what pip installs for it, and how it is checked."""

    name: str
    package: str
    requirements: list[str]
    module: str
    worker: str | None = None
    note: str = ""


_FILE = tomllib.loads(Path(__file__).with_name("peers.toml").read_text(encoding="utf-8"))
PEERS = {name: Peer(name, **facts) for name, facts in _FILE.items()}
# Does the peer that needs an older scikit-learn import beside the current one?
CURRENT = Peer(
    "diffprivlib, current scikit-learn",
    "diffprivlib",
    ["diffprivlib==0.6.6", "scikit-learn==1.9.1"],
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


def make(peer: Peer, timeout: float = 1800) -> Environment:
    """Return the environment of a peer, made now if it is not in the cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "skdp-peers"
    key = hashlib.sha256(
        repr((tuple(peer.requirements), sys.version_info[:2])).encode()
    ).hexdigest()[:8]
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


def reason_of(text: str) -> str:
    """The line of a traceback that names the error: the last that does, else the last of all."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [
        f"{line} {after}" if line.endswith(":") else line
        for line, after in zip(lines, [*lines[1:], ""], strict=False)
        if re.match(r"[\w.]*(Error|Exception)\b", line)
    ]
    return (named or lines or [""])[-1][:160]


def ask(
    peer: Peer, job: dict[str, Any], data: Mapping[str, Any], timeout: float = 600
) -> dict[str, Any]:
    """What a peer's program returns for one job, arrays and numbers; its environment is made first.

    Parameters
    ----------
    peer : Peer
    job : dict
        With "task", "method" and "epsilon", and "delta" where the method needs one.
    data : mapping of str to array
    timeout : float, default=600
        Seconds.

    Raises
    ------
    RuntimeError
        If the environment cannot be made, or the program fails.
    """
    environment = make(peer)
    if environment.error:
        raise RuntimeError(f"its environment could not be made: {environment.error}")
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "data.npz"), Path(folder, "out.npz")
        np.savez(given, **data)
        done = subprocess.run(
            [str(environment.python), str(Path(__file__).parent / str(peer.worker))],
            input=json.dumps({**job, "data": str(given), "out": str(found)}),
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment.variables(),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY)),
        )
        if done.returncode:
            raise RuntimeError(reason_of(done.stderr) or f"exit code {done.returncode}")
        with np.load(found) as arrays:
            return {
                **json.loads(done.stdout.splitlines()[-1]),
                **{key: arrays[key] for key in arrays.files},
            }
