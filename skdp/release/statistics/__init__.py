"""Statistics of a release with intervals.

=================  ===============================================================================
``moments``        counts, sums, means, standard deviations, correlations with intervals
``ranks``          distribution function and quantiles of a column, with intervals
``estimates``      intervals of linear answers and of ratios; many answers at once
``with_errors``    statistics of queries with intervals, as a synopsis gives them
``column_values``  the numbers of columns as weights of codes
=================  ===============================================================================
"""
