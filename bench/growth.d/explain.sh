# projector_explain of one row of a fold whose key is not the aggregate: one
# tenant, 100 keys, so many events.
for size in ${SIZES:-3000 30000 300000}; do
	fresh
	sql -o /dev/null <<-SQL
		CREATE TABLE totals (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint,
		    last_log_seq bigint, PRIMARY KEY (tenant_id, id));
		SELECT projector_create('totals', fold_columns => '{"n": "s.n + 1"}', targets => '{totals}', key => 'payload ->> ''id''');
		INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
		SELECT 't', 'a' || i % 1000, 1 + i / 1000, 'E', jsonb_build_object('id', 'k' || i * 7919 % 100)
		FROM generate_series(0::bigint, $size - 1) i;
		SELECT projector_rebuild('totals');
		VACUUM ANALYZE;
	SQL
	line explain "$size" "$(time_of "SELECT 1 / (count(*) = $size / 100)::int FROM projector_explain('totals', 't', 'k7')")" ms
done
