"""Calling a peer's program: a job goes to a process of its environment, and its answer back."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import _environments
from benchmarks.peers._environments import Environment, Peer

__all__ = ["Run", "ask", "fails", "reason_of", "runner"]

HERE = Path(__file__).resolve().parent
MEMORY = 12 * 2**30
Run = Callable[[dict[str, Any], float], dict[str, Any]]


def reason_of(text: str) -> str:
    """The line of a traceback that names the error: the last that does, else the last of all."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [
        f"{line} {after}" if line.endswith(":") else line
        for line, after in zip(lines, [*lines[1:], ""], strict=False)
        if re.match(r"[\w.]*(Error|Exception)\b", line)
    ]
    return (named or lines or [""])[-1][:160]


def runner(peer: Peer, environment: Environment) -> Run:
    """Return a function that does a job in a process of the peer's environment."""

    def run(job: dict[str, Any], timeout: float) -> dict[str, Any]:
        done = subprocess.run(
            [str(environment.python), str(HERE / str(peer.worker))],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment.variables(),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY)),
        )
        if done.returncode:
            raise RuntimeError(reason_of(done.stderr) or f"exit code {done.returncode}")
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    return run


def fails(environment: Environment) -> Run:
    """Return a function that says why there is no environment to run a job in."""

    def run(job: dict[str, Any], timeout: float) -> dict[str, Any]:
        raise RuntimeError(f"its environment could not be made: {environment.error}")

    return run


def ask(
    peer: Peer, job: dict[str, Any], data: Mapping[str, Any], timeout: float = 600
) -> dict[str, np.ndarray]:
    """Arrays that a peer's program returns for one job; its environment is made if need be.

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
    environment = _environments.make(peer, _environments.default_cache())
    run = fails(environment) if environment.error else runner(peer, environment)
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "data.npz"), Path(folder, "out.npz")
        np.savez(given, **data)
        run({**job, "data": str(given), "out": str(found)}, timeout)
        with np.load(found) as arrays:
            return {key: arrays[key] for key in arrays.files}
