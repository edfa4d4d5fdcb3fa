"""`python -m evermat` is the command line."""

from evermat.cli import main

if __name__ == "__main__":
    main()
