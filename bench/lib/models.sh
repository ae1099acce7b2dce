# Owns the read model that bench/kinds and bench/rebuild measure: a table for
# each kind of projection, the code that fills it, and what it is compared with.
# To be sourced, with "database" set to the name of a database to create.
#
#   limit     SQL: INSERT … SELECT … GROUP BY of the read model in table stock,
#             and the same for the offsets
#   CALL loop()   written by hand: an upsert and an offset per event
#   columns, statement   arguments for projector_create

export PGOPTIONS="-c client_min_messages=warning"
sql() { psql -X -q -At -v ON_ERROR_STOP=1 "$@"; }

create_database() {
	sql -d postgres -c "DROP DATABASE IF EXISTS $database WITH (FORCE)" -c "CREATE DATABASE $database"
	sql -d "$database" <<'SQL'
CREATE EXTENSION projector;
-- microseconds of CPU this session has used
CREATE FUNCTION cpu() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (f[14]::bigint + f[15]::bigint) * 10000
    FROM (SELECT string_to_array(pg_read_file('/proc/self/stat'), ' ') AS f) s
$$;
CREATE TABLE stock (tenant_id text COLLATE "C", item_id text COLLATE "C", on_hand bigint NOT NULL DEFAULT 0, name text,
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, item_id)) WITH (fillfactor = 70);
CREATE TABLE stock_handler (LIKE stock INCLUDING ALL) WITH (fillfactor = 70);
CREATE TABLE stock_fold (LIKE stock INCLUDING ALL) WITH (fillfactor = 70);
CREATE TABLE stock_columns (LIKE stock INCLUDING ALL) WITH (fillfactor = 70);
CREATE TABLE stock_statement (LIKE stock INCLUDING ALL) WITH (fillfactor = 70);
CREATE TABLE stock_loop (LIKE stock INCLUDING ALL) WITH (fillfactor = 70);
CREATE TABLE offsets (LIKE projector.projection_offsets INCLUDING ALL) WITH (fillfactor = 70);

CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    delta bigint := CASE e.event_type WHEN 'Received' THEN (e.payload->>'qty')::bigint WHEN 'Shipped' THEN -(e.payload->>'qty')::bigint
        WHEN 'Adjusted' THEN (e.payload->>'by')::bigint ELSE 0 END;
BEGIN
    INSERT INTO stock_handler AS s VALUES (e.tenant_id, e.aggregate_id, delta, e.payload->>'name', e.event_id, e.sequence_number)
    ON CONFLICT (tenant_id, item_id) DO UPDATE
    SET on_hand = s.on_hand + excluded.on_hand, name = coalesce(excluded.name, s.name),
        last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version;
END $$;
CREATE FUNCTION fold(s stock_fold, e projector.event) RETURNS stock_fold LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF s.item_id IS NULL THEN
        s.tenant_id := e.tenant_id;
        s.item_id := e.aggregate_id;
        s.on_hand := 0;
    END IF;
    CASE e.event_type
        WHEN 'Received' THEN s.on_hand := s.on_hand + (e.payload->>'qty')::bigint;
        WHEN 'Shipped' THEN s.on_hand := s.on_hand - (e.payload->>'qty')::bigint;
        WHEN 'Adjusted' THEN s.on_hand := s.on_hand + (e.payload->>'by')::bigint;
        ELSE s.name := e.payload->>'name';
    END CASE;
    RETURN s;
END $$;
CREATE PROCEDURE loop() LANGUAGE plpgsql AS $$
DECLARE
    e projector.events;
BEGIN
    FOR e IN SELECT * FROM projector.events ORDER BY log_seq LOOP
        INSERT INTO stock_loop AS s VALUES (e.tenant_id, e.aggregate_id,
            CASE e.event_type WHEN 'Received' THEN (e.payload->>'qty')::bigint WHEN 'Shipped' THEN -(e.payload->>'qty')::bigint
                WHEN 'Adjusted' THEN (e.payload->>'by')::bigint ELSE 0 END, e.payload->>'name', e.event_id, e.sequence_number)
        ON CONFLICT (tenant_id, item_id) DO UPDATE
        SET on_hand = s.on_hand + excluded.on_hand, name = coalesce(excluded.name, s.name),
            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version;
        INSERT INTO offsets AS o VALUES (2, e.tenant_id, e.aggregate_id, e.sequence_number, e.event_id)
        ON CONFLICT (projection_id, tenant_id, aggregate_id) DO UPDATE
        SET last_sequence_number = excluded.last_sequence_number, last_event_id = excluded.last_event_id, updated_at = now();
    END LOOP;
END $$;
SQL
}

# Fill the log: 20 events per item, in the order of aggregates or items in turn.
fill_log() { # tenants, items of each, layout
	local order="s, i, t"
	[ "$3" = log ] || order="t, i, s"
	sql -d "$database" -c "INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
		SELECT 't' || t, 'item-' || i, s, (ARRAY['Received', 'Shipped', 'Adjusted', 'Renamed'])[s % 4 + 1],
			CASE s % 4 WHEN 2 THEN jsonb_build_object('by', s) WHEN 3 THEN jsonb_build_object('name', 'item ' || i || ', ' || s)
				ELSE jsonb_build_object('qty', s * 2, 'warehouse', 'north') END
		FROM generate_series(1, $1) t, generate_series(1, $2) i, generate_series(1, 20) s ORDER BY $order" \
		-c "VACUUM ANALYZE"
}

# Check that a read model equals the limit's result.
check_model() { # table
	sql -d "$database" <<SQL
DO \$\$ BEGIN
    IF EXISTS ((SELECT tenant_id, item_id, on_hand, name, last_event_id, last_event_version FROM $1) EXCEPT ALL (TABLE stock))
        OR (SELECT count(*) FROM $1) <> (SELECT count(*) FROM stock) THEN
        RAISE EXCEPTION 'the read model in $1 is wrong';
    END IF;
END \$\$;
SQL
}

limit="INSERT INTO stock SELECT tenant_id, aggregate_id,
		sum(CASE event_type WHEN 'Received' THEN (payload->>'qty')::bigint WHEN 'Shipped' THEN -(payload->>'qty')::bigint
			WHEN 'Adjusted' THEN (payload->>'by')::bigint ELSE 0 END),
		(array_agg(payload->>'name' ORDER BY sequence_number DESC) FILTER (WHERE payload ? 'name'))[1],
		(array_agg(event_id ORDER BY sequence_number DESC))[1], max(sequence_number)
	FROM projector.events GROUP BY 1, 2;
	INSERT INTO offsets SELECT 1, tenant_id, aggregate_id, max(sequence_number),
		(array_agg(event_id ORDER BY sequence_number DESC))[1] FROM projector.events GROUP BY 2, 3"
change="CASE e.event_type WHEN ''Received'' THEN (e.payload->>''qty'')::bigint WHEN ''Shipped'' THEN -(e.payload->>''qty'')::bigint
	WHEN ''Adjusted'' THEN (e.payload->>''by'')::bigint ELSE 0 END"
change=${change//$'\n'/ }
change=${change//$'\t'/ }
columns="fold_columns => '{\"on_hand\": \"s.on_hand + $change\", \"name\": \"coalesce(e.payload->>''name'', s.name)\"}'"
statement="statement => 'INSERT INTO stock_statement AS t
	SELECT tenant_id, aggregate_id, sum(${change//e./}), (array_agg(payload->>''name'' ORDER BY sequence_number DESC) FILTER (WHERE payload ? ''name''))[1],
		(array_agg(event_id ORDER BY sequence_number DESC))[1], max(sequence_number) FROM batch GROUP BY 1, 2
	ON CONFLICT (tenant_id, item_id) DO UPDATE SET on_hand = t.on_hand + excluded.on_hand, name = coalesce(excluded.name, t.name),
		last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version'"
