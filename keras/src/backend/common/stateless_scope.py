"""Grafts: a model without values stays without until it is used."""

from keras.src.backend.common import planning


class StatelessScope:
    __enter__ = planning.noting_variables_of_others(__enter__)
    __exit__ = planning.leaving_variables_without_values(__exit__)
