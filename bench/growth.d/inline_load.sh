# So many inline appends per second over 10,000 tenants, two workers: how far an
# async projection that reads the same events falls behind.
psql -X -q -d postgres -c "ALTER SYSTEM SET projector.workers = 2" -c "SELECT pg_reload_conf()" >/dev/null
for size in ${SIZES:-100 1000}; do
	fresh
	fill_tenants 10000
	sql -c "CALL add_projections(1, 'async')" -c "CALL add_projections(1, 'inline', 2)"
	start_worker
	until_idle
	start_load "$size" "${SECONDS_EACH:-60}" 10000
	most=0
	while kill -0 "$load" 2>/dev/null; do
		n=$(sql -c "SELECT count(*) FROM projector.apply_outbox")
		[ "$n" -le "$most" ] || most=$n
		sleep 0.5
	done
	line outbox_longest "$size" "$most" rows
	until_idle
done
psql -X -q -d postgres -c "ALTER SYSTEM RESET projector.workers" -c "SELECT pg_reload_conf()" >/dev/null
