"""Marginals: sets of attributes chosen while a model grows, and a population fitted to all.

The scheme is that of AIM and PrivSyn (select, measure, generate, and again), with pure epsilon:
exact integer noise, noisy maxima of integer scores. Views of two and more attributes are chosen by
how far their counts are from what the model expects; what is measured becomes evidence, whose
posterior means the population follows by proportional fitting and Gibbs steps.

==============  ==================================================================================
`measure`       the whole in named steps: `marginal_views`
`plan`          how epsilon is divided, and how many views there are
`classes`       single attributes in each class of a label
`shrinkage`     differences between classes, without what noise could explain
`grid`          one grid of the attributes that tell most of a label, counted in each class
`worth`         whether any pair is dependent enough for views, before anything is measured
`stepwise`      sets chosen one at a time, or none, where there is little signal
`schemes`       MST and AIM as settings of this engine
`candidates`    scores of sets of attributes, and which are measured
`views`         noisy tables of sets, cell by cell or by boxes
`wide`          joint counts of all attributes, at very large epsilon
`evidence`      what all tables tell together about each margin
`posterior`     a noisy table beside a model: the posterior mean of its cells
`population`    rows that follow margins: proportional fitting and Gibbs steps
`lawful`        structural zeros: rows that break no rule
`model`         the released model
`simulation`    errors of single attributes: noise measured again on the release
==============  ==================================================================================
"""

from __future__ import annotations

from .measure import marginal_views
from .plan import GROUPS, Plan, Workload, plan_views, used_sets
from .schemes import PLANS

__all__ = ["GROUPS", "PLANS", "Plan", "Workload", "marginal_views", "plan_views", "used_sets"]
