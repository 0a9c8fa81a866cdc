"""What the backends say to a `layout`."""

import functools

from keras.src.backend.config import backend


def unsharded_only(fn):
    """Lets an op take `layout=None`, on a backend that cannot do more.

    Args:
        fn: A function of a backend that cannot distribute tensors.

    Returns:
        A function of the same arguments and `layout`, which raises a
        `ValueError` if that is not `None`.
    """

    @functools.wraps(fn)
    def wrapper(*args, layout=None, **kwargs):
        if layout is not None:
            refuse_layout(fn.__name__, layout)
        return fn(*args, **kwargs)

    return wrapper


def refuse_layout(name, layout):
    """Raises the error of a backend that cannot distribute tensors."""
    raise ValueError(
        f"`{name}` cannot lay out its result: the {backend()} backend does "
        "not distribute tensors. Use `layout=None`, or the JAX backend "
        '(`KERAS_BACKEND="jax"`). '
        f"Received: layout={layout}"
    )


def layout_through_tracing(call):
    """Decorates an initializer's `__call__` so that it takes a layout.

    For initializers that compute their value from several ops. Under a layout
    the JAX backend makes one program of them.

    Args:
        call: A method `__call__(self, shape, dtype=None)`.

    Returns:
        A method `__call__(self, shape, dtype=None, layout=None)`.
    """

    def __call__(self, shape, dtype=None, layout=None):
        if layout is None:
            return call(self, shape, dtype)
        if backend() != "jax":
            refuse_layout(type(self).__name__, layout)
        from keras.src.backend.jax.initialization import initial_value

        return initial_value(
            functools.partial(call, self), tuple(shape), dtype, layout
        )

    __call__.__doc__ = call.__doc__
    __call__.__module__ = call.__module__
    return __call__
