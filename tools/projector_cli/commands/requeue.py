"""projector requeue: failed and dead events are tried again."""
from ..limit import add_limit
from ..output import print_json, print_table
from ..text import count

HELP = {"requeue": "try failed and dead events again, once their cause is repaired"}

COLUMNS = [("projection_name", "PROJECTION"), ("tenant_id", "TENANT"), ("aggregate_id", "AGGREGATE"),
           ("sequence_number", "NUMBER")]


def arguments(parser, _name):
    parser.add_argument("projection", metavar="PROJECTION")
    parser.add_argument("--tenant", metavar="T", help="only of this tenant")
    parser.add_argument("--aggregate", metavar="A", help="only of this aggregate")
    parser.add_argument("--number", metavar="N", type=int, help="only this event of the aggregate")
    add_limit(parser, "at most that many, oldest first (100)")


def run(server, options):
    rows = server.call("requeue", options.projection, options.tenant, options.aggregate, options.number,
                       options.limit)
    if options.json:
        print_json(rows)
    elif not rows:
        print("No event has failed or is dead.")
    else:
        print_table(rows, COLUMNS)
        print(f"{count(len(rows), 'event')} will be tried again")
        if len(rows) == options.limit:
            print("There may be more: run it again, or raise --limit.")
    return 0
