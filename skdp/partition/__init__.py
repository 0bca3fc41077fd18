"""The former place of `skdp.kernels`; `kdtree` is kept for pickles that name it."""
