"""Statistics of a release with intervals.

=================  ===============================================================================
``moments``        counts, sums, means, standard deviations, correlations with intervals
``ranks``          distribution function and quantiles of a column, with intervals
``estimates``      intervals of linear answers and of ratios, and what an interval is meant to cover
``with_errors``    statistics of queries with intervals, as a synopsis gives them
``answers``        many answers at once
``column_values``  the numbers of columns as weights of codes
=================  ===============================================================================
"""
