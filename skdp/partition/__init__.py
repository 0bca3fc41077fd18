"""The former place of `skdp.kernels`, kept for pickles that name `skdp.partition.kdtree`."""
