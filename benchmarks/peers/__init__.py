"""Other libraries at the same tasks: ``python -m benchmarks.peers``.

`_environments` makes a virtual environment for each peer outside the repository. ``work_NAME.py``
runs inside it, knows nothing of this project, reads one job from its standard input (JSON, with the
path of an ``.npz`` file) and answers with one line of JSON. `_tasks` prepares the data and scores
what comes back (`_inference` for the task of this name); `_table` prints and writes. This library
runs through the same door, as ``work_skdp.py`` in its own environment.
"""
