"""Partitioning kernels: a table of counts in, disjoint boxes out."""
