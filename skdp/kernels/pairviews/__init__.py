"""Pair views: the total of a table, all one-way marginals, and privately selected pairs.

In a wide sparse table no partition of the full domain rises above the noise, but one-way and
two-way marginals ("views") can be measured well. The measured pairs form a tree, like those of a
Chow-Liu tree (`skdp.release.TreeDensity`); pairs beyond it are added by weighting a sample of the
tree model. The scheme is select, measure, generate.

All private steps are in this package, on integers: exact counts, integer scores, integer noise.
From `fit` to the model, by file:

==============  ====================================================================
`measure`       the whole in named steps: `pair_views`
`attributes`    what is known of an attribute: released or public
`budget`        how epsilon is divided between the steps
`single`        one-way marginals
`smoothing`     smooth counts of bins on a scale
`choice`        scores of pairs, and which pairs are measured
`pairs`         two-way marginals
`maps`          the only pair of a table, in boxes that follow from noisy counts
`box_trees`     trees of boxes that get smaller where the counts are large
`boxes`         exact counts of boxes, and how a box is divided
`rules`         structural zeros: public, prepared before anything is measured
`structured`    views fitted to structural zeros, and rows where a tree cannot hold them
`raking`        weights of sampled records (iterative proportional fitting)
`errors`        a published quantile of the errors of a public class of queries
`pooling`       quantiles of several classes, judged together because each has noise
`simulation`    records drawn from a release, to simulate its errors
==============  ====================================================================
"""

from __future__ import annotations

from .budget import ViewShares, group_limit, pair_views_parts, view_shares
from .measure import MOST_CLASSES, pair_views
from .rules import Rules
from .single import DIRECT, single_shares, single_views

__all__ = [
    "DIRECT",
    "MOST_CLASSES",
    "Rules",
    "ViewShares",
    "group_limit",
    "pair_views",
    "pair_views_parts",
    "single_shares",
    "single_views",
    "view_shares",
]
