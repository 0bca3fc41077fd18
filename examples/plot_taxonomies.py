"""
How values are grouped: taxonomies
==================================

Releases for classification count combinations of *groups* of values. The possible groups are
public: a tree for each column, declared or derived from its range. This example draws three such
trees, from the root (everything in one group) to the values.
"""

# %%
import matplotlib.pyplot as plt

from skdp import Categorical, Numeric, Taxonomy
from skdp.algorithms.groupings import groupings

work = Taxonomy.from_tree(
    {
        "any": {
            "employed": {"private": ["company", "family"], "public": ["federal", "local"]},
            "self-employed": ["alone", "with staff"],
            "no pay": ["unpaid", "never worked"],
        }
    }
)
columns = {
    "a declared tree of categories": Categorical(work.leaves, taxonomy=work),
    "a number: halves of the range": Numeric(0, 80, bins=8),
    "a skewed number from zero: growing groups": Numeric(0, 100_000, bins=1_000),
}


def draw(ax, family):
    """Draw the levels of one family of groups, every group above its parts."""
    n_codes = len(family[0].groups)
    levels = [([0] * n_codes, ["any"]), *((level.groups, level.labels) for level in family)]
    # A group sits above the middle of its groups on the finest level.
    finest = levels[-1][0]
    places = []
    for depth, (groups, labels) in enumerate(levels):
        below = [
            sorted({int(finest[code]) for code in range(n_codes) if groups[code] == group})
            for group in range(len(labels))
        ]
        places.append([(members[0] + members[-1]) / 2 for members in below])
        for group, label in enumerate(labels):
            x = places[depth][group]
            if depth:
                code = next(code for code in range(n_codes) if groups[code] == group)
                parent = places[depth - 1][levels[depth - 1][0][code]]
                ax.plot([parent, x], [1 - depth, -depth], color="0.75", zorder=1)
            ax.text(
                x,
                -depth,
                label.replace(", ", ",\n") if len(label) > 12 else label,
                ha="center",
                va="center",
                fontsize=8,
                bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": "0.6"},
            )
    ax.set_xlim(-0.7, len(levels[-1][1]) - 0.3)
    ax.set_ylim(0.4 - len(levels), 0.5)
    ax.axis("off")


fig, axes = plt.subplots(3, 1, figsize=(9, 9), layout="constrained")
for ax, (title, column) in zip(axes, columns.items(), strict=True):
    draw(ax, groupings(column, max_groups=8)[-1])
    ax.set_title(title, fontsize=10)
fig.suptitle("Trees of groups: three taxonomies")
plt.show()

# %%
# A grid uses one level of each tree, or leaves the column out. A range that starts at zero and has
# many bins gets the last tree besides the halves: declare many bins for money and durations.
