# An event fails, and so many of its aggregate wait behind it: how long new events
# of the tenant's other aggregates take meanwhile.
for size in ${SIZES:-3000 30000 300000}; do
	fresh
	sql -o /dev/null <<-SQL
		CREATE TABLE stock_1 (tenant_id text COLLATE "C", item_id text COLLATE "C", on_hand bigint NOT NULL DEFAULT 0,
		    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, item_id)) WITH (fillfactor = 70);
		SELECT projector_create('p1', fold_columns => '{"on_hand": "s.on_hand + 1 / (e.payload ->> ''qty'')::int"}',
		    targets => '{stock_1}', options => '{"max_attempts": 1}');
		SELECT projector_drain();
		INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
		SELECT 't', 'bad', i, 'E', jsonb_build_object('qty', (i > 1)::int) FROM generate_series(1, $size) i;
		VACUUM ANALYZE;
	SQL
	start_worker
	line hold_longest_lag "$size" "$(sql -F ' ' -c "CALL measure_lag(30, '''t''')" | awk '{print $3}')" ms
done
