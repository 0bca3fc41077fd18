r"""Private k-means on integer points: the algorithms of Su's dissertation, and one of our own.

==============  ==================================================================================
``algorithms``  DPLloyd, DPLloyd-Impr, UGkM, MkM, EUGkM, Hybrid, GkM and PGkM; the list of all, with
                budgets
``auto``        the default: noisy grid or tree, then rounds of residuals; for many columns a random
                projection; one center where noise hides more
``lloyd``       input and release of an algorithm; k-means on released points, free post-processing;
                a private round
``sketch``      noisy grids over integer points, ranges of the axes, a noisy tree of boxes
==============  ==================================================================================

Points are rows of integer codes in a box ``shape``; all axes have (nearly) the same unit, so that
Euclidean distance is measured in codes. Coordinates are below 2**21 and dimensions below 2**9:
squared distances to integer centroids stay below 2**53, so that float64 computes them exactly in
any order. Privacy depends on this: where a record is counted is determined by that record and the
frozen centroids alone, never by the number of rows of the matrix.

Privacy (neighbours add or remove one record). *Grids*: a record lies in one cell, so noise of
sensitivity 1 in every cell, empty ones included, costs epsilon once; dropping noisy counts below a
public threshold is post-processing. *Rounds*: all assignments of a round use the same frozen
centroids, so a record is counted in one cluster; it adds 1 to one count, and to the sums of the
same cluster integers whose absolute values sum to at most a public or released bound, or none of
which is above one. Empty clusters get the same noise. Rounds compose sequentially. Everything
computed from what has been released is free.
"""
