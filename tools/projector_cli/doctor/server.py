"""Checks of the server: preloading, worker slots, versions."""
import psycopg

from ..text import count
from .finding import Finding, ok

MOST_DATABASES = 200


def check_preload(context):
    libraries = context.setting("shared_preload_libraries")
    if libraries is None:
        return [Finding("info", "preload", "this role may not see shared_preload_libraries",
                        "GRANT pg_read_all_settings to it, or run doctor as a superuser")]
    if "projector" in [name.strip(' "').split("/")[-1].removesuffix(".so") for name in libraries.split(",")]:
        return ok("preload", "the library is preloaded")
    value = ", ".join(filter(None, [libraries, "projector"])).replace("'", "''")
    return [Finding("warn", "preload", "the library is not preloaded: workers start only when something is appended, "
                    "and one per database",
                    f"ALTER SYSTEM SET shared_preload_libraries = '{value}'; then restart the server")]


def databases_with_extension(server):
    """How many databases have projector, and how many could not be asked."""
    names = [row["datname"] for row in server.rows(
        "SELECT datname FROM pg_catalog.pg_database WHERE datallowconn AND datname <> current_database()"
        " AND has_database_privilege(oid, 'CONNECT') ORDER BY datname LIMIT %s", MOST_DATABASES)]
    found, unknown = 1, 0
    for name in names:
        parameters = dict(server.given, dbname=name, connect_timeout=5, application_name="projector doctor")
        if server.password is not None:
            parameters["password"] = server.password
        try:
            with psycopg.connect(server.conninfo, **parameters) as other:
                found += other.execute("SELECT count(*) FROM pg_catalog.pg_extension"
                                       " WHERE extname = 'projector'").fetchone()[0]
        except psycopg.Error:
            unknown += 1
    return found, unknown


def check_worker_slots(context):
    found, unknown = databases_with_extension(context.server)
    slots = int(context.setting("max_worker_processes"))
    workers = int(context.setting("projector.workers") or 1)
    needed = found * workers + 1
    what = (f"{count(found, 'database')} with projector, {count(workers, 'worker')} each, and a launcher "
            f"need {needed:,} of {slots:,} worker processes")
    if unknown:
        what += f" ({count(unknown, 'database')} could not be asked)"
    if needed > slots:
        return [Finding("warn", "worker slots", what + ": databases take turns",
                        f"ALTER SYSTEM SET max_worker_processes = {needed + 8}; then restart the server")]
    waiting = context.server.value("SELECT projector.worker_waits_since()")
    if waiting is not None:
        return [Finding("warn", "worker slots", what + ", but this database waits for one: others use them",
                        f"ALTER SYSTEM SET max_worker_processes = {slots + 8}; then restart the server")]
    return ok("worker slots", what)


def check_versions(context):
    server = context.server
    available = server.value("SELECT default_version FROM pg_catalog.pg_available_extensions WHERE name = 'projector'")
    if available is None:
        return [Finding("fail", "versions", f"the extension is {server.version}, and its files are not installed "
                        "on the server", "install the package postgresql-NN-projector on the server")]
    if available != server.version:
        return [Finding("warn", "versions", f"the extension is {server.version}, and {available} is installed",
                        "ALTER EXTENSION projector UPDATE")]
    return ok("versions", f"projector {server.version} on PostgreSQL {context.setting('server_version')}")


def check_standby(context):
    if context.server.value("SELECT pg_is_in_recovery()"):
        return [Finding("info", "standby", "this server is a standby: nothing is applied here, and some checks say "
                        "less", "run doctor on the primary too")]
    return []
