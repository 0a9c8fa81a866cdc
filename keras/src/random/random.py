"""Grafts: every random op takes a layout."""


def normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None, *, layout=None):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then draws only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        Here eight devices draw 128 rows each:

        >>> devices = keras.distribution.list_devices()
        >>> mesh = keras.distribution.DeviceMesh((8,), ["model"], devices)
        >>> layout = keras.distribution.TensorLayout(("model", None), mesh)
        >>> x = keras.random.normal((1024, 64), layout=layout)
        >>> x.sharding.shard_shape(x.shape)
        (128, 64)
    """
    return backend.random.normal(
        shape,
        mean=mean,
        stddev=stddev,
        dtype=dtype,
        seed=seed,
        layout=layout,
    )


def categorical(logits, num_samples, dtype="int32", seed=None, *, layout=None):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then draws only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.random.categorical(
        ...     keras.ops.ones((1024, 10)), 4, layout=("model", None)
        ... )
        >>> x.sharding.shard_shape(x.shape)
        (128, 4)
    """
    logits_shape = list(backend.convert_to_tensor(logits).shape)
    if len(logits_shape) != 2:
        raise ValueError(
            "`logits` should be a 2-D tensor with shape "
            f"[batch_size, num_classes]. Received: logits={logits}"
        )
    return backend.random.categorical(
        logits, num_samples, dtype=dtype, seed=seed, layout=layout
    )


def uniform(
    shape, minval=0.0, maxval=1.0, dtype=None, seed=None, *, layout=None
):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then draws only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.random.uniform((1024, 64), layout=("model", None))
        >>> x.sharding.shard_shape(x.shape)
        (128, 64)
    """
    if dtype and not backend.is_float_dtype(dtype):
        raise ValueError(
            "`keras.random.uniform` requires a floating point `dtype`. "
            f"Received: dtype={dtype} "
        )
    return backend.random.uniform(
        shape,
        minval=minval,
        maxval=maxval,
        dtype=dtype,
        seed=seed,
        layout=layout,
    )


def randint(shape, minval, maxval, dtype="int32", seed=None, *, layout=None):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then draws only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.random.randint(
        ...     (1024, 64), 0, 10, layout=("model", None)
        ... )
        >>> x.sharding.shard_shape(x.shape)
        (128, 64)
    """
    if dtype and not backend.is_int_dtype(dtype):
        raise ValueError(
            "`keras.random.randint` requires an integer `dtype`. "
            f"Received: dtype={dtype} "
        )
    return backend.random.randint(
        shape,
        minval=minval,
        maxval=maxval,
        dtype=dtype,
        seed=seed,
        layout=layout,
    )


def truncated_normal(
    shape, mean=0.0, stddev=1.0, dtype=None, seed=None, *, layout=None
):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then draws only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.random.truncated_normal(
        ...     (1024, 64), layout=("model", None)
        ... )
        >>> x.sharding.shard_shape(x.shape)
        (128, 64)
    """
    return backend.random.truncated_normal(
        shape,
        mean=mean,
        stddev=stddev,
        dtype=dtype,
        seed=seed,
        layout=layout,
    )


def dropout(inputs, rate, noise_shape=None, seed=None, *, layout=None):
    """Set elements to zero at random and scale up the others.

    The others are divided by `1 - rate`, so that the expected value of
    each element is what it was.

    Args:
        inputs: A floating-point tensor.
        rate: Float between 0 and 1, the probability of an element to be
            set to zero.
        noise_shape: The shape in which to draw what to set to zero. It is
            broadcast to the shape of `inputs`, which is the default.
        seed: Optional integer or `keras.random.SeedGenerator`. With `None`,
            the default, the global `keras.random.SeedGenerator` is used.
            An integer gives the same draw at each call.
        layout: How to shard the result over devices. A
            `keras.distribution.TensorLayout`, a tuple with a mesh axis name
            or `None` for each dimension, or what JAX has for it, such as a
            `jax.sharding.NamedSharding`. Each device then keeps only its
            own part, and the values are the same as without a layout.
            Other backends than JAX raise a `ValueError`. Defaults to
            `None`, which leaves it to the backend.

            With eight devices along the axis `model` of the current
            distribution:

            >>> x = keras.random.dropout(
            ...     keras.ops.ones((1024, 64)), 0.5, layout=("model", None)
            ... )
            >>> x.sharding.shard_shape(x.shape)
            (128, 64)

    Returns:
        A tensor of the shape and dtype of `inputs`.
    """
    return backend.random.dropout(
        inputs, rate, noise_shape=noise_shape, seed=seed, layout=layout
    )


def shuffle(x, axis=0, seed=None, *, layout=None):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then keeps only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.random.shuffle(
        ...     keras.ops.ones((1024, 64)), layout=("model", None)
        ... )
        >>> x.sharding.shard_shape(x.shape)
        (128, 64)
    """
    return backend.random.shuffle(x, axis=axis, seed=seed, layout=layout)


def gamma(shape, alpha, dtype=None, seed=None, *, layout=None):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then draws only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.random.gamma(
        ...     (1024, 64), alpha=2.0, layout=("model", None)
        ... )
        >>> x.sharding.shard_shape(x.shape)
        (128, 64)
    """
    return backend.random.gamma(
        shape, alpha=alpha, dtype=dtype, seed=seed, layout=layout
    )


def binomial(
    shape, counts, probabilities, dtype=None, seed=None, *, layout=None
):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then draws only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.random.binomial(
        ...     (1024, 64), 10.0, 0.5, layout=("model", None)
        ... )
        >>> x.sharding.shard_shape(x.shape)
        (128, 64)
    """
    return backend.random.binomial(
        shape,
        counts=counts,
        probabilities=probabilities,
        dtype=dtype,
        seed=seed,
        layout=layout,
    )


def beta(shape, alpha, beta, dtype=None, seed=None, *, layout=None):
    """Args:
    layout: How to shard the result over devices. A
        `keras.distribution.TensorLayout`, a tuple with a mesh axis name
        or `None` for each dimension, or what JAX has for it, such as a
        `jax.sharding.NamedSharding`. Each device then draws only its
        own part, and the values are the same as without a layout.
        Other backends than JAX raise a `ValueError`. Defaults to
        `None`, which leaves it to the backend.

        With eight devices along the axis `model` of the current
        distribution:

        >>> x = keras.random.beta(
        ...     (1024, 64), 2.0, 3.0, layout=("model", None)
        ... )
        >>> x.sharding.shard_shape(x.shape)
        (128, 64)
    """
    return backend.random.beta(
        shape=shape,
        alpha=alpha,
        beta=beta,
        dtype=dtype,
        seed=seed,
        layout=layout,
    )
