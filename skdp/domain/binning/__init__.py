"""How a range of numbers is cut into bins, and which numbers each of them holds.

============  ======================================================================================
``bins``      where a range is cut: evenly, at edges, on a scale; the fine bins of ``bins="auto"``
``scales``    linear, log and square root; possible values of integers, steps and decimals
``contents``  which numbers a bin holds: draws, means, shares of bins
============  ======================================================================================
"""
