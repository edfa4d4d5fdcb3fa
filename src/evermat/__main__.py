"""`python -m evermat` is the command line."""

from evermat.cli.main import script

if __name__ == "__main__":
    script()
