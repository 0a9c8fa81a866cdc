"""Runs the tests that upstream ships, on the fork and on upstream."""
