"""Grafts: a variable has its layout before it has a value."""

from keras.src.backend.common import planning

register_uninitialized_variable = planning.in_current_distribution(
    register_uninitialized_variable
)
