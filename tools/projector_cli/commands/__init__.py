"""The commands by name, in the order that --help lists them.

A module has HELP (a line for each of its commands), arguments(parser, name) and
run(server, options), which returns the exit code.  It may have failed(options, error),
which prints an error in the command's own form and returns the exit code.
"""
from . import audit, doctor, health, outbox, problems, rebuild, report, requeue, status, top, verify

COMMANDS = {
    "status": status,
    "problems": problems,
    "health": health,
    "top": top,
    "outbox": outbox,
    "requeue": requeue,
    "rebuild": rebuild,
    "verify": verify,
    "audit": audit,
    "doctor": doctor,
    "report": report,
}
