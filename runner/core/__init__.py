"""Verbs: pure functions, values in, values out."""
