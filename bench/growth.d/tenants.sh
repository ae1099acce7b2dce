# Many tenants, five projections: a new tenant's first event, a load on known
# tenants, a drain with nothing to do, the worker's memory.
for size in ${SIZES:-1000 10000 100000}; do
	fresh
	fill_tenants "$size"
	sql -c "CALL add_projections(5, 'async')"
	start_worker
	until_idle
	line new_tenant_p95 "$size" "$(sql -F ' ' -c "CALL measure_lag(20, '''new'' || \$1')" | awk '{print $2}')" ms
	start_load "${RATE:-580}" "${SECONDS_EACH:-30}" "$size"
	line loaded_lag_p95 "$size" "$(sql -F ' ' -c "CALL measure_lag(200, '''t'' || (\$1 * 7919 % $size + 1)')" | awk '{print $2}')" ms
	wait "$load"
	until_idle
	line idle_drain "$size" "$(time_of "SELECT projector_drain()")" ms
	line worker_memory "$size" "$(worker_memory)" MB
done
