# Owns how each kind of test is run against the server of cluster.sh, from the
# copied source tree. Each function takes the names of tests or none for all.
# Sourced by test and dev.

# pg_regress fails without an expected file, so create an empty one.
# expect_something DIRECTORY SUFFIX EXPECTED-DIRECTORY
expect_something() {
	local test name
	as_server mkdir -p "$src/$3"
	for test in "$src/$1"/*."$2"; do
		name=$(basename "$test" ".$2")
		[ -e "$src/$3/$name.out" ] || as_server touch "$src/$3/$name.out"
	done
}

# Background workers may still hold the database of a previous run.
drop_database() {
	PGOPTIONS=--client-min-messages=warning \
		psql -X -q -c "DROP DATABASE IF EXISTS $1 WITH (FORCE)"
}

run_regress() {
	drop_database contrib_regression
	expect_something sql sql expected
	source_make installcheck ISOLATION= ${1+REGRESS="$*"} </dev/null ||
		{ show_file "$src/regression.diffs"; return 1; }
}

run_isolation() {
	drop_database isolation_regression
	expect_something test/isolation/specs spec test/isolation/expected
	source_make installcheck REGRESS= ${1+ISOLATION="$*"} </dev/null ||
		{ show_file "$src/output_iso/regression.diffs"; return 1; }
}

run_pgtap() {
	run_tap_files pgtap test/pgtap sql "$@"
}

# PostgreSQL::Test creates its own clusters, with the programs in PATH.
run_tap() {
	export PERL5LIB=$src/test/perl:$pgxs_dir/src/test/perl
	export PG_REGRESS=$pgxs_dir/src/test/regress/pg_regress
	export TESTDIR=$base/tap TMPDIR=$base/tap
	export TESTDATADIR=$TESTDIR/tmp_check TESTLOGDIR=$TESTDIR/tmp_check/log
	[ ! -d "$TESTDIR" ] || stop_clusters "$TESTDIR"
	as_server rm -rf "$TESTDIR"
	as_server mkdir -p "$TESTDIR"
	run_tap_files perl test/t pl "$@"
}

# run_tap_files KIND DIRECTORY SUFFIX [FILE...]: a file is given by path or name.
run_tap_files() {
	local kind=$1 dir=$2 suffix=$3 file files=()
	shift 3
	for file; do files+=("$dir/$(basename "$file" ".$suffix").$suffix"); done
	(
		cd "$src" || exit
		[ ${#files[@]} -gt 0 ] || files=("$dir"/*."$suffix")
		as_server perl test/harness/tap "$kind" "${files[@]}" </dev/null
	)
}

show_file() {
	[ ! -e "$1" ] || cat "$1"
}
