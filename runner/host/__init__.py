"""Local disk and kernel: staging, tree manifests, locks, atomic writes."""
