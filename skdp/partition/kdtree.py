"""The former place of `skdp.usefulness`, kept for pickles that name it."""

from ..kernels.dpcube.usefulness import Usefulness, usefulness

__all__ = ["Usefulness", "usefulness"]
