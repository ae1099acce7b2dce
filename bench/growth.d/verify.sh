# projector_verify of many tenants of one event each: time, and memory of the
# session.
for size in ${SIZES:-120 1200 12000}; do
	fresh
	sql -c "CALL add_projections(1, 'async')"
	fill_tenants "$size"
	sql -o /dev/null -c "SELECT projector_drain()" -c "SELECT projector_rebuild('p1')"
	line verify "$size" "$(time_of "SELECT 1 / bool_and(matches)::int FROM projector_verify('p1')")" ms
	line verify_memory "$size" "$(sql -o /dev/null -c "SELECT count(*) FROM projector_verify('p1')" \
		-c "\\o" -c "SELECT substring(pg_read_file('/proc/self/status') FROM 'RssAnon:\s*(\d+) kB')::numeric / 1024")" MB
done
