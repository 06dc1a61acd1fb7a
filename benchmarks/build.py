"""Scaling of a build over local processes: the same trajectories simulated by one, two, ... workers.

    python benchmarks/build.py [--count 24] [--workers 1,2]

Wall-clock seconds of `rdjepa data build` including start of the processes and compilation.
"""

import argparse
import subprocess
import sys
import tempfile
import time

SYSTEMS = "fitzhugh-nagumo,barkley"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--workers", default="1,2")
    arguments = parser.parse_args()
    alone = None
    print("| workers | seconds | speed-up | efficiency |")
    print("|---|---|---|---|")
    for workers in map(int, arguments.workers.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "rdjepa", "data", "build", "--out", folder, "--systems", SYSTEMS]
            command += ["--splits", "pool", "--count", str(arguments.count), "--workers", str(workers)]
            began = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            spent = time.perf_counter() - began
        alone = alone or spent
        print(f"| {workers} | {spent:.1f} | {alone / spent:.2f} | {alone / spent / workers:.0%} |", flush=True)


if __name__ == "__main__":
    main()
