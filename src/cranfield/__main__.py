"""``python -m cranfield`` is the command line."""

from cranfield.cli import main

if __name__ == "__main__":
    main()
