"""Burn ledgers: how often a holdout was used, kept so that it is never under-counted."""
