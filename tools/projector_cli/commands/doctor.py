"""projector doctor: checks of an installation."""
from psycopg import errors as pg

from ..doctor import examine
from ..doctor.finding import LEVELS, Context, worst
from ..errors import ToolError
from ..output import print_json
from ..text import count, visible

HELP = {"doctor": "check the installation; exit code 1 for warnings, 2 for failures"}


def arguments(parser, _name):
    parser.add_argument("--old", metavar="INTERVAL", default="10 min",
                        help="how long a transaction may be open (10 min)")
    parser.add_argument("--quiet", action="store_true", help="leave out what is ok")


def show(finding):
    print(f"{finding.level:<5} {finding.check + ':':<16} {visible(finding.text)}")
    if finding.remedy and finding.level != "ok":
        print(f"{'':22} {visible(finding.remedy)}")


def run(server, options):
    try:
        old = server.value("SELECT %s::interval", options.old)
    except pg.DataError:
        raise ToolError(f'--old cannot read "{options.old}": write an interval such as "10 min"') from None
    findings = examine(Context(server, old))
    if options.json:
        print_json([finding.as_row() for finding in findings])
    else:
        for finding in findings:
            if not (options.quiet and finding.level == "ok"):
                show(finding)
        number = {level: sum(finding.level == level for finding in findings) for level in LEVELS}
        print(f"{number['ok']} ok, {number['info']} info, {count(number['warn'], 'warning')}, "
              f"{count(number['fail'], 'failure')}")
    return {"ok": 0, "info": 0, "warn": 1, "fail": 2}[LEVELS[worst(findings)]]
