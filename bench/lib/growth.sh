# Owns what the files of bench/growth.d share: a database with so many tenants,
# a load, and the time from an append to its read model.  To be sourced.

sql() { psql -X -q -At -v ON_ERROR_STOP=1 -d "$database" "$@"; }

line() { # name, size, value, unit
	printf '%s %s %s %s\n' "$1" "$2" "$3" "$4"
}

# A new database without workers: the caller starts them when it is filled.
fresh() {
	psql -X -q -d postgres -c "DROP DATABASE IF EXISTS $database WITH (FORCE)" -c "CREATE DATABASE $database"
	sql -o /dev/null <<-'SQL'
		CREATE EXTENSION projector;
		SELECT projector_worker_stop();
		CREATE FUNCTION milliseconds(since timestamptz) RETURNS numeric LANGUAGE sql
		    AS $$ SELECT round((extract(epoch FROM clock_timestamp() - since) * 1000)::numeric, 2) $$;
		CREATE FUNCTION fold_columns(target text) RETURNS jsonb LANGUAGE sql
		    AS $$ SELECT '{"on_hand": "coalesce(s.on_hand, 0) + (e.payload->>''qty'')::bigint"}'::jsonb $$;
		CREATE PROCEDURE add_projections(n int, mode text, first int DEFAULT 1) LANGUAGE plpgsql AS $$
		BEGIN
		    FOR i IN first .. first + n - 1 LOOP
		        EXECUTE format('CREATE TABLE IF NOT EXISTS stock_%s (tenant_id text COLLATE "C", item_id text COLLATE "C",
		            on_hand bigint, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, item_id)) WITH (fillfactor = 70)', i);
		        PERFORM projector_create('p' || i, fold_columns => fold_columns('stock_' || i),
		            targets => ARRAY['stock_' || i], mode => mode);
		    END LOOP;
		END $$;
		-- Appends, one after the other, and waits for each until p1 shows it.
		CREATE PROCEDURE measure_lag(n int, tenants text, INOUT p50 numeric DEFAULT NULL, INOUT p95 numeric DEFAULT NULL,
		                             INOUT longest numeric DEFAULT NULL)
		LANGUAGE plpgsql AS $$
		DECLARE
		    tenant text;
		    since timestamptz;
		    lags numeric[];
		BEGIN
		    FOR i IN 1 .. n LOOP
		        EXECUTE 'SELECT ' || tenants USING i INTO tenant;
		        PERFORM projector_append(tenant, 'lag' || i, 'Received', '{"qty": 1}');
		        COMMIT;
		        since := clock_timestamp();
		        LOOP
		            EXIT WHEN EXISTS (SELECT FROM stock_1 s WHERE s.tenant_id = tenant AND s.item_id = 'lag' || i);
		            IF milliseconds(since) > 60000 THEN
		                EXIT;
		            END IF;
		            COMMIT;
		            PERFORM pg_sleep(0.0005);
		        END LOOP;
		        lags := lags || milliseconds(since);
		        COMMIT;
		        PERFORM pg_sleep(0.02);
		    END LOOP;
		    SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY l), percentile_disc(0.95) WITHIN GROUP (ORDER BY l), max(l)
		    INTO p50, p95, longest FROM unnest(lags) l;
		END $$;
	SQL
}

# So many tenants with an event each; the projections come later.
fill_tenants() { # tenants, events of each
	sql -c "INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
		SELECT 't' || t, 'a', s, 'Received', '{\"qty\": 1}' FROM generate_series(1, $1) t, generate_series(1, ${2:-1}) s"
	sql -c "VACUUM (ANALYZE) projector.events"
}

# One tenant with so many events of 1,000 aggregates, and a fold by another key
# that has so many values.
fill_totals() { # events, keys
	sql -o /dev/null <<-SQL
		CREATE TABLE totals (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint,
		    last_log_seq bigint, PRIMARY KEY (tenant_id, id));
		SELECT projector_create('totals', fold_columns => '{"n": "s.n + 1"}', targets => '{totals}', key => 'payload ->> ''id''');
		INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
		SELECT 't', 'a' || i % 1000, 1 + i / 1000, 'E', jsonb_build_object('id', 'k' || i * 7919 % $2)
		FROM generate_series(0::bigint, $1 - 1) i;
		VACUUM ANALYZE;
	SQL
}

start_worker() { sql -c "SELECT projector_worker_start()" >/dev/null; }

# Wait until a query returns true.
until_true() { # query
	until [ "$(sql -c "$1")" = t ]; do sleep 0.2; done
}

# Until every projection has read the log and nothing is queued.
until_idle() {
	until_true "SELECT (SELECT bool_and(handover_log_seq IS NOT NULL) FROM projector.projections)
		AND NOT EXISTS (SELECT FROM projector.projection_cursors WHERE state IN ('replaying', 'switching'))
		AND NOT EXISTS (SELECT FROM projector.apply_outbox WHERE status = 'pending')"
}

# Appends at a rate, to known tenants, in the background: pgbench's process is $load.
start_load() { # appends per second, seconds, tenants
	cat >"${TMPDIR:-/tmp}/growth-load.$$" <<-SQL
		\\set t random(1, $3)
		\\set a random(1, 1000000000)
		SELECT projector_append('t' || :t, 'l' || :a, 'Received', '{"qty": 1}');
	SQL
	pgbench -n -M prepared -c 4 -R "$1" -T "$2" -f "${TMPDIR:-/tmp}/growth-load.$$" "$database" >/dev/null 2>&1 &
	load=$!
}

worker_cpu() { # milliseconds of CPU that this database's workers have used
	local ticks=0 pid
	for pid in $(sql -c "SELECT pid FROM pg_stat_activity WHERE backend_type = 'projector worker' AND datname = current_database()"); do
		ticks=$((ticks + $(awk '{print $14 + $15}' "/proc/$pid/stat")))
	done
	echo $((ticks * 10))
}

worker_memory() { # megabytes, of the largest worker, without shared memory
	local pid
	for pid in $(sql -c "SELECT pid FROM pg_stat_activity WHERE backend_type = 'projector worker' AND datname = current_database()"); do
		awk '/^RssAnon/ {print $2 / 1024}' "/proc/$pid/status"
	done | sort -n | tail -1
}

# How long a statement takes, in milliseconds.
time_of() { # statement
	sql <<-SQL
		SELECT clock_timestamp() AS t \\gset
		\\o /dev/null
		$1;
		\\o
		SELECT milliseconds(:'t');
	SQL
}
