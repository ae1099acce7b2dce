# The status views, projector_health() and the metrics: with more tenants of five projections
# and ${EVENTS} (100) events each, and with more pending and held rows in the
# outbox of one tenant (PILES).  For the metrics also with a fifth of all events
# waiting in each of the five outboxes (queued).  The tables are filled directly: this measures
# looking, not applying.  LOGS: events of only four tenants.

# A log, with five projections that have applied all of it.
create_idle() { # tenants, events of each
	fresh >/dev/null
	sql -v tenants="$1" -v events="$2" >/dev/null <<-'SQL'
		CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE sql AS '';
		SELECT projector_create('p' || i, handler => 'handle', ordering => CASE i WHEN 5 THEN 'log' END,
		    mode => (ARRAY['async', 'async', 'follow', 'inline', 'async'])[i]) FROM generate_series(1, 5) i;
		SELECT projector_append('t0', 'a', 'E', '1');
		SELECT projector_drain();
		ALTER TABLE projector.events DISABLE TRIGGER USER;
		INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, payload_hash)
		SELECT 't' || i % :tenants + 1, 'a' || i / :tenants / 10, i / :tenants % 10 + 1, 'E', '1', '\x00'
		FROM generate_series(0, :tenants * :events - 1) i;
		ALTER TABLE projector.events ENABLE TRIGGER USER;
		INSERT INTO projector.projection_cursors (projection_id, tenant_id, last_log_seq, applied_count, last_applied_at)
		SELECT p.projection_id, 't' || t, (SELECT max(log_seq) FROM projector.events), :events, now()
		FROM projector.projections p, generate_series(1, :tenants) t;
		INSERT INTO projector.projection_digests (projection_id, tenant_id, digest, row_count, last_log_seq, layout)
		SELECT p.projection_id, 't' || t, md5('x'), 1, 1, 1
		FROM projector.projections p, generate_series(1, :tenants) t WHERE p.projection_id < 4;
		VACUUM ANALYZE;
	SQL
}

# Of each tenant a fifth of the events, for each projection.
queue_all() {
	sql >/dev/null <<-'SQL'
		INSERT INTO projector.apply_outbox (projection_id, log_seq, tenant_id, aggregate_id, sequence_number, event_type)
		SELECT p.projection_id, e.log_seq, e.tenant_id, e.aggregate_id, e.sequence_number, e.event_type
		FROM projector.projections p, projector.events e WHERE e.sequence_number > 8;
		VACUUM ANALYZE projector.apply_outbox;
	SQL
}

# In one tenant: so many rows that can be claimed, and so many behind a dead one.
pile_up() { # rows
	sql -v n="$1" >/dev/null <<-'SQL'
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

# The best of five, in one session, after a first one.
measure() { # name, size, query
	local best
	best=$({
		echo '\o /dev/null'
		echo '\timing on'
		for _ in 1 2 3 4 5 6; do echo "$3;"; done
	} | psql -X -q -d "$database" | sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' | tail -n 5 | sort -n | head -n 1)
	line "$1" "$2" "$best" ms
}

for size in ${SIZES:-100 1000 10000}; do
	create_idle "$size" "${EVENTS:-100}"
	measure idle_status "$size" 'SELECT * FROM projector.status'
	measure idle_by_tenant "$size" 'SELECT * FROM projector.status_by_tenant'
	measure idle_problems "$size" 'SELECT * FROM projector.problems'
	measure idle_health "$size" 'SELECT * FROM projector_health()'
	measure one_pair "$size" "SELECT * FROM projector.status_by_tenant WHERE projection_name = 'p3' AND tenant_id = 't50'"
	measure one_tenant "$size" "SELECT * FROM projector.status_by_tenant WHERE tenant_id = 't50'"
	measure idle_metrics "$size" 'SELECT * FROM projector.metrics'
	measure idle_openmetrics "$size" 'SELECT projector_openmetrics()'
	queue_all
	measure queued_metrics "$size" 'SELECT * FROM projector.metrics'
	measure queued_openmetrics "$size" 'SELECT projector_openmetrics()'
done
# Few pairs with long logs.
for size in ${LOGS:-900 9000 90000}; do
	create_idle 4 $((size / 4))
	measure few_status "$size" 'SELECT * FROM projector.status'
	measure few_problems "$size" 'SELECT * FROM projector.problems'
	measure few_health "$size" 'SELECT * FROM projector_health()'
done
for size in ${PILES:-200 2000 20000}; do
	create_idle 10 10
	pile_up "$size"
	measure piled_status "$size" 'SELECT * FROM projector.status'
	measure piled_problems "$size" 'SELECT * FROM projector.problems'
	measure piled_one_pair "$size" "SELECT * FROM projector.status_by_tenant WHERE projection_name = 'p1' AND tenant_id = 'piled'"
done
