"""Conditions on columns: parsed from text or from a dict, as regions, joined by or and not.

================  ==================================================================================
``text``          a dict or a text as conditions on columns
``alternatives``  conditions joined by or and not, as disjoint conjunctions
``regions``       the part of one attribute that a condition covers
================  ==================================================================================
"""
