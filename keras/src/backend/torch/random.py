"""Grafts: this backend cannot lay out what these make."""

from keras.src.backend.common.layout_support import unsharded_only

normal = unsharded_only(normal)
uniform = unsharded_only(uniform)
categorical = unsharded_only(categorical)
randint = unsharded_only(randint)
truncated_normal = unsharded_only(truncated_normal)
dropout = unsharded_only(dropout)
shuffle = unsharded_only(shuffle)
gamma = unsharded_only(gamma)
binomial = unsharded_only(binomial)
beta = unsharded_only(beta)
