"""Where :mod:`skdp.release` was before: for files, pickles and code of earlier versions."""

from .release import Boxes, BoxModel, LeafErrorBound, Model, QueryResult, Synopsis

__all__ = ["BoxModel", "Boxes", "LeafErrorBound", "Model", "QueryResult", "Synopsis"]
