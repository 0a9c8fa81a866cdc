def zeros(shape, dtype=None, layout=None):
    """Args:
    layout: Optional. How to shard the result over devices.
    """
    return backend.numpy.zeros(shape, dtype=dtype, layout=layout)


def ones(shape, dtype=None, layout=None):
    """Args:
    layout: Optional. How to shard the result over devices.
    """
    return backend.numpy.ones(shape, dtype=dtype, layout=layout)
