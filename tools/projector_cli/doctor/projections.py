"""Checks of the projections: definitions, targets, and what projector.problems lists."""
from ..text import count
from .finding import Finding, ok


def names(rows, most=5):
    listed = ", ".join(f'"{row["projection_name"]}"' for row in rows[:most])
    return listed + (f" and {len(rows) - most:,} more" if len(rows) > most else "")


def problems(context, kind):
    return context.server.rows("SELECT * FROM projector.problems WHERE problem = %s", kind)


def check_dormant(context):
    rows = problems(context, "dormant")
    if rows:
        return [Finding("warn", "dormant", f"this database is a copy: {names(rows)} do nothing here",
                        "SELECT projector_adopt(), if the copy is to work on its own")]
    return ok("dormant", "this database is not a copy")


def check_stale(context):
    rows = problems(context, "stale")
    return [Finding("warn", "definitions", f"\"{row['projection_name']}\" was {row['detail']}", row["remedy"])
            for row in rows] or ok("definitions", "every read model was built with its present definition")


def check_target_keys(context):
    """A fold writes rows by key; every kind clears the rows of one tenant."""
    rows = context.server.rows("""
        SELECT p.name AS projection_name, p.kind, t.relation::regclass::text AS target,
               EXISTS (SELECT FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a
                           ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                       WHERE i.indrelid = t.relation AND i.indisvalid AND a.attname = 'tenant_id') AS by_tenant,
               EXISTS (SELECT FROM pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a
                           ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
                       WHERE i.indrelid = t.relation AND i.indisvalid AND i.indisunique AND i.indpred IS NULL
                         AND a.attname = 'tenant_id') AS unique_key
        FROM projector.projections p CROSS JOIN unnest(p.target_oids) AS t (relation)
        WHERE EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = t.relation) ORDER BY 1, 3""")
    found = []
    for row in rows:
        whose = f"target {row['target']} of \"{row['projection_name']}\""
        if row["kind"].startswith("fold") and not row["unique_key"]:
            found.append(Finding("fail", "targets", f"{whose} has no unique key with tenant_id: the projection cannot "
                                 "find its rows", f"ALTER TABLE {row['target']} ADD PRIMARY KEY (tenant_id, ...)"))
        elif not row["by_tenant"]:
            found.append(Finding("warn", "targets", f"{whose} has no index that begins with tenant_id: a rebuild of "
                                 "one tenant reads all of it", f"CREATE INDEX ON {row['target']} (tenant_id)"))
    return found or ok("targets", "every target has the key it needs")


def check_guards(context):
    """The triggers that keep a handler or statement to its event's tenant."""
    rows = context.server.rows("""
        SELECT p.name AS projection_name, t.relation::regclass::text AS target
        FROM projector.projections p CROSS JOIN unnest(p.target_oids) AS t (relation)
        JOIN pg_catalog.pg_trigger g ON g.tgrelid = t.relation AND g.tgname = 'projector_guard'
        WHERE g.tgenabled IN ('D', 'R') ORDER BY 1, 2""")
    return [Finding("fail", "guards", f"trigger projector_guard of {row['target']} (\"{row['projection_name']}\") is "
                    "disabled: its code can change rows of other tenants",
                    f"ALTER TABLE {row['target']} ENABLE TRIGGER projector_guard") for row in rows]


def check_caution(context):
    if context.server.value("SELECT count(*) FROM projector.worker_marks WHERE cautious"):
        return [Finding("info", "workers", "workers apply one event at a time, because the server or a worker has "
                        "crashed", "see projector.worker_marks; it ends by itself")]
    return []


def check_problems(context):
    rows = context.server.rows("SELECT level, count(*) AS number FROM projector.problems"
                               " WHERE problem NOT IN ('dormant', 'stale') GROUP BY level ORDER BY level")
    levels = {"critical": "fail", "warning": "warn"}
    return [Finding(levels[row["level"]], "problems", f"projector.problems has {count(row['number'], row['level'])}"
                    if row["level"] == "warning" else
                    f"projector.problems has {row['number']:,} critical {'row' if row['number'] == 1 else 'rows'}",
                    "projector problems") for row in rows] or ok("problems", "nothing needs attention")
