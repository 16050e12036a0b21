"""Programs that run inside a container; read as source, imported by nothing."""
