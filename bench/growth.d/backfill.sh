# A new projection has to read a log of so many tenants with one event each: how
# long a live projection's events wait meanwhile, and pairs read per second.
for size in ${SIZES:-300 3000 30000}; do
	fresh
	fill_tenants "$size"
	sql -c "CALL add_projections(1, 'async')"
	start_worker
	until_idle
	before=$(sql -c "SELECT extract(epoch FROM clock_timestamp())")
	sql -c "CALL add_projections(1, 'async', 2)"
	line live_lag_p95 "$size" "$(sql -F ' ' -c "CALL measure_lag(${EVENTS:-100}, '''t'' || (\$1 * 7919 % $size + 1)')" | awk '{print $2}')" ms
	until_idle
	line backfill "$size" "$(sql -c "SELECT round($size / (extract(epoch FROM clock_timestamp()) - $before))")" pairs/s
done

# Twenty at once: the worker's memory.
for size in ${PAIR_SIZES:-1000 10000 100000}; do
	fresh
	fill_tenants "$size"
	before=$(sql -c "SELECT extract(epoch FROM clock_timestamp())")
	sql -c "CALL add_projections(20, 'async')"
	start_worker
	until_idle
	line backfill_20 "$size" "$(sql -c "SELECT round(20 * $size / (extract(epoch FROM clock_timestamp()) - $before))")" pairs/s
	line backfill_20_memory "$size" "$(worker_memory)" MB
done
