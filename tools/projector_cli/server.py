"""Owns the connection: how it is made, and what this database has of projector.

Every query of the tool goes through Server.  It uses documented views and functions
only, so that a role with projector_grant(role, 'reader') can look at everything.
"""
import codecs
import getpass
import json
import sys

import psycopg
from psycopg import sql
from psycopg.adapt import Loader
from psycopg.rows import dict_row

from . import errors


class TolerantText(Loader):
    """Text as UTF-8; bytes that are not (a database with encoding SQL_ASCII) are shown as \\xNN."""

    def load(self, data):
        return bytes(data).decode("utf-8", "backslashreplace")


def escaped_in_json(error):
    """\\xNN for bytes that are not UTF-8, as a string in JSON has it."""
    return "".join(f"\\\\x{byte:02x}" for byte in error.object[error.start:error.end]), error.end


codecs.register_error("escaped_in_json", escaped_in_json)


class TolerantJson(Loader):
    """The same for JSON."""

    def load(self, data):
        return json.loads(bytes(data).decode("utf-8", "escaped_in_json"))


def parameters(options):
    """The libpq parameters of the command line.  -d may be a name, a conninfo string or a URI."""
    given = {"host": options.host, "port": options.port, "user": options.username}
    given = {name: value for name, value in given.items() if value is not None}
    conninfo = ""
    if options.dbname is not None:
        if "=" in options.dbname or options.dbname.startswith(("postgresql://", "postgres://")):
            conninfo = options.dbname
        else:
            given["dbname"] = options.dbname
    return conninfo, given


class Server:
    """One connection.  Each statement is a transaction of its own."""

    def __init__(self, options, password=None):
        self.conninfo, self.given = parameters(options)
        self.connection = None
        self.password = password        # if it was asked for
        self.connect()

    def connect(self):
        """Connect, or connect again after the connection was lost."""
        fixed = dict(self.given, client_encoding="utf8", fallback_application_name="projector")
        if "connect_timeout" not in self.conninfo:
            fixed["connect_timeout"] = 10
        if self.password is not None:
            fixed["password"] = self.password
        try:
            self.connection = psycopg.connect(self.conninfo, autocommit=True, row_factory=dict_row, **fixed)
        except psycopg.OperationalError as error:
            if "no password supplied" in str(error) and self.password is None and sys.stdin.isatty():
                self.password = getpass.getpass()
                return self.connect()
            raise errors.cannot_connect(error) from None
        except (psycopg.Error, UnicodeError) as error:
            raise errors.cannot_connect(error) from None
        for name in ("text", "varchar", "name", "bpchar"):
            self.connection.adapters.register_loader(name, TolerantText)
        for name in ("json", "jsonb"):
            self.connection.adapters.register_loader(name, TolerantJson)
        if self.connection.info.parameter_status("server_encoding") == "SQL_ASCII":
            # The server would refuse to send what is not UTF-8.
            self.connection.execute("SET client_encoding = 'SQL_ASCII'")
        self.user = self.connection.info.user
        self.database = self.connection.info.dbname
        found = self.row("SELECT n.nspname AS schema, e.extversion AS version FROM pg_catalog.pg_extension e"
                         " JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'projector'")
        if found is None:
            raise errors.no_extension(self.database)
        self.schema, self.version = found["schema"], found["version"]
        return None

    def close(self):
        if self.connection is not None:
            self.connection.close()

    def rows(self, query, *values):
        return self.connection.execute(query, values or None).fetchall()

    def row(self, query, *values):
        found = self.rows(query, *values)
        return found[0] if found else None

    def value(self, query, *values):
        found = self.row(query, *values)
        return next(iter(found.values())) if found else None

    def call(self, name, *values):
        """SELECT * FROM projector_NAME(values), in the schema of the extension."""
        function = sql.Identifier(self.schema, "projector_" + name)
        marks = sql.SQL(", ").join([sql.Placeholder()] * len(values))
        query = sql.SQL("SELECT * FROM {}({})").format(function, marks)
        return self.connection.execute(query, values).fetchall()

    def has(self, relation):
        """May this role read this view of schema projector, and is it there?"""
        return bool(self.value("SELECT pg_catalog.has_table_privilege(c.oid, 'SELECT') FROM pg_catalog.pg_class c"
                               " WHERE c.relnamespace = 'projector'::regnamespace AND c.relname = %s", relation))

    def must_exist(self, projection):
        """A typing error in the name of a projection is an error, not an empty answer."""
        if not self.rows("SELECT FROM projector.projections WHERE name = %s", projection):
            raise errors.ToolError(f'there is no projection "{projection}" (projector status lists them)')

