"""Private k-means on integer points."""
