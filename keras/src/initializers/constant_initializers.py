"""Grafts: constant initializers take a layout."""

from keras.src.backend.common.layout_support import layout_through_tracing


class Constant:
    __call__ = layout_through_tracing(__call__)


class Zeros:
    def __call__(self, shape, dtype=None, layout=None):
        """Args:
        layout: Optional. How to shard the tensor over devices: a
            `keras.distribution.TensorLayout` or a layout of the backend.

            With eight devices along the axis `model` of the current
            distribution:

            >>> initializer = keras.initializers.Zeros()
            >>> x = initializer((1024, 64), layout=("model", None))
            >>> x.sharding.shard_shape(x.shape)
            (128, 64)
        """
        dtype = standardize_dtype(dtype)
        return ops.zeros(shape, dtype=dtype, layout=layout)


class Ones:
    def __call__(self, shape, dtype=None, layout=None):
        """Args:
        layout: Optional. How to shard the tensor over devices: a
            `keras.distribution.TensorLayout` or a layout of the backend.

            With eight devices along the axis `model` of the current
            distribution:

            >>> initializer = keras.initializers.Ones()
            >>> x = initializer((1024, 64), layout=("model", None))
            >>> x.sharding.shard_shape(x.shape)
            (128, 64)
        """
        dtype = standardize_dtype(dtype)
        return ops.ones(shape, dtype=dtype, layout=layout)


class Identity:
    __call__ = layout_through_tracing(__call__)


class STFT:
    __call__ = layout_through_tracing(__call__)
