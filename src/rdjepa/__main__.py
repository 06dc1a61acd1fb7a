"""`python -m rdjepa` is the command line."""

from rdjepa.cli.main import main

if __name__ == "__main__":
    main()
