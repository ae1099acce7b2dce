"""projector problems: what needs somebody, worst first, with the command that helps."""
from ..limit import add_limit
from ..output import print_json, shown
from ..text import capped, visible

HELP = {"problems": "what needs attention, worst first, with the command that helps"}


def arguments(parser, _name):
    add_limit(parser)


def place(problem):
    """Which projection and tenant."""
    parts = []
    if problem["projection_name"] is not None:
        parts.append(visible(problem["projection_name"]))
    if problem["tenant_id"] is not None:
        parts.append("tenant " + visible(problem["tenant_id"]))
    return ", ".join(parts) or "all projections"


def show(problem):
    line = f"{problem['level'].upper()}  {problem['problem']}: {place(problem)}"
    if problem["events"]:
        line += f", {capped(problem['events'])} waiting"
    if problem["since"] is not None:
        line += f", since {shown(problem['since'])}"
    print(line)
    print("    " + visible(problem["detail"] or ""))
    print("    " + visible(problem["remedy"] or ""))


def run(server, options):
    # One more than is shown, to know whether there are more.
    rows = server.rows("SELECT * FROM projector.problems LIMIT %s", options.limit + 1)
    more = len(rows) > options.limit
    rows = rows[:options.limit]
    if options.json:
        print_json(rows)
    elif not rows:
        print("No problems.")
    else:
        for problem in rows:
            show(problem)
        if more:
            print("and more: raise --limit")
    return 0
