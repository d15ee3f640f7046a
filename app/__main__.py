"""`python -m tokensphere`."""

from tokensphere.cli import main

if __name__ == "__main__":
    main()
