from keras.src.backend.jax import fills


def ones(shape, dtype=None, layout=None):
    return fills.full(shape, 1, dtype or config.floatx(), layout)


def zeros(shape, dtype=None, layout=None):
    return fills.full(shape, 0, dtype or config.floatx(), layout)
