"""Owns --limit: at least 1, because with 0 a command would say that there is nothing."""
import argparse


def at_least_one(text):
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number < 2 ** 31:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to 2147483647")
    return number


def add_limit(parser, what="at most that many (100)"):
    parser.add_argument("--limit", type=at_least_one, default=100, help=what)
