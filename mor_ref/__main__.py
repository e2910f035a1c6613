"""`python -m mor_ref` is the command `mor-ref`."""

from mor_ref.cli import main

if __name__ == "__main__":
    main()
