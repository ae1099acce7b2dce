# Inline appends leave a row each, which a worker adds up: how long that takes,
# and the lag of another projection meanwhile.
for size in ${SIZES:-1000 10000 100000}; do
	fresh
	tenants=$((size * 10 / 23))
	fill_tenants "$tenants"
	sql -c "CALL add_projections(1, 'async')" -c "CALL add_projections(1, 'inline', 2)"
	sql -o /dev/null -c "SELECT projector_alter('p1', '{\"event_types\": [\"Received\"]}')"
	start_worker
	until_idle
	sql -o /dev/null -c "SELECT projector_worker_stop()"
	sql -o /dev/null -c "SET synchronous_commit = off" -c "DO \$\$ BEGIN
		FOR i IN 1 .. $size LOOP
			PERFORM projector_append('t' || (i * 7919::bigint % $tenants + 1), 'd' || i, 'Counted', '{\"qty\": 1}');
			COMMIT;
		END LOOP; END \$\$"
	before=$(sql -c "SELECT extract(epoch FROM clock_timestamp())")
	start_worker
	line lag_while_adding_up_p95 "$size" "$(sql -F ' ' -c "CALL measure_lag(20, '''new'' || \$1')" | awk '{print $2}')" ms
	until_true "SELECT NOT EXISTS (SELECT FROM projector.projection_deltas)"
	line adding_up_cpu "$size" "$(worker_cpu)" ms
	line adding_up_elapsed "$size" "$(sql -c "SELECT round(((extract(epoch FROM clock_timestamp()) - $before) * 1000)::numeric)")" ms
done
