"""projector status: how each projection is, or each tenant of one."""
from ..limit import add_limit
from ..output import print_json, print_table
from ..states import place
from ..text import capped, count

HELP = {"status": "how each projection is; with a name, how it is for each tenant"}

ALL = [("projection_name", "PROJECTION"), ("mode", "MODE"), ("state", "STATE"), ("tenants_not_ok", "NOT OK"),
       ("lag_events", "LAG"), ("lag_time", "OLDEST"), ("dead", "DEAD"), ("why", "WHY")]
ONE = [("tenant_id", "TENANT"), ("mode", "MODE"), ("state", "STATE"), ("lag_events", "LAG"), ("lag_time", "OLDEST"),
       ("pending", "PENDING"), ("held", "HELD"), ("failed", "FAILED"), ("dead", "DEAD"), ("why", "WHY")]


def arguments(parser, _name):
    parser.add_argument("projection", nargs="?", metavar="PROJECTION")
    add_limit(parser, "at most that many tenants, worst first (100)")


def show(rows, columns):
    for row in rows:
        row["lag_events"] = capped(row["lag_events"])
    print_table(rows, columns, wide=("why",), right=("lag_events",))


def run(server, options):
    if options.projection is None:
        rows = server.rows("SELECT * FROM projector.status")
        if options.json:
            print_json(rows)
        elif rows:
            show(rows, ALL)
        else:
            print("There are no projections.")
        return 0

    server.must_exist(options.projection)
    rows = server.rows(
        "SELECT s.* FROM projector.status_by_tenant s WHERE s.projection_name = %s"
        f" ORDER BY {place('s.state')}, s.lag_time DESC NULLS LAST, s.tenant_id", options.projection)
    if options.json:
        print_json(rows[:options.limit])
    elif rows:
        show(rows[:options.limit], ONE)
        if len(rows) > options.limit:
            print(f"and {count(len(rows) - options.limit, 'more tenant')}")
    else:
        print("It has no tenants yet.")
    return 0
