"""`rdjepa` with what `small` registers, as a process of its own: python benchmarks/campaign/command.py simulate ..."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

try:
    from campaign import small

    small.install()  # in the processes that a command starts, too
except KeyboardInterrupt:
    raise SystemExit(130) from None  # not yet the package, which has the same guard

if __name__ == "__main__":
    from rdjepa.__main__ import main

    main()
