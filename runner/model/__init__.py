"""Nouns: frozen values that walk through the rooms. No behaviour beyond their own invariants."""
