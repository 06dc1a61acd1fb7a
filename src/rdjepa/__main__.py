"""`python -m rdjepa`, and the program `rdjepa`, are the command line."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; an interrupt that meets its import ends it as any other does."""
    try:
        from rdjepa.cli.main import main as run
    except KeyboardInterrupt:
        print("interrupted; nothing was begun", file=sys.stderr)
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
