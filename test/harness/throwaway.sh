# Owns the life of a throwaway cluster: a temporary directory that is removed,
# with every process in it stopped, however the script ends.
# Sourced by test and with-cluster, after cluster.sh. If the script defines a
# function last_words, it is called at the very end.

child=

# From here on the script owns a fresh $base.
begin_throwaway() {
	# Signals wait until there is something to clean up.
	trap '' HUP INT TERM
	use_base "$(mktemp -d "$harness_tmp/projector.XXXXXX")"
	trap 'end_throwaway $?' EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	chown "$server_user" "$base"
	# The server's user may not be allowed into the current directory.
	cd "$base" || exit
}

# Run a command or function in its own process group and wait for it. So this
# shell handles a signal at once, not in the middle of a redirected function, and
# can pass it on to the whole group.
run() {
	local status=0
	set -m
	"$@" </dev/null &
	child=$!
	set +m
	wait "$child" || status=$?
	child=
	return $status
}

end_throwaway() {
	local status=$1 i
	trap - EXIT
	trap '' HUP INT TERM
	set +e
	if [ -n "$child" ]; then
		kill -TERM -- "-$child" 2>/dev/null
		for i in {1..50}; do
			kill -0 -- "-$child" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL -- "-$child" 2>/dev/null
	fi
	stop_clusters "$base"
	[ "$status" = 0 ] || report_failure
	cd /
	rm -rf "$base"
	if declare -F last_words >/dev/null; then last_words; fi
	exit "$status"
}

# Show what is needed from $base before it is removed. The functions that run the
# tests print the differences.
report_failure() {
	[ -s "$base/server.log" ] || return 0
	echo "--- end of the server log ---"
	tail -n 40 "$base/server.log"
	echo "---"
} >&2
