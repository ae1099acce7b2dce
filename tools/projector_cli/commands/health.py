"""projector health: one line and an exit code, for Nagios and for probes."""
from ..output import print_json
from ..text import visible

HELP = {"health": "one line, and exit code 0 (ok), 1 (warning) or 2 (critical)"}

CODES = {"ok": 0, "warning": 1, "critical": 2}


def arguments(_parser, _name):
    pass


def tell(options, level, reason):
    if options.json:
        print_json({"level": level, "reason": reason})
    else:
        print(f"{level.upper()}: {visible(reason) or 'no problems'}")
    return CODES[level]


def run(server, options):
    found = server.call("health")[0]
    return tell(options, found["level"], found["reason"])


def failed(options, error):
    """A database that cannot be asked is not healthy."""
    return tell(options, "critical", str(error))
