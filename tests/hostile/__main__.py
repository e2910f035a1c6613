"""`make hostile`: attacks of which `make test` has a sample, with a seed that it prints."""

import argparse
import random
import secrets
import sys

from hostile import mutations, signals

ATTACKS = {"mutations": (mutations.attack, 3000), "signals": (signals.attack, 6)}


def main():
    """Run the attacks; the status is 1 if one of them finds something."""
    parser = argparse.ArgumentParser(prog="python -m hostile")
    parser.add_argument("attacks", nargs="*", help=f"of {', '.join(ATTACKS)}; default: all")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    parser.add_argument("--rounds", type=int, help="of each target or command")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    failures = []
    for name in given.attacks or ATTACKS:
        attack, rounds = ATTACKS[name]
        found = attack(random.Random(f"{given.seed} {name}"), given.rounds or rounds)  # noqa: S311
        print(f"{name}: {len(found)} found", *found, sep="\n  ", flush=True)
        failures += found
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
