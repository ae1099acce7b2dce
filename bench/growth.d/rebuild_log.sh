#!/usr/bin/env bash
# Time of a rebuild in one transaction of a fold whose key is not the aggregate,
# which is applied in the order of the log, by SIZES (4000 40000 400000) events of
# 1,000 aggregates and KEYS (10000) keys, all of one tenant.
#
#   bench/growth.d/rebuild_log.sh       on a server with the extension
#
# Prints "rebuild_log EVENTS VALUE ms" for each size.
set -euo pipefail
SIZES=${SIZES:-4000 40000 400000}
KEYS=${KEYS:-10000}
export PGOPTIONS="-c client_min_messages=warning"
sql() { psql -X -q -At -v ON_ERROR_STOP=1 "$@"; }
database=growth_rebuild_log

for size in $SIZES; do
	sql -d postgres -o /dev/null -c "DROP DATABASE IF EXISTS $database WITH (FORCE)" -c "CREATE DATABASE $database"
	sql -d "$database" -o /dev/null <<SQL
CREATE EXTENSION projector;
CREATE TABLE totals (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, last_log_seq bigint,
    PRIMARY KEY (tenant_id, id));
SELECT projector_create('totals', fold_columns => '{"n": "s.n + 1"}', targets => '{totals}', key => 'payload ->> ''id''', mode => 'off');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
SELECT 't', 'a' || i % 1000, 1 + i / 1000, 'E', jsonb_build_object('id', 'k' || i * 7919 % $KEYS) FROM generate_series(0::bigint, $size - 1) i;
VACUUM ANALYZE;
SQL
	sql -d "$database" <<SQL
SELECT clock_timestamp() AS start \gset
SELECT 1 / (projector_rebuild('totals') = $size)::int AS ok \gset
SELECT format('rebuild_log $size %s ms', round(extract(epoch FROM clock_timestamp() - :'start') * 1000));
SQL
done
