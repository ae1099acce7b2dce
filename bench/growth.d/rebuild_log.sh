# A rebuild in one transaction of a fold whose key is not the aggregate, which is
# applied in log order: one tenant, 1,000 aggregates, 10,000 keys, so many events.
for size in ${SIZES:-4000 40000 400000}; do
	fresh
	sql -o /dev/null <<-SQL
		CREATE TABLE totals (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint,
		    last_log_seq bigint, PRIMARY KEY (tenant_id, id));
		SELECT projector_create('totals', fold_columns => '{"n": "s.n + 1"}', targets => '{totals}', key => 'payload ->> ''id''');
		INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
		SELECT 't', 'a' || i % 1000, 1 + i / 1000, 'E', jsonb_build_object('id', 'k' || i * 7919 % 10000)
		FROM generate_series(0::bigint, $size - 1) i;
		VACUUM ANALYZE;
	SQL
	line rebuild_log "$size" "$(time_of "SELECT projector_rebuild('totals')")" ms
done
