"""Statements about a comparison, their envelopes, keys and signatures."""
