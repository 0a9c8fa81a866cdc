"""Grafts: this backend cannot lay out what these make."""

from keras.src.backend.common.layout_support import unsharded_only

ones = unsharded_only(ones)
zeros = unsharded_only(zeros)
arange = unsharded_only(arange)
empty = unsharded_only(empty)
full = unsharded_only(full)
identity = unsharded_only(identity)
eye = unsharded_only(eye)
