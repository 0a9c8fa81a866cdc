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

        ```python
        devices = keras.distribution.list_devices()
        mesh = keras.distribution.DeviceMesh((8,), ("model",), devices)
        layout = keras.distribution.TensorLayout(("model", None), mesh)
        x = keras.random.normal((1024, 64), layout=layout)
        ```
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
    """
    return backend.random.beta(
        shape=shape,
        alpha=alpha,
        beta=beta,
        dtype=dtype,
        seed=seed,
        layout=layout,
    )
