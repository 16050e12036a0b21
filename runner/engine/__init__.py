"""The only room that talks to Docker."""
