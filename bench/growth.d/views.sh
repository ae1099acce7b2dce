#!/usr/bin/env bash
# How the cost of looking grows: the status views and projector_health(), with
# more tenants, more events, and more rows of the outbox in one tenant.
#
#   test/harness/with-cluster bench/growth.d/views.sh
#
# Prints "NAME SIZE VALUE ms" for each size.  SIZES ("100 1000 10000") are
# numbers of tenants, of 5 projections and EVENTS (100) events each; PILES
# ("200 2000 20000") numbers of pending rows, and of held ones, in one tenant.
# The tables are filled directly: what is measured is looking, not applying.
set -euo pipefail

sizes=${SIZES:-100 1000 10000}
piles=${PILES:-200 2000 20000}
events=${EVENTS:-100}
database=growth_views

export PGOPTIONS="-c client_min_messages=warning"
sql() { psql -X -q -At -v ON_ERROR_STOP=1 "$@"; }

# A log, with five projections that have applied all of it.
create_idle() {
	sql -d postgres -c "DROP DATABASE IF EXISTS $database WITH (FORCE)" -c "CREATE DATABASE $database"
	sql -d "$database" -v tenants="$1" -v events="$2" >/dev/null <<'SQL'
CREATE EXTENSION projector;
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE sql AS '';
SELECT projector_create('p' || i, handler => 'handle', mode => (ARRAY['async', 'async', 'follow', 'inline', 'async'])[i],
    ordering => CASE i WHEN 5 THEN 'log' END) FROM generate_series(1, 5) i;
SELECT projector_append('t000000', 'a', 'E', '1');
SELECT projector_drain();
ALTER TABLE projector.events DISABLE TRIGGER USER;
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
SELECT 't' || lpad((i % :tenants + 1)::text, 6, '0'), 'a' || i / :tenants / 10, i / :tenants % 10 + 1, 'E', '1', '\x00'
FROM generate_series(0, :tenants * :events - 1) i;
ALTER TABLE projector.events ENABLE TRIGGER USER;
INSERT INTO projector.projection_cursors (projection_id, tenant_id, last_log_seq, applied_count, last_applied_at)
SELECT p.projection_id, 't' || lpad(t::text, 6, '0'), (SELECT max(log_seq) FROM projector.events), :events, now()
FROM projector.projections p, generate_series(1, :tenants) t;
INSERT INTO projector.projection_digests (projection_id, tenant_id, digest, row_count, last_log_seq, layout)
SELECT p.projection_id, 't' || lpad(t::text, 6, '0'), md5('x'), 1, 1, 1
FROM projector.projections p, generate_series(1, :tenants) t WHERE p.projection_id < 4;
VACUUM ANALYZE;
SQL
}

# In one tenant: so many rows that can be claimed, and so many behind a dead one.
pile_up() {
	sql -d "$database" -v n="$1" >/dev/null <<'SQL'
ALTER TABLE projector.events DISABLE TRIGGER USER;
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
SELECT 'piled', 'a', i, 'E', '1', '\x00' FROM generate_series(1, :n * 2 + 1) i;
ALTER TABLE projector.events ENABLE TRIGGER USER;
INSERT INTO projector.apply_outbox (projection_id, log_seq, tenant_id, aggregate_id, sequence_number, event_type, status, held)
SELECT 1, log_seq, tenant_id, CASE WHEN sequence_number > :n THEN 'a' ELSE 'b' || sequence_number END, sequence_number, event_type,
    CASE sequence_number WHEN :n + 1 THEN 'dead' ELSE 'pending' END, sequence_number > :n + 1
FROM projector.events WHERE tenant_id = 'piled';
SQL
}

# The best of five, in one session: milliseconds.
measure() {
	local name=$1 size=$2 query=$3
	{ echo '\o /dev/null'; echo '\timing on'; for _ in 1 2 3 4 5 6; do echo "$query;"; done; } |
		psql -X -q -d "$database" 2>&1 | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | tail -n 5 | sort -n | head -n 1 |
		xargs printf '%s %s %s ms\n' "$name" "$size"
}

measure_all() {
	measure "$1.status" "$2" 'SELECT * FROM projector.status'
	measure "$1.by_tenant" "$2" 'SELECT * FROM projector.status_by_tenant'
	measure "$1.by_tenant_count" "$2" 'SELECT state, count(*) FROM projector.status_by_tenant GROUP BY 1'
	measure "$1.problems" "$2" 'SELECT * FROM projector.problems'
	measure "$1.health" "$2" 'SELECT * FROM projector_health()'
	measure "$1.one_pair" "$2" "SELECT * FROM projector.status_by_tenant WHERE projection_name = 'p3' AND tenant_id = 't000050'"
	measure "$1.one_tenant" "$2" "SELECT * FROM projector.status_by_tenant WHERE tenant_id = 't000050'"
}

for size in $sizes; do
	create_idle "$size" "$events"
	measure_all idle "$size"
done
for pile in $piles; do
	create_idle 10 10
	pile_up "$pile"
	measure piled.status "$pile" 'SELECT * FROM projector.status'
	measure piled.problems "$pile" 'SELECT * FROM projector.problems'
	measure piled.one_pair "$pile" "SELECT * FROM projector.status_by_tenant WHERE projection_name = 'p1' AND tenant_id = 'piled'"
done
sql -d postgres -c "DROP DATABASE $database WITH (FORCE)"
