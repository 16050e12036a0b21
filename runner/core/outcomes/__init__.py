"""Outcomes: rubrics go out without the holdout, scores come in behind gates."""
