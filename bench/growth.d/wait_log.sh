# Sessions that wait in projector_wait_log: appends per second meanwhile, and the
# CPU time that the waiting sessions use.  They wait for a position that is never
# reached, of pairs that get events all the time.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/append.sql" <<'SQL'
\set a random(1, 1000)
SELECT projector_append('t' || :client_id % 4, 'a' || :client_id || '-' || :a, 'Received', '{"qty": 1}');
SQL
echo "SELECT projector_wait_log('p1', 't' || :client_id % 4, 1000000000, '1 hour');" >"$work/wait.sql"

# The default of 100 connections is not enough.
if [ "$(psql -X -At -d postgres -c 'SHOW max_connections')" -lt 600 ]; then
	psql -X -q -d postgres -c "ALTER SYSTEM SET max_connections = 600"
	"$(pg_config --bindir)/pg_ctl" -D "$(psql -X -At -d postgres -c 'SHOW data_directory')" -w -s -m fast restart >/dev/null
fi

waiting="FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%projector_wait_log%' AND pid <> pg_backend_pid()"
waiting_cpu() { # milliseconds
	local ticks=0 pid
	for pid in $(sql -c "SELECT pid $waiting"); do
		ticks=$((ticks + $(awk '{print $14 + $15}' "/proc/$pid/stat")))
	done
	echo $((ticks * 10))
}

fresh
sql -c "CALL add_projections(1, 'async')"
start_worker
pgbench -n -c 4 -j 2 -T 3 -f "$work/append.sql" "$database" >/dev/null 2>&1
for size in ${SIZES:-1 50 500}; do
	pgbench -n -c "$size" -t 1 -f "$work/wait.sql" "$database" >/dev/null 2>&1 &
	until_true "SELECT count(*) = $size $waiting AND wait_event_type = 'Extension'"
	cpu=$(waiting_cpu)
	rate=$(pgbench -n -c 4 -j 2 -T "${SECONDS_EACH:-10}" -f "$work/append.sql" "$database" 2>/dev/null | awk '/^tps/ {print $3}')
	line wait_log_appends "$size" "$rate" per_s
	line wait_log_ratio "$size" "$(awk -v rate="$rate" -v alone="${alone:=$rate}" 'BEGIN {print rate / alone}')" to_one
	line wait_log_cpu "$size" "$((($(waiting_cpu) - cpu) / ${SECONDS_EACH:-10}))" ms_per_s
	sql -o /dev/null -c "SELECT pg_terminate_backend(pid) $waiting"
	wait
done
