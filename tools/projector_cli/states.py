"""Owns the states and their two orders."""

# What needs somebody comes first: the order of lists.
URGENCY = ("blocked", "no_worker", "failing", "lagging", "waiting", "dormant", "paused", "rebuilding", "starting",
           "off", "shadow", "ok")

# Which state a pair shows if several are true, and a projection shows of its tenants: the
# order of docs/reference/views.md.
PRECEDENCE = ("dormant", "off", "paused", "blocked", "failing", "rebuilding", "starting", "no_worker", "waiting",
              "lagging", "shadow", "ok")


def place(column, order=URGENCY):
    """SQL: the place of a state in an order."""
    return f"pg_catalog.array_position('{{{','.join(order)}}}'::text[], {column})"
