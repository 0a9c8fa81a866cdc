"""Grafts: weights can be set from anything that a variable can be assigned."""

from keras.src.backend.common import host_data


class Layer:
    set_weights = host_data.as_arrays(set_weights)
