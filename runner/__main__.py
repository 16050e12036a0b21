"""`python -m runner` is `ao-eval`."""

from runner.cli.main import main

if __name__ == "__main__":
    main()
