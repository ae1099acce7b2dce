# Owns the private installation and the servers on it: where they live, which
# OS user runs them, how they start and how they stop. Sourced by the other
# scripts, after the packages are installed. Nothing outside $base is written.
#
# PostgreSQL (before 18) loads extensions only from its own installation, so that is
# copied to $base/install, and the extension is installed there. The server
# programs find their share and lib directories relative to themselves.

. "$(dirname "${BASH_SOURCE[0]}")/source.sh"

# Not $TMPDIR: as root it may be closed to the server's user, and socket paths
# are limited to about a hundred bytes.
harness_tmp=${HARNESS_TMP:-/tmp}

# Debian's first, because PATH may have another major version.
if [ -z "${PG_CONFIG:-}" ]; then
	PG_CONFIG=/usr/lib/postgresql/${PG:-15}/bin/pg_config
	[ -x "$PG_CONFIG" ] || PG_CONFIG=pg_config
	case $("$PG_CONFIG" --version) in
	"PostgreSQL ${PG:-15}"[!0-9]*) ;;
	*)
		echo "$PG_CONFIG is not that of PostgreSQL ${PG:-15}" >&2
		exit 1
		;;
	esac
fi
export PG_CONFIG
pg_bindir=$("$PG_CONFIG" --bindir)
pg_pkglibdir=$("$PG_CONFIG" --pkglibdir)
pg_sharedir=$("$PG_CONFIG" --sharedir)
pgxs_dir=$(cd "$(dirname "$("$PG_CONFIG" --pgxs)")/../.." && pwd)

# The server refuses to run as root; then it runs as this user.
if [ "$(id -u)" = 0 ]; then
	server_user=postgres
else
	server_user=$(id -un)
fi

# Run a command as the server's user. setpriv executes it in place, so that
# signals reach the command itself.
as_server() {
	if [ "$(id -u)" = 0 ]; then
		HOME=$base setpriv --reuid="$server_user" --regid="$server_user" \
			--init-groups -- "$@"
	else
		"$@"
	fi
}

# use_base DIRECTORY: everything happens under it from now on.
use_base() {
	base=$1
	src=$base/src
	bin=$base/install$pg_bindir
	library=$base/install$pg_pkglibdir/projector.so
	if [ ${#base} -gt 80 ]; then
		echo "$base is too long a path for a Unix socket; set HARNESS_TMP" >&2
		exit 1
	fi
	unset PGDATA PGSERVICE PGSERVICEFILE PGPASSFILE PGOPTIONS PGHOSTADDR \
		PGSSLMODE PGCLIENTENCODING PGTZ PGDATESTYLE
	unset LC_ALL LANGUAGE MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL DESTDIR
	export LANG=C.UTF-8
	export PGHOST=$base PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
	export PATH=$bin:$PATH
}

# Copy the server installation, without the files that only builds need.
copy_installation() {
	local dir
	for dir in "$pg_bindir" "$pg_pkglibdir" "$pg_sharedir"; do
		as_server mkdir -p "$base/install$dir"
		tar -C "$dir" --exclude=./pgxs -cf - . |
			as_server tar -C "$base/install$dir" --no-same-owner -xf -
	done
}

# Copy the source tree to $src, which the server's user can always read. A file is
# written only if its content differs, and objects built there stay, so make
# rebuilds only what changed.
copy_source() {
	local incoming=$base/incoming
	as_server rm -rf "$incoming"
	as_server mkdir -p "$incoming" "$src"
	pack_source |
		as_server tar -C "$incoming" --no-same-owner -xf -
	# shellcheck disable=SC2016
	as_server bash -euc '
		cd "$2"
		find . -type f ! -name "*.o" ! -path "./projector--*.sql" \
			! -path "./results/*" ! -path "./output_iso/*" -print0 |
		while IFS= read -r -d "" file; do
			[ -e "$1/$file" ] || rm -f "$file"
		done
		cd "$1"
		find . -type f -print0 |
		while IFS= read -r -d "" file; do
			cmp -s "$file" "$2/$file" && continue
			mkdir -p "$2/${file%/*}"
			cp --preserve=mode "$file" "$2/$file"
		done' copy_source "$incoming" "$src"
	as_server rm -rf "$incoming"
}

# make in the copied tree. Bitcode of our functions is not built: the server then
# calls them instead of inlining them.
source_make() {
	as_server make -C "$src" --no-print-directory -s with_llvm=no "$@"
}

# Build and install the extension into the private installation; arguments go
# to make. Quiet unless there are warnings.
install_extension() {
	if ! source_make install DESTDIR="$base/install" "$@" >"$base/build.log" 2>&1; then
		cat "$base/build.log" >&2
		echo "the extension does not build" >&2
		return 1
	fi
	grep -A8 'warning:' "$base/build.log" >&2 || true
}

# Create the cluster. Arguments are further lines for postgresql.conf.
create_cluster() {
	if ! as_server "$bin/initdb" -D "$base/data" -U postgres -A trust -E UTF8 \
		--locale=C.UTF-8 --no-sync >"$base/initdb.log" 2>&1; then
		cat "$base/initdb.log" >&2
		return 1
	fi
	{
		echo "listen_addresses = ''"
		echo "unix_socket_directories = '$base'"
		echo "port = $PGPORT"
		echo "max_prepared_transactions = 10"
		[ ! -e "$library" ] || echo "shared_preload_libraries = 'projector'"
		[ $# = 0 ] || printf '%s\n' "$@"
	} | as_server tee -a "$base/data/postgresql.conf" >/dev/null
}

cluster_is_up() {
	as_server "$bin/pg_ctl" -D "$base/data" status >/dev/null 2>&1
}

start_cluster() {
	if ! as_server "$bin/pg_ctl" -D "$base/data" -l "$base/server.log" -w -s start; then
		tail -n 30 "$base/server.log" >&2
		return 1
	fi
}

# Wait until the server accepts connections, even if it is recovering from a crash.
ensure_cluster() {
	local i
	cluster_is_up || start_cluster || return 1
	for i in {1..300}; do
		"$bin/pg_isready" -q && return
		sleep 0.1
	done
	echo "the server does not accept connections" >&2
	return 1
}

# stop_clusters DIRECTORY: stop every server whose data directory is under it,
# including those that a TAP test has left.
stop_clusters() {
	local pidfile
	find "$1" -name postmaster.pid 2>/dev/null | while IFS= read -r pidfile; do
		as_server "$bin/pg_ctl" -D "${pidfile%/*}" -m immediate -s stop \
			</dev/null >/dev/null 2>&1 || true
	done
}
