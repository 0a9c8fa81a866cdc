"""Keeps a Keras fork as its difference: composes it with pinned upstream."""
