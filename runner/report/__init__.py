"""Scorecard in, document out."""
