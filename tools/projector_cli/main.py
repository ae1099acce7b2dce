"""Owns the command line: its options, which command runs, and the exit code.

0 means that all is well, 1 that the command found something (see docs/reference/tool.md),
2 that it could not be done.  An error is one line on stderr, never a traceback.
"""
import argparse
import os
import sys

import psycopg

from . import errors, text
from .commands import COMMANDS
from .server import Server

EPILOG = """\
The connection is that of psql: PGHOST, PGPORT, PGUSER, PGDATABASE, PGSERVICE, ~/.pgpass, or the options above.
projector COMMAND --help describes a command."""


def connection_options():
    """Accepted before and after the command.  -h is the host, as in psql."""
    parser = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    parser.add_argument("--help", action="help", help="show this help and exit")
    group = parser.add_argument_group("connection")
    group.add_argument("-h", "--host", help="host name or directory of the socket")
    group.add_argument("-p", "--port", help="port")
    group.add_argument("-U", "--username", help="role")
    group.add_argument("-d", "--dbname", help="database, or a conninfo string or URI")
    group.add_argument("--json", action="store_true", help="print JSON")
    return parser


def build_parser():
    shared = connection_options()
    parser = argparse.ArgumentParser(prog="projector", description="Look at projections and repair them.",
                                     epilog=EPILOG, parents=[shared], add_help=False, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.HELP[name], description=module.HELP[name] + ".",
                                      parents=[shared], add_help=False, allow_abbrev=False)
        module.arguments(command, name)
    return parser


def read_options(arguments):
    options = build_parser().parse_args(arguments)
    for name in ("host", "port", "username", "dbname"):
        setattr(options, name, getattr(options, name, None))
    options.json = getattr(options, "json", False)
    return options


def run(options):
    module = COMMANDS[options.command]
    server = None
    try:
        server = Server(options)
        return module.run(server, options) or 0
    except psycopg.Error as error:
        raise errors.from_database(error, server.user if server else "") from None
    finally:
        if server is not None:
            server.close()


def prepare_output():
    """Give the streams what they may lack: a file, and a way to print what the terminal has no character for."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:      # closed by the caller
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))
        getattr(sys, name).reconfigure(errors="backslashreplace")


def leave_output():
    """What could not be written is lost; do not complain again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main(arguments):
    prepare_output()
    try:
        options = read_options(arguments)
        failed = getattr(COMMANDS[options.command], "failed", None)
        try:
            code = run(options)
        except errors.ToolError as error:
            if failed is None:
                raise
            code = failed(options, error)
        sys.stdout.flush()
        return code
    except errors.ToolError as error:
        print(f"projector: {text.visible(error)}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        leave_output()      # the reader of a pipe has gone
        return 0
    except OSError as error:
        leave_output()
        print(f"projector: {text.visible(error.strerror or error)}", file=sys.stderr)
        return 2
    except Exception as error:
        if os.environ.get("PROJECTOR_TRACEBACK"):
            raise
        print(f"projector: {type(error).__name__}: {text.visible(error)} (a mistake of this tool: "
              "PROJECTOR_TRACEBACK=1 shows where)", file=sys.stderr)
        return 2
