# Memory does not grow with the number of wide rows, nor with the number of tenants: every operation needs at most
# 64 MB and four times the largest row.  This is the peak of the process, minus what it had before.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;

plan skip_all => 'there is no /proc/self/status' if !-r '/proc/self/status';

my $ROWS = 120;
my $TENANTS = 600;
my $LIMIT = (64 + 4) * 1024;    # kB; a row has 1 MB

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.enabled = off
shared_buffers = 16MB
work_mem = 4MB
autovacuum = off
max_wal_size = 4GB
fsync = off
jit = off
EOC
$node->start;
use_node($node);

my $peak = q{(SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s+(\d+)')::int)};

# Run something in a session of its own, and return how much memory it needed.
sub costs
{
	my ($label, $command, $expected, $limit) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($before, $result, $after) = split /\n/, sql("SELECT count(*) FROM wide WHERE id = 'nobody'; SELECT projector_drain('none') \\g /dev/null\nSELECT $peak; $command; SELECT $peak") =~ s/\A0\n//r;
	is($result, $expected, "$label: it is done") if defined $expected;
	cmp_ok($after - $before, '<', $limit // $LIMIT, sprintf('%s: memory, %d MB', $label, ($after - $before) / 1024));
	return;
}

sql(<<'EOS');
CREATE EXTENSION projector;
CREATE TABLE wide (tenant_id text, id text, n int NOT NULL DEFAULT 0, doc jsonb, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE wide_function (LIKE wide INCLUDING ALL);
CREATE TABLE wide_handler (LIKE wide INCLUDING ALL);
CREATE TABLE narrow (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE nothing (tenant_id text);
CREATE FUNCTION wide_doc(n int) RETURNS jsonb IMMUTABLE LANGUAGE sql AS $$SELECT jsonb_build_object('n', n, 'x', repeat('a', 1000000))$$;
CREATE FUNCTION fold_wide(s wide_function, e projector.event) RETURNS wide_function IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	s.tenant_id := e.tenant_id;
	s.id := e.aggregate_id;
	s.n := coalesce(s.n, 0) + 1;
	s.doc := wide_doc(s.n);
	RETURN s;
END $$;
CREATE FUNCTION handle_wide(e projector.event) RETURNS void LANGUAGE sql AS $$
	INSERT INTO wide_handler AS w (tenant_id, id, n, doc) VALUES (e.tenant_id, e.aggregate_id, 1, wide_doc(1)) ON CONFLICT (tenant_id, id) DO UPDATE SET n = w.n + 1, doc = wide_doc(w.n + 1)
$$;
SELECT projector_create('none', targets => '{nothing}', statement => 'INSERT INTO nothing SELECT tenant_id FROM batch', event_types => '{None}');
SELECT projector_create('wide', targets => '{wide}', fold_columns => '{"n": "s.n + 1", "doc": "wide_doc(s.n + 1)"}', event_types => '{Wide}');
SELECT projector_create('wide_function', targets => '{wide_function}', fold => 'fold_wide', event_types => '{Wide}');
SELECT projector_create('wide_handler', targets => '{wide_handler}', handler => 'handle_wide', event_types => '{Wide}');
SELECT projector_create('narrow', targets => '{narrow}', fold_columns => '{"n": "s.n + 1"}', event_types => '{Narrow}');
EOS
sql("SELECT count(projector_append('t', 'id-' || i, 'Wide', '{}')) FROM generate_series(1, $ROWS) i");
foreach my $name (qw(wide wide_function wide_handler))
{
	costs("apply, $name", "SELECT projector_drain('$name')", $ROWS);
	is(sql("SELECT count(*), min(pg_column_size(doc)) < 100000, min(length(doc::text)) > 1000000 FROM $name"), "$ROWS|t|t", "$name: rows are wide, and small where they are");
	costs("digest, $name", "SELECT length(projector_digest('$name', 't'))", 32);
	costs("verify, $name", "SELECT matches FROM projector_verify('$name')", 't');
	costs("rebuild, $name", "SELECT projector_rebuild('$name')", $ROWS);
}
costs('check of digests', 'SELECT bool_and(matches), count(*) FROM projector_check_digests()', 't|2');

# Existing rows, one more event each.
sql("SELECT count(projector_append('t', 'id-' || i, 'Wide', '{}')) FROM generate_series(1, $ROWS) i");
costs("apply to wide rows, $_", "SELECT projector_drain('$_')", $ROWS) foreach qw(wide wide_function);
costs('preview', q{SELECT count(*) FROM projector_preview('wide', '{"fold_columns": {"n": "0"}}', 't', max_rows => 5)}, 5);

# Many events of one row.
sql("SELECT count(projector_append('t', 'one', 'Wide', '{}')) FROM generate_series(1, $ROWS) i");
costs('apply to one row', q{SELECT projector_drain('wide')}, $ROWS);
costs('explain', q{SELECT count(*), max((state->>'n')::int) FROM projector_explain('wide', 't', 'one')}, "$ROWS|$ROWS");

# Wide events: appended, applied inline, and read again.
sql(<<'EOS');
CREATE TABLE docs (LIKE wide INCLUDING ALL);
SELECT projector_create('docs', targets => '{docs}', fold_columns => '{"n": "s.n + 1", "doc": "e.payload"}', event_types => '{Doc}', mode => 'inline');
EOS
sql(q{SELECT projector_drain('docs')});
costs('capture and inline', "INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) SELECT 'd', 'doc-' || i, 1, 'Doc', wide_doc(i) FROM generate_series(1, $ROWS) i; SELECT count(*) FROM docs", $ROWS);
costs('rebuild from wide events', q{SELECT projector_rebuild('docs')}, $ROWS);
costs('verify from wide events', q{SELECT matches FROM projector_verify('docs', 'd')}, 't');

# A batch ends at 16 MB, wherever its events come from.
foreach my $mode (qw(async follow))
{
	my $name = "docs_$mode";
	sql(qq{CREATE TABLE $name (LIKE docs INCLUDING ALL); SELECT projector_create('$name', targets => '{$name}', fold_columns => '{"n": "s.n + 1"}', event_types => '{New}', mode => '$mode')});
	sql('SELECT projector_drain()');
}
sql("INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) SELECT 'd', 'new-' || i % 30, i / 30 + 1, 'New', wide_doc(i) FROM generate_series(0, $ROWS - 1) i");
foreach my $mode (qw(async follow))
{
	costs("a backlog of wide events, $mode", "SELECT projector_drain('docs_$mode')", $ROWS);
	is(sql("SELECT count(*), sum(n) FROM docs_$mode"), "30|$ROWS", "a backlog of wide events, $mode: all are applied");
	cmp_ok(sql("SELECT batch_count FROM projector.projection_cursors JOIN projector.projections USING (projection_id) WHERE name = 'docs_$mode' AND tenant_id = 'd'"), '>=', $ROWS / 17,
		"a backlog of wide events, $mode: in several batches");
}

# A run in the background: build, merge and end.
sql(q{UPDATE wide SET n = 0});
$node->append_conf('postgresql.conf', "projector.enabled = on\n");
$node->reload;
my $worker = q{SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'projector%worker%' LIMIT 1};
ok($node->poll_query_until('postgres', "SELECT count(*) > 0 FROM ($worker) w"), 'there is a worker');
my $pid = sql($worker);
my $of_worker = "SELECT substring(pg_read_file('/proc/$pid/status') FROM 'VmHWM:\\s+(\\d+)')::int";
my $before = sql($of_worker);
my $run = sql(q{SELECT projector_start_run('wide', tenant_id => 't')});
ok($node->poll_query_until('postgres', "SELECT state NOT IN ('queued', 'running') FROM projector.runs WHERE id = $run"), 'a run ends');
is(sql("SELECT state, error_message FROM projector.runs WHERE id = $run"), 'completed|', 'it is completed');
my $after = sql($of_worker);
cmp_ok($after - $before, '<', $LIMIT, sprintf('run: memory, %d MB', ($after - $before) / 1024));
is(sql("SELECT count(*) FROM wide WHERE n = 0"), '0', 'the run has repaired the rows');
$node->append_conf('postgresql.conf', "projector.enabled = off\n");
$node->reload;

# Many tenants: one table for all of them, and memory for one.
sql("SELECT count(projector_append('tenant-' || i, 'a', 'Narrow', '{}')) FROM generate_series(1, $TENANTS) i");
ok($node->poll_query_until('postgres', "SELECT projector_drain('narrow') IS NOT NULL AND count(*) = $TENANTS FROM narrow"), 'all tenants have a row');
costs('verify of many tenants', q{SELECT count(*), bool_and(matches) FROM projector_verify('narrow')}, ($TENANTS + 2) . '|t', 16 * 1024);
costs('rebuild of many tenants', q{SELECT projector_rebuild('narrow')}, $TENANTS, 16 * 1024);
costs('digests of many tenants', q{SELECT count(*), bool_and(matches) FROM projector_check_digests('narrow')}, "$TENANTS|t", 16 * 1024);
costs('catch-up of many tenants', q{SELECT projector_catch_up('narrow')}, 0, 16 * 1024);
cmp_ok(sql(q{BEGIN; SELECT count(*) FROM projector_verify('narrow') \g /dev/null
	SELECT pg_stat_get_xact_tuples_inserted('pg_class'::regclass)}), '<', 20, 'verify of many tenants: no table for each');

done_testing();
