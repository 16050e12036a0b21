"""ao-eval: hermetic A/B evaluation of deterministic suites in containers."""

__version__ = "0.1.0"
