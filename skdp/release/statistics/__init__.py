"""Statistics of a release with intervals.

=================  ===============================================================================
``sums``           counts, sums, means and shares with intervals
``moments``        standard deviations, covariances, correlations with intervals
``ranks``          quantiles with intervals
``estimates``      intervals of linear answers and of ratios
``linear_errors``  errors of sums of answers under real weights
``confidence``     what an interval is meant to cover: noise, sampling
``distribution``   distribution function and quantiles of a column
``with_errors``    statistics of queries with intervals, as a synopsis gives them
``answers``        many answers at once
``column_values``  the numbers of columns as weights of codes
=================  ===============================================================================
"""
