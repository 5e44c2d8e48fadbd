"""Measures learning, beside PRME's on receipts of the same shape, and prints what is asked of each figure.

    python -m benchmarks.learning [--receipts 5000] [--many 100000] [--nodes 10000] [--queries 200]
                                  [--reference-python PATH] [--without-reference]

The reference is `prme==0.15.0` in an environment of its own, made at the first run (`benchmarks/reference.py`);
without it, what is compared with it is left out. Each part runs in a process of its own:

    python -m benchmarks.learning.fitting     the fit and the bootstrap, from columns
    python -m benchmarks.learning.stored      evaluations of receipts that are in the database
    python -m benchmarks.learning.holdout     a holdout, and searches beside an evaluation
"""

import argparse
import sys

from benchmarks.bounds import collected, show
from benchmarks.learning import reference


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--receipts", type=int, default=5000)
    parser.add_argument(
        "--many", type=int, default=100_000, help="receipts of the large evaluation; 0 for none"
    )
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--reference-python", help="interpreter with prme==0.15.0")
    parser.add_argument("--without-reference", action="store_true")
    options = parser.parse_args()
    python = options.reference_python or (None if options.without_reference else reference.environment())
    beside = ["--reference-python", python] if python else []
    parts = [
        ["benchmarks.learning.fitting", "--receipts", str(options.receipts), *beside],
        ["benchmarks.learning.stored", "--receipts", str(options.receipts), *beside],
        ["benchmarks.learning.holdout", "--nodes", str(options.nodes), "--queries", str(options.queries)],
    ]
    if options.many:
        parts.insert(2, ["benchmarks.learning.stored", "--receipts", str(options.many)])
    rows, ended = collected(parts)
    show(rows)
    return 0 if ended else 1


if __name__ == "__main__":
    sys.exit(main())
