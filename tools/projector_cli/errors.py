"""Owns what the user reads when a command cannot be done: one line that says what to do."""
import psycopg
from psycopg import errors as pg


class ToolError(Exception):
    """A message for the user.  The command ends with this exit code."""

    def __init__(self, message, code=2):
        super().__init__(message)
        self.code = code


def first_line(text):
    return " ".join(str(text).split()) or "no reason given"


def cannot_connect(error):
    return ToolError(f"cannot connect: {first_line(error)} "
                     "(check that the server runs, and -h, -p, -U, -d or PGHOST, PGPORT, PGUSER, PGDATABASE)")


def no_extension(database):
    return ToolError(f'database "{database}" has no extension projector: '
                     "connect to another database with -d, or run CREATE EXTENSION projector")


def from_database(error, user):
    """The line for an error of the server."""
    diag = error.diag
    message = diag.message_primary or first_line(error)
    if isinstance(error, pg.InsufficientPrivilege):
        role = user.replace("'", "''")
        return ToolError(f"{message} (role \"{user}\" needs more rights. To look: "
                         f"SELECT projector_grant('{role}', 'reader'). To repair: projector_grant('{role}', 'operator'), "
                         "and membership in the role that owns the projection)")
    if isinstance(error, (pg.UndefinedTable, pg.UndefinedColumn, pg.UndefinedFunction)):
        return ToolError(f"{message} (this tool and the extension are of different versions: "
                         "ALTER EXTENSION projector UPDATE, or update the tool)")
    if diag.sqlstate is None or isinstance(error, (pg.AdminShutdown, pg.CrashShutdown, pg.CannotConnectNow)):
        return ToolError(f"the connection was lost: {first_line(message)} (check that the server runs, and try again)")
    extra = "; ".join(first_line(part) for part in (diag.message_detail, diag.message_hint) if part)
    return ToolError(first_line(message) + (f" ({extra})" if extra else ""))


DatabaseError = psycopg.Error
