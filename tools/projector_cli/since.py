"""Owns points in time on the command line: "2 hours", "7d", "2026-05-01 12:00"."""
import re

from psycopg import errors as pg

from .errors import ToolError


def resolve(server, text):
    """The time that --since names: an interval ago, or a timestamp as PostgreSQL reads it."""
    if text is None:
        return None
    try:
        if re.fullmatch(r"\s*\d+(\.\d+)?\s*[A-Za-z]+.*", text):
            return server.value("SELECT pg_catalog.now() - %s::interval", text)
        return server.value("SELECT %s::timestamptz", text)
    except (pg.DataError, pg.DatetimeFieldOverflow):
        raise ToolError(f'--since cannot read "{text}": write an interval such as "2 hours" or "7d", '
                        'or a time such as "2026-05-01 12:00"') from None
