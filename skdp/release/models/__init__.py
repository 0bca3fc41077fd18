"""Models of what was released: what answers and rows follow from.

===================  =============================================================================
``model``            what a synopsis asks of a model
``boxes``            a partition of the domain
``box_model``        model: noisy counts over boxes
``intervals``        intervals of answers over boxes
``noise``            quantiles of sums of noise
``tree_density``     attributes joined by views of pairs
``tree_given``       records of a tree of pairs given some of their values
``tree_model``       model: released views of attributes and pairs
``network_density``  attributes joined by a Bayesian network
``network_model``    model: a released Bayesian network
``coefficients``     noisy tables of nested groups in one orthonormal basis
``column_estimate``  a column from everything measured, with its covariance
``views_model``      model: coefficients of everything measured, and weighted rows
``draws``            positions inside ranges, rows that agree
``pivotal``          weighted records taken whole numbers of times
``strata``           values dealt evenly to the rows of strata
``rounding``         whole counts near expected ones, for lines and tables
``arrays``           read-only copies of arrays
===================  =============================================================================
"""
