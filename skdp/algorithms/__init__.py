"""Algorithms on counts, one per module, independent of the estimators.

=================  ===============================================================================
``additive``       additive models: a function of each column
``binned_scores``  scores by class, in bins of about equal mass; sums of powers
``boxes``          what several kernels share: boxes of codes that are divided, and the cuts
                   between their codes
``cuboids``        data cubes: All, Base, BMax, PMost, consistency
``dawa``           histograms of one column whose buckets follow the data: arrays in, arrays out
``diffgen``        diffGen
``dpcube``         DPCube, the hierarchical kd-tree, usefulness
``grid``           UG, EUG, Identity: grids of equal width over any columns
``groupings``      public ways to merge the codes of a column into few groups
``hdmm``           HDMM: p-identity strategies for a workload
``hdpview``        HDPView
``kmeans``         DPLloyd, UGkM, EUGkM, Hybrid, GkM, PGkM
``linear``         linear models: second moments, searches, and through additive models
``marginals``      views: coarse tables of pairs, grids of sets that depend most, and answers
                   linear in them
``privbayes``      privBayes
``privpfc``        PrivPfC
``privtree``       privTree
``quantiles``      quantiles of integers: independent, AppQuant, and from noisy counts
``ranges``         where the numbers of a column lie
``trees``          decision trees and forests: DiffPID3, DiffPC-4.5
=================  ===============================================================================

GBLUE, Boost and least squares on trees are in `skdp.hierarchy`, sparse vectors in
`skdp.mechanisms`.
"""
