"""projector outbox: the events that wait."""
from ..limit import add_limit
from ..output import print_json, print_table
from ..text import count

HELP = {"outbox": "the events that wait, failed or are dead"}

COLUMNS = [("projection_name", "PROJECTION"), ("tenant_id", "TENANT"), ("aggregate_id", "AGGREGATE"),
           ("sequence_number", "NUMBER"), ("event_type", "TYPE"), ("status", "STATUS"),
           ("attempt_count", "ATTEMPTS"), ("next_attempt_at", "NEXT"), ("last_error", "ERROR")]


def arguments(parser, _name):
    parser.add_argument("--projection", metavar="P", help="only of this projection")
    parser.add_argument("--tenant", metavar="T", help="only of this tenant")
    parser.add_argument("--status", choices=["pending", "processing", "held", "failed", "dead"])
    add_limit(parser)


def run(server, options):
    if options.projection is not None:
        server.must_exist(options.projection)
    conditions, values = [], []
    for column, value in (("projection_name", options.projection), ("tenant_id", options.tenant),
                          ("status", options.status)):
        if value is not None:
            conditions.append(f"{column} = %s")
            values.append(value)
    query = "SELECT * FROM projector.outbox"
    if conditions:
        query += " WHERE " + " AND ".join(conditions)
    rows = server.rows(query + " ORDER BY log_seq, projection_name LIMIT %s", *values, options.limit + 1)
    more = len(rows) > options.limit
    rows = rows[:options.limit]
    if options.json:
        print_json(rows)
    elif not rows:
        print("Nothing waits.")
    else:
        print_table(rows, COLUMNS, wide=("last_error",))
        if more:
            print(f"and more: these are the first {count(options.limit, 'event')}, see --limit")
    return 0
