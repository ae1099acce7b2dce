# Appends in another database: the CPU time that an idle database's worker uses
# meanwhile, in percent of a core.
for size in ${SIZES:-48 480}; do
	database=growth_busy
	fresh
	fill_tenants 100
	sql -c "CALL add_projections(1, 'async')"
	start_worker
	until_idle
	database=growth
	fresh
	fill_tenants 1000
	sql -c "CALL add_projections(5, 'async')"
	start_worker
	until_idle
	before=$(worker_cpu)
	database=growth_busy start_load "$size" 10 100
	wait "$load"
	line idle_worker_cpu "$size" "$((($(worker_cpu) - before) / 100))" percent
	psql -X -q -d postgres -c "DROP DATABASE growth_busy WITH (FORCE)"
done
