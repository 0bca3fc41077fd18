"""Conditions on columns: parsed from text or from a dict, as regions, joined by or and not.

================  ==================================================================================
``conditions``    a dict or a text as conditions on columns
``text``          conditions written as text
``alternatives``  conditions joined by or and not, as disjoint conjunctions
``regions``       the part of one attribute that a condition covers
================  ==================================================================================
"""
