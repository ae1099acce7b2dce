#!/usr/bin/env bash
# Time and memory of projector_verify by tenants, for SIZES (120 1200 12000) of
# EVENTS (1) aggregates of one event each; a fold by expressions.
#
#   bench/growth.d/verify.sh            on a server with the extension preloaded
#
# Prints "verify TENANTS VALUE ms" and "verify_memory TENANTS VALUE kB" for each.
set -euo pipefail
SIZES=${SIZES:-120 1200 12000}
EVENTS=${EVENTS:-1}
export PGOPTIONS="-c client_min_messages=warning"
sql() { psql -X -q -At -v ON_ERROR_STOP=1 "$@"; }
database=growth_verify

for size in $SIZES; do
	sql -d postgres -o /dev/null -c "DROP DATABASE IF EXISTS $database WITH (FORCE)" -c "CREATE DATABASE $database"
	sql -d "$database" -o /dev/null <<SQL
CREATE EXTENSION projector;
CREATE TABLE stock (tenant_id text, item_id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, item_id)) WITH (fillfactor = 70);
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1"}', targets => '{stock}');
SELECT projector_drain();
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
SELECT 't' || t, 'a' || a, 1, 'E', '1' FROM generate_series(1, $size) t, generate_series(1, $EVENTS) a;
SELECT projector_rebuild('stock');
VACUUM ANALYZE;
SQL
	sql -d "$database" <<SQL
SELECT clock_timestamp() AS start \gset
SELECT 1 / (count(*) = $size AND bool_and(matches))::int AS ok FROM projector_verify('stock') \gset
SELECT format('verify $size %s ms', round(extract(epoch FROM clock_timestamp() - :'start') * 1000));
SELECT format('verify_memory $size %s kB', substring(pg_read_file('/proc/self/status') FROM 'RssAnon:\s*(\d+) kB'));
SQL
done
