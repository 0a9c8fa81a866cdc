"""Grafts: errors about a rule name it."""

from keras.src.distribution import layout_rules


class LayoutMap:
    __setitem__ = layout_rules.checked(__setitem__)
