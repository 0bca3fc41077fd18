"""Models of what was released: what answers and rows follow from.

===================  =============================================================================
``model``            what a synopsis asks of a model
``boxes``            a partition of the domain; read-only arrays
``box_model``        model: noisy counts over boxes
``intervals``        intervals of answers over boxes; quantiles of sums of noise
``tree_density``     attributes joined by views of pairs; records given some of their values
``tree_model``       model: released views of attributes and pairs
``network_model``    model: a released Bayesian network, and the density that it is
``coefficients``     noisy tables of nested groups in one orthonormal basis
``column_estimate``  a column from everything measured, with its covariance
``views_model``      model: coefficients of everything measured, and weighted rows
``rounding``         whole counts near expected ones, whole numbers of rows, values dealt evenly
===================  =============================================================================
"""
