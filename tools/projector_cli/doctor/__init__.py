"""Checks of an installation.

finding      what a check says: a level, a sentence, and what to do
settings     settings of the server that are risky
server       preloading, worker slots, versions
tables       our tables: vacuum, indexes, triggers, the sequence of the log
transactions what stays open and holds others back
projections  definitions, targets, and the problems of projector.problems
"""
from psycopg import Error, errors as pg

from ..errors import first_line
from . import projections, server, settings, tables, transactions
from .finding import Finding

CHECKS = (
    server.check_preload, server.check_worker_slots, server.check_versions, server.check_standby,
    settings.check_settings, settings.check_stored_settings,
    tables.check_triggers, tables.check_sequence, tables.check_indexes, tables.check_autovacuum,
    tables.check_dead_rows,
    transactions.check_prepared, transactions.check_appenders, transactions.check_old_snapshots,
    transactions.check_slots,
    projections.check_dormant, projections.check_stale, projections.check_target_keys, projections.check_guards,
    projections.check_caution, projections.check_problems,
)


def run_check(check, context):
    """The findings of one check.  A check that cannot be made is a finding too, so that the others are made."""
    try:
        return check(context)
    except pg.InsufficientPrivilege:
        raise
    except Error as error:
        if context.server.connection.closed:
            raise
        name = check.__name__.removeprefix("check_").replace("_", " ")
        return [Finding("fail", name, f"could not be checked: {first_line(error.diag.message_primary or error)}",
                        "repair the other failures first")]


def examine(context):
    """The findings of all checks, in order."""
    return [finding for check in CHECKS for finding in run_check(check, context)]
