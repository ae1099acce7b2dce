#!/usr/bin/env bash
# What sessions that wait in projector_wait_log cost those who append: appends a
# second with SIZES (0 50 500) waiting, for SECONDS_EACH (10), 4 clients, an async
# fold by expressions.  The waiters are clients of one database, each of which
# waits for a position that is never reached, and of a pair that events come to.
#
#   bench/growth.d/wait_log.sh          on a server with the extension preloaded
#
# Prints "wait_log WAITERS VALUE tps" for each size.  The server needs connections
# for them.
set -euo pipefail
SIZES=${SIZES:-0 50 500}
SECONDS_EACH=${SECONDS_EACH:-10}
CLIENTS=${CLIENTS:-4}
export PGOPTIONS="-c client_min_messages=warning"
sql() { psql -X -q -At -v ON_ERROR_STOP=1 "$@"; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
database=growth_wait_log

sql -d postgres -o /dev/null -c "DROP DATABASE IF EXISTS $database WITH (FORCE)" -c "CREATE DATABASE $database"
sql -d "$database" -o /dev/null <<'SQL'
CREATE EXTENSION projector;
CREATE TABLE stock (tenant_id text, item_id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, item_id)) WITH (fillfactor = 70);
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1"}', targets => '{stock}');
SQL
cat >"$work/append.sql" <<'SQL'
\set a random(1, 1000)
SELECT projector_append('t' || :client_id % 4, 'a' || :client_id || '-' || :a, 'E', '1');
SQL
echo "SELECT projector_wait_log('stock', 't' || :client_id % 4, 1000000000, '1 hour');" >"$work/wait.sql"

waiting() { sql -d "$database" -c "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%wait_log%' AND state = 'active' AND wait_event_type = 'Extension' AND datname = '$database'"; }

pgbench -n -c "$CLIENTS" -j 2 -T 2 -f "$work/append.sql" "$database" >/dev/null 2>&1
for size in $SIZES; do
	if [ "$size" -gt 0 ]; then
		pgbench -n -c "$size" -j 1 -t 1 -f "$work/wait.sql" "$database" >/dev/null 2>&1 &
		until [ "$(waiting)" -ge "$((size * 9 / 10))" ]; do sleep 0.2; done
	fi
	pgbench -n -c "$CLIENTS" -j 2 -T "$SECONDS_EACH" -f "$work/append.sql" "$database" 2>/dev/null |
		awk -v n="$size" '/^tps/ {printf "wait_log %s %.0f tps\n", n, $3}'
	if [ "$size" -gt 0 ]; then
		sql -d "$database" -o /dev/null -c "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE '%wait_log%' AND datname = '$database' AND pid <> pg_backend_pid()"
		wait
	fi
done
