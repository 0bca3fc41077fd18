"""
Bigger than memory: count in the query engine
=============================================

Three million taxi rides are in a Parquet file. DuckDB returns only counts of them, and the release
is the same as one from the rows in memory.
"""

# %%
# The rows
# --------
# They are simulated in DuckDB, so they are never in the memory of this program.
import tempfile
import time
from pathlib import Path

import duckdb
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import Categorical, Domain, MarginalSynthesizer, Numeric

file = Path(tempfile.mkdtemp()) / "rides.parquet"
connection = duckdb.connect()
connection.execute("SELECT setseed(0.5)")
connection.execute(
    f"""
    COPY (
        WITH draws AS (
            SELECT random() AS u, random() + random() + random() - 1.5 AS near,
                   random() AS v, random() AS w, random() * random() AS low
            FROM range(3_000_000)
        ), rides AS (
            SELECT *, (24 + CASE WHEN u < 0.3 THEN 8 + 3 * near WHEN u < 0.7 THEN 18 + 4 * near
                            ELSE 14 + 12 * near END) % 24 AS hour
            FROM draws
        )
        SELECT hour, 1 - ln(low) * (1.2 + 1.8 * abs(hour - 14) / 12) AS km,
               CASE WHEN w < 0.55 THEN 'card' WHEN w < 0.9 THEN 'cash' ELSE 'account' END AS paid,
               1 + CAST(floor(4 * v * v) AS INTEGER) AS riders
        FROM rides
    ) TO '{file}' (FORMAT parquet)
    """
)
rides = connection.read_parquet(str(file))
print(f"{len(rides):,} rows, {file.stat().st_size / 1e6:.0f} MB on disk")

# %%
# The release
# -----------
# ``fit`` accepts the relation like a frame. The domain is declared from public knowledge of the
# columns.
domain = Domain(
    {
        "hour": Numeric(0, 24, bins=48),
        "km": Numeric(0, 20, bins=60),
        "paid": Categorical(["account", "card", "cash"]),
        "riders": Numeric(1, 4, integer=True),
    }
)
release = MarginalSynthesizer(epsilon=1.0, domain=domain).fit(rides)
answer = release.count("hour >= 16 and hour < 20 and km < 5", return_interval=True)
print(f"short evening rides: {answer.value:.0f}, from {answer.lower:.0f} to {answer.upper:.0f}")
print("true (not private):", len(rides.filter("hour >= 16 AND hour < 20 AND km < 5")))

# %%
# Rows and time
# -------------
# The engine reads the rows once. The rest runs in Python and starts from the counts, so its time
# does not depend on the number of rows.
rows = [30_000, 300_000, 3_000_000]
seconds = []
for n in rows:
    begin = time.perf_counter()
    MarginalSynthesizer(epsilon=1.0, domain=domain).fit(rides.limit(n))
    seconds.append(time.perf_counter() - begin)
print(pd.DataFrame({"rows": rows, "seconds of a fit": seconds}).round(2).to_string(index=False))

# %%
# Rows and release, side by side
# ------------------------------
# Where there are many rides, the noise at epsilon 1 is not visible.
cells = connection.execute(
    f"""
    SELECT floor(hour * 2) AS half, least(floor(km * 3), 59) AS step, count(*) AS n
    FROM '{file}' GROUP BY ALL
    """
).df()
exact = np.zeros((60, 48))
exact[cells["step"].astype(int), cells["half"].astype(int)] = cells["n"]
figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained", sharey=True)
picture = axes[0].imshow(exact, origin="lower", aspect="auto", extent=(0, 24, 0, 20))
figure.colorbar(picture, ax=axes[0], label="rides")
axes[0].set(title="the rows (not private)", xlabel="hour", ylabel="km")
release.plot(["hour", "km"], ax=axes[1])
axes[1].set_title("released, epsilon 1")
figure.suptitle("Rides by hour and length")
plt.show()
