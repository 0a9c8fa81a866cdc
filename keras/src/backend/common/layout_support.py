"""What the backends say to a `layout`."""

import functools
import inspect

from keras.src.backend.config import backend


def unsharded_only(fn):
    """Lets an op take `layout=None`, on a backend that cannot do more.

    Args:
        fn: A function of a backend that cannot distribute tensors.

    Returns:
        A function of the same arguments and `layout`, which raises a
        `ValueError` if that is not `None`.
    """
    # Not always the configured one: `tf.data` calls TensorFlow's under any.
    backend_name = fn.__module__.split(".")[-2]

    @wraps(fn)
    def wrapper(*args, layout=None, **kwargs):
        if layout is not None:
            refuse_layout(fn.__name__, layout, backend_name)
        return fn(*args, **kwargs)

    return wrapper


def wraps(fn):
    """Like `functools.wraps`, for a wrapper that takes `layout` too.

    Args:
        fn: The function that is wrapped.

    Returns:
        A decorator for the wrapper, which must take `layout` as a keyword.
    """
    signature = inspect.signature(fn)
    layout = inspect.Parameter(
        "layout", inspect.Parameter.KEYWORD_ONLY, default=None
    )
    parameters = [*signature.parameters.values(), layout]

    def decorate(wrapper):
        wrapper = functools.wraps(fn)(wrapper)
        wrapper.__signature__ = signature.replace(parameters=parameters)
        return wrapper

    return decorate


def refuse_layout(name, layout, backend_name=None):
    """Raises the error of a backend that cannot distribute tensors.

    Args:
        name: Of the op or initializer that is to make a tensor.
        layout: The layout.
        backend_name: Of the backend. Defaults to the configured one.
    """
    backend_name = backend_name or backend()
    if hasattr(layout, "axes"):
        layout = f"TensorLayout(axes={tuple(layout.axes)})"
    raise ValueError(
        f"`{name}` cannot lay out its result: the {backend_name} backend does "
        "not distribute tensors. Use `layout=None`, or the JAX backend "
        '(`KERAS_BACKEND="jax"`). '
        f"Received: layout={layout}"
    )


def check_layout(name, layout):
    """Raises `ValueError` for a layout on a backend that has no use for one."""
    if layout is not None and backend() != "jax":
        refuse_layout(name, layout)


def layout_through_tracing(call):
    """Decorates an initializer's `__call__` so that it takes a layout.

    For initializers that compute their value from several ops. Under a layout
    the JAX backend makes one program of them.

    Args:
        call: A method `__call__(self, shape, dtype=None)`.

    Returns:
        A method `__call__(self, shape, dtype=None, layout=None)`.
    """
    return _with_layout(call, "initial_value")


def layout_after_computing(call):
    """Decorates an initializer's `__call__` so that it takes a layout.

    For initializers whose algorithm needs the whole tensor. Under a layout it
    is computed on one device and then sent to all of them in parts.

    Args:
        call: A method `__call__(self, shape, dtype=None)`.

    Returns:
        A method `__call__(self, shape, dtype=None, layout=None)`.
    """
    return _with_layout(call, "computed_as_a_whole")


def _with_layout(call, way):
    @functools.wraps(call)
    def __call__(self, shape, dtype=None, layout=None):
        if layout is None:
            return call(self, shape, dtype)
        if backend() != "jax":
            refuse_layout(type(self).__name__, layout)
        # It is there on the JAX backend only.
        from keras.src.backend.jax import initialization

        initialize = getattr(initialization, way)
        bound = functools.partial(call, self)
        return initialize(bound, tuple(shape), dtype, layout)

    del __call__.__wrapped__  # Its signature is another one.
    return __call__
