"""Settings of the property tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes says nothing on a machine that does other things as well.
settings.register_profile("patient", settings(), deadline=None)
settings.load_profile("patient")
