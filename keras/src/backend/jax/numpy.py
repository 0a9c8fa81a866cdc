"""Grafts: constant and regular arrays are born in their layout."""

from keras.src.backend.jax import fills


def ones(shape, dtype=None, *, layout=None):
    return fills.full(shape, 1, dtype, layout)


def zeros(shape, dtype=None, *, layout=None):
    return fills.full(shape, 0, dtype, layout)


arange = fills.arange_in_layout(arange)


def empty(shape, dtype=None, *, layout=None):
    return fills.full(shape, 0, dtype, layout)


def full(shape, fill_value, dtype=None, *, layout=None):
    return fills.full(shape, fill_value, dtype, layout)


def identity(n, dtype=None, *, layout=None):
    return fills.eye(n, dtype=dtype, layout=layout)


def eye(N, M=None, k=0, dtype=None, *, layout=None):
    return fills.eye(N, M, k, dtype, layout)
