"""Algorithms on counts, one per module, independent of the estimators.

=================  =================================================================================
``hdpview``        HDPView
``privtree``       PrivTree
``dpcube``         DPCube, the hierarchical kd-tree, usefulness
``grid``           UG, EUG, Identity: grids of equal width over any columns
``views``          single columns and selected sets of them, and rows fitted to all
``cuboids``        data cubes: All, Base, BMax, PMost, consistency
``privbayes``      PrivBayes
``privpfc``        PrivPfC
``additive``       additive models: a function of each column
``trees``          decision trees and forests: DiffPID3, DiffPC-4.5
``blocks``         sample and aggregate: one output from those of many blocks
``diffgen``        DiffGen
``projection``     PPH: projected histograms
``kmeans``         DPLloyd, UGkM, EUGkM, Hybrid, GkM, PGkM
``linear``         linear models: second moments, searches, and through additive models
``lines``          DAWA, AHP, and range trees that follow the counts
``ranges``         where the numbers of a column lie
``quantiles``      quantiles of integers: independent, AppQuant, and from noisy counts
``binned_scores``  scores by class, in bins of about equal mass; sums of powers
``stop_test``      the stop test of PrivTree and HDPView, and its privacy loss
``splitting``      boxes that are divided, level by level
=================  =================================================================================

GBLUE, Boost and least squares on trees are in `skdp.hierarchy`, sparse vectors in
`skdp.mechanisms`.
"""
