"""Grafts: tensors go straight into their layout."""

from keras.src.backend.jax import placement


def distribute_tensor(tensor, layout):
    """Args:
    tensor: The tensor to lay out: a JAX array, which may be traced, or
        host data (NumPy, lists, scalars, HDF5 datasets, CPU tensors of
        other frameworks), of which each device is sent its own part; or
        a dict, list or tuple of arrays, which are all laid out alike.
    layout: A `keras.distribution.TensorLayout`, or anything else that
        the JAX backend takes for a layout.
    """
    return placement.distribute(tensor, layout)


del jax_utils
