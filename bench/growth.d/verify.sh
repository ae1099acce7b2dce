# projector_verify of many tenants of one event each, and of ten: time, and memory of
# the session.
measure_verify() { # name, tenants, events of each
	fresh
	sql -c "CALL add_projections(1, 'async')"
	fill_tenants "$2" "$3"
	sql -o /dev/null -c "SELECT projector_drain()" -c "SELECT projector_rebuild('p1')"
	line "$1" "$2" "$(time_of "SELECT 1 / bool_and(matches)::int FROM projector_verify('p1')")" ms
	line "$1_memory" "$2" "$(sql -o /dev/null -c "SELECT count(*) FROM projector_verify('p1')" \
		-c "\\o" -c "SELECT substring(pg_read_file('/proc/self/status') FROM 'RssAnon:\s*(\d+) kB')::numeric / 1024")" MB
}
for size in ${SIZES:-120 1200 12000}; do measure_verify verify "$size" 1; done
for size in ${TENS:-50 500 5000}; do measure_verify verify_ten "$size" 10; done
