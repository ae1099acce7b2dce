"""Owns how commands print: tables for people, JSON for programs."""
import datetime
import decimal
import json
import shutil
import sys

from .text import duration, fit, number, visible, width


def plain(value):
    """A value of the database as JSON has it: durations in seconds, times in ISO 8601."""
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (datetime.datetime, datetime.date)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return float(value)
    return str(value)


def print_json(value):
    print(json.dumps(value, default=plain, indent=2, ensure_ascii=True))


def shown(value):
    """A value as a table shows it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, decimal.Decimal)):
        return number(value)
    if isinstance(value, datetime.timedelta):
        return duration(value)
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, (dict, list)):
        return visible(json.dumps(value, ensure_ascii=False))
    return visible(value)


def is_figure(value):
    return value is None or isinstance(value, (int, decimal.Decimal, datetime.timedelta)) \
        and not isinstance(value, bool)


def print_table(rows, columns, wide=(), right=()):
    """Print rows under their headings.

    columns is a list of (key, heading).  On a terminal the columns named in wide are cut so
    that a row stays on one line.  In a file or a pipe nothing is cut.  Numbers and durations
    are aligned at the right, and so are the columns named in right.
    """
    cells = [[shown(row[key]) for key, _ in columns] for row in rows]
    heads = [heading for _, heading in columns]
    aligned = [key in right or all(is_figure(row[key]) for row in rows) for key, _ in columns]
    widths = [max([width(head)] + [width(line[i]) for line in cells]) for i, head in enumerate(heads)]
    if sys.stdout.isatty():
        room = shutil.get_terminal_size().columns - 2 * (len(widths) - 1)
        for i, (key, _) in enumerate(columns):
            if key in wide:
                widths[i] = max(10, min(widths[i], room - sum(widths) + widths[i]))
    for line in [heads] + cells:
        print("  ".join(fit(cell, widths[i], aligned[i]) for i, cell in enumerate(line)).rstrip())
