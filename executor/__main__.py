"""`python -m executor` is the command `fenced`."""

from executor.cli import main

if __name__ == "__main__":
    main()
