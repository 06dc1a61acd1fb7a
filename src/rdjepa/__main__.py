"""Entry point of the command line: `python -m rdjepa` and the program `rdjepa`."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; an interrupt during its import ends it with the same exit code as any other."""
    try:
        from rdjepa.cli.main import main as run
    except KeyboardInterrupt:
        print("interrupted; nothing was begun", file=sys.stderr)
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
