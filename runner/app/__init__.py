"""Use cases that join the rooms; retries live here only."""
