"""Grafts: what makes a tensor of a shape takes a layout."""

from keras.src.backend.common.layout_support import check_layout


class Arange:
    def __init__(self, dtype=None, layout=None, *, name=None):
        super().__init__(name=name)
        check_layout("arange", layout)
        self.dtype = dtype
        self.layout = layout

    def get_config(self):
        # A layout belongs to the devices at hand, not to a saved model.
        return {**super().get_config(), "dtype": self.dtype}

    def call(self, start, stop=None, step=None):
        return backend.numpy.arange(
            start, stop, step=step, dtype=self.dtype, layout=self.layout
        )


def arange(start, stop=None, step=None, dtype=None, *, layout=None):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then fills only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.ops.arange(1024, layout=("model",))
        >>> x.sharding.shard_shape(x.shape)
        (128,)
    """
    dtype = None if dtype is None else backend.standardize_dtype(dtype)
    if any_symbolic_tensors((start, stop, step)):
        return Arange(dtype=dtype, layout=layout).symbolic_call(
            start, stop, step=step
        )
    return backend.numpy.arange(
        start, stop, step=step, dtype=dtype, layout=layout
    )


def empty(shape, dtype=None, *, layout=None):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then fills only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.ops.empty((1024, 64), layout=("model", None))
        >>> x.sharding.shard_shape(x.shape)
        (128, 64)
    """
    return backend.numpy.empty(shape, dtype=dtype, layout=layout)


class Full:
    def __init__(self, shape, dtype=None, layout=None, *, name=None):
        super().__init__(name=name)
        check_layout("full", layout)
        self.shape = shape
        self.dtype = dtype
        self.layout = layout

    def get_config(self):
        # As in `Arange`.
        config = {"shape": self.shape, "dtype": self.dtype}
        return {**super().get_config(), **config}

    def call(self, fill_value):
        return backend.numpy.full(
            self.shape, fill_value, dtype=self.dtype, layout=self.layout
        )


def full(shape, fill_value, dtype=None, *, layout=None):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then fills only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.ops.full((1024, 64), 0.5, layout=("model", None))
        >>> x.sharding.shard_shape(x.shape)
        (128, 64)
    """
    dtype = None if dtype is None else backend.standardize_dtype(dtype)
    if any_symbolic_tensors((fill_value,)):
        return Full(shape=shape, dtype=dtype, layout=layout).symbolic_call(
            fill_value
        )
    return backend.numpy.full(shape, fill_value, dtype=dtype, layout=layout)


def identity(n, dtype=None, *, layout=None):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then fills only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.ops.identity(1024, layout=("model", None))
        >>> x.sharding.shard_shape(x.shape)
        (128, 1024)
    """
    return backend.numpy.identity(n, dtype=dtype, layout=layout)


def zeros(shape, dtype=None, *, layout=None):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then fills only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.ops.zeros((1024, 64), layout=("model", None))
        >>> x.sharding.shard_shape(x.shape)
        (128, 64)
    """
    return backend.numpy.zeros(shape, dtype=dtype, layout=layout)


def ones(shape, dtype=None, *, layout=None):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then fills only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.ops.ones((1024, 64), layout=("model", None))
        >>> x.sharding.shard_shape(x.shape)
        (128, 64)
    """
    return backend.numpy.ones(shape, dtype=dtype, layout=layout)


def eye(N, M=None, k=0, dtype=None, *, layout=None):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then fills only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.ops.eye(1024, 64, layout=("model", None))
        >>> x.sharding.shard_shape(x.shape)
        (128, 64)
    """

    def is_floating_type(v):
        return (
            isinstance(v, float)
            or getattr(v, "dtype", None) in dtypes.FLOAT_TYPES
        )

    if is_floating_type(N):
        raise TypeError("Argument `N` must be an integer or an integer tensor.")
    if is_floating_type(M):
        raise TypeError(
            "Argument `M` must be an integer, an integer tensor, or `None`."
        )
    return backend.numpy.eye(N, M=M, k=k, dtype=dtype, layout=layout)
