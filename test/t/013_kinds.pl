# Folds and statements in workers: memory does not grow, batches of large events
# fit, and several workers and a crash make no difference to the result.
use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;

plan skip_all => 'memory is measured by /proc' if !-r '/proc/self/status';

# Few shared buffers, because a process's memory includes those it has touched.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
shared_buffers = 4MB
max_worker_processes = 16
restart_after_crash = on
fsync = off
autovacuum = off
EOC
$node->start;
use_node($node);

# One model for each kind, and one in which all aggregates of a tenant share a
# few rows, in the order of the log.
sql(<<'EOS');
CREATE EXTENSION projector;
CREATE TABLE folded (tenant_id text, id text, n bigint NOT NULL DEFAULT 0 CHECK (n >= 0), body text, chain text DEFAULT '',
    doubled bigint GENERATED ALWAYS AS (n * 2) STORED, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE columned (LIKE folded INCLUDING ALL);
CREATE TABLE totals (tenant_id text, id text, n bigint, body text, PRIMARY KEY (tenant_id, id));
CREATE TABLE lanes (tenant_id text, lane int, n bigint NOT NULL DEFAULT 0, chain text NOT NULL DEFAULT '',
    last_event_id uuid, last_event_version bigint, last_log_seq bigint, PRIMARY KEY (tenant_id, lane));
CREATE TABLE lanes2 (LIKE lanes INCLUDING ALL);
CREATE FUNCTION fold_one(s folded, e projector.event) RETURNS folded IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF s IS NULL THEN
        s := (e.tenant_id, e.aggregate_id, 0, NULL, '', NULL, NULL, NULL);
    END IF;
    s.n := s.n + (e.payload->>'n')::bigint;
    s.body := coalesce(e.payload->>'body', s.body);
    s.chain := md5(s.chain || e.sequence_number);
    RETURN s;
END $$;
CREATE FUNCTION fold_lane(s lanes, e projector.event) RETURNS lanes IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF s IS NULL THEN
        s := (e.tenant_id, e.payload->>'lane', 0, '', NULL, NULL, NULL);
    END IF;
    s.n := s.n + 1;
    s.chain := md5(s.chain || e.log_seq);
    RETURN s;
END $$;
CREATE PROCEDURE make(size int) LANGUAGE plpgsql AS $$
DECLARE
    options jsonb := jsonb_build_object('batch_size', size, 'on_error', 'skip', 'max_attempts', 1, 'error_threshold', 1000);
BEGIN
    PERFORM projector_create('folded', fold => 'fold_one', targets => '{folded}', event_types => '{N}', options => options);
    PERFORM projector_create('columned', targets => '{columned}', event_types => '{N}', options => options, fold_columns => '{
        "n": "s.n + (e.payload->>''n'')::bigint", "body": "coalesce(e.payload->>''body'', s.body)", "chain": "md5(s.chain || e.sequence_number)"}');
    PERFORM projector_create('totals', targets => '{totals}', event_types => '{N}', options => options, statement => '
        INSERT INTO totals AS t SELECT tenant_id, aggregate_id, sum((payload->>''n'')::bigint), max(payload->>''body'') FROM batch GROUP BY 1, 2
        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + excluded.n, body = coalesce(excluded.body, t.body)');
END $$;
CREATE FUNCTION worker() RETURNS int LANGUAGE sql AS
    $$SELECT pid FROM pg_stat_activity WHERE backend_type = 'projector worker' AND datname = current_database()$$;
CREATE FUNCTION noise() RETURNS text VOLATILE LANGUAGE sql AS
    $$SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 320)$$;
CREATE VIEW idle AS SELECT NOT EXISTS (SELECT FROM projector.apply_outbox) AS idle;
EOS

# ---- memory, batch after batch ----

sub status_of
{
	my ($pid, $field) = @_;
	my ($kb) = slurp_file("/proc/$pid/status") =~ /^$field:\s+(\d+) kB/m;
	return $kb;
}

# The total size of a process's memory contexts, in bytes.
sub contexts_of
{
	my ($pid) = @_;
	my $offset = -s $node->logfile;

	sql("SELECT pg_log_backend_memory_contexts($pid)");
	for (1 .. 100)
	{
		my $log = slurp_file($node->logfile, $offset);

		return $1 if $log =~ /Grand total: (\d+) bytes in/;
		sql('SELECT pg_sleep(0.1)');
	}
	return -1;
}

# Events of 20 aggregates; every 50th is wrong and skipped.
sub append_many
{
	my ($n) = @_;
	return sql(<<"EOS");
DO \$\$
BEGIN
    FOR i IN 1 .. $n LOOP
        PERFORM projector_append('acme', 'item-' || i % 20, 'N',
            jsonb_build_object('n', CASE WHEN i % 50 = 7 THEN 'many' ELSE '1' END, 'body', CASE WHEN i % 3 = 0 THEN repeat(md5(i::text), 30) END));
    END LOOP;
END \$\$
EOS
}

sql('CALL make(10)');
append_many(5000);
comes_true('idle FROM idle', 'five hundred batches of each kind are applied');
# and the chores have run once, so that their plans are cached: nothing else moves
# a cursor past an event that no projection wants
sql(q{SELECT projector_append('acme', 'other', 'Other', '{}')});
comes_true('bool_and(last_log_seq >= (SELECT max(log_seq) FROM projector.events)) FROM projector.projection_cursors',
	'cursors have followed');
my $pid = sql('SELECT worker()');
my $before = contexts_of($pid);
my $rss_before = status_of($pid, 'RssAnon');
cmp_ok($before, '>', 0, 'the worker tells about its memory');
append_many(5000);
comes_true('idle FROM idle', 'five hundred more are');
is(sql('SELECT worker()'), $pid, 'by the same worker');
my $after = contexts_of($pid);
my $rss_after = status_of($pid, 'RssAnon');
note("memory contexts: $before, then $after bytes; resident: $rss_before, then $rss_after kB");
cmp_ok($after - $before, '<', 100_000, 'its memory contexts have not grown');
cmp_ok($rss_after - $rss_before, '<', 4_000, 'nor has the process');
is( sql(<<'EOS'),
WITH good AS (SELECT * FROM projector.events WHERE payload->>'n' = '1')
SELECT (SELECT sum(n) FROM folded) = count(*), (SELECT sum(n) FROM columned) = count(*), (SELECT sum(n) FROM totals) = count(*),
    (SELECT count(*) FROM folded f JOIN columned c USING (tenant_id, id, n, body, chain, doubled, last_event_id, last_event_version)),
    (SELECT count(DISTINCT log_seq) FROM projector.failures WHERE resolution = 'skipped')
FROM good
EOS
	't|t|t|20|200', 'and all is applied, but for the wrong ones');

# A row that grows with every event of one batch.
sql(<<'EOS');
CREATE TABLE lists (tenant_id text, id text, list text NOT NULL DEFAULT '', last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
ALTER TABLE lists ADD CHECK (md5(list) <> 'x');
SELECT projector_create('lists', targets => '{lists}', event_types => '{L}', fold_columns => '{"list": "s.list || e.sequence_number || '' 0123456789012345678901234567890 ''"}',
    options => '{"batch_size": 5000}');
SELECT projector_pause('lists');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) SELECT 'acme', 'list', i, 'L', '{}' FROM generate_series(1, 5000) i ORDER BY i;
EOS
$before = status_of($pid, 'VmRSS');
sql("SELECT projector_resume('lists')");
comes_true('idle FROM idle', 'five thousand events of one row are applied');
note('a growing row: from ' . $before . ' to ' . status_of($pid, 'VmHWM') . ' kB');
cmp_ok(status_of($pid, 'VmHWM') - $before, '<', 60_000, 'without a copy of the row for each');
sql("SELECT projector_drop(p) FROM unnest('{folded,columned,totals,lists}'::text[]) p");

# ---- a batch of large events ----

sql('TRUNCATE folded, columned, totals');
sql('CALL make(5000)');
sql('SELECT projector_pause(name) FROM projector.projections');
# the events so far are in their own batch
sql("SELECT projector_set_mode(name, 'async') FROM projector.projections");
sql('SELECT projector_resume(name) FROM projector.projections');
comes_true('NOT EXISTS (SELECT FROM projector.projection_cursors WHERE state <> \'live\') AND (SELECT count(*) > 0 FROM folded)', 'the log has been read');
comes_true('idle FROM idle', 'and nothing waits');
sql('SELECT projector_pause(name) FROM projector.projections');
sql(<<'EOS');
SET projector.autostart = off;
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'large', 'item-' || a, n, 'N', jsonb_build_object('n', '1', 'body', noise())
    FROM generate_series(1, 100) n, generate_series(1, 50) a ORDER BY a, n;
EOS
for my $kind ('folded', 'columned', 'totals')
{
	sql('SELECT projector_worker_stop()');
	comes_true('worker() IS NULL', 'the worker is gone');
	sql('SELECT projector_worker_start()');
	comes_true('worker() IS NOT NULL', 'and another comes');
	sql('SELECT pg_sleep(1)');
	$pid = sql('SELECT worker()');
	$before = status_of($pid, 'VmRSS');
	sql("SELECT projector_resume('$kind')");
	comes_true("NOT EXISTS (SELECT FROM projector.outbox WHERE projection_name = '$kind')", "$kind: 5000 large events are applied");
	is(sql('SELECT worker()'), $pid, 'by the same worker');
	my $peak = status_of($pid, 'VmHWM');
	note("$kind: from $before to $peak kB");
	cmp_ok($peak - $before, '<', 150_000, "$kind: with less than 150 MB");
	# 5,000 events of 10 kB are 51 MB, and a batch ends at 16
	is(sql("SELECT count(DISTINCT xmin::text) FROM $kind WHERE tenant_id = 'large'"), '4', "$kind: in batches of 16 MB");
	is(sql("SELECT sum(n), count(*), min(length(body)), max(length(body)) FROM $kind WHERE tenant_id = 'large'"),
		'5000|50|10240|10240', "$kind: correctly");
}
is( sql(<<'EOS'), '50', 'all the same');
SELECT count(*) FROM folded f JOIN columned c USING (tenant_id, id, n, body, chain, doubled, last_event_id, last_event_version)
WHERE tenant_id = 'large' AND body = (SELECT payload->>'body' FROM projector.events e WHERE (e.tenant_id, aggregate_id, sequence_number) = (f.tenant_id, f.id, 100))
EOS
sql("SELECT projector_drop(p) FROM unnest('{folded,columned,totals}'::text[]) p");

# ---- several workers, several aggregates in one row, and a crash ----

$node->append_conf('postgresql.conf', 'projector.workers = 3');
$node->restart;
sql('TRUNCATE folded, columned, totals');
sql(<<'EOS');
SELECT projector_create('lanes', fold => 'fold_lane', targets => '{lanes}', event_types => '{Ran}', key => '(payload->>''lane'')::int',
    options => '{"batch_size": 7}');
SELECT projector_create('lanes2', targets => '{lanes2}', event_types => '{Ran}', key => '(payload->>''lane'')::int', mode => 'follow',
    fold_columns => '{"n": "s.n + 1", "chain": "md5(s.chain || e.log_seq)"}', options => '{"batch_size": 20}');
CREATE FUNCTION next_chain(chain text, n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT md5(chain || n)';
CREATE AGGREGATE chain(bigint) (SFUNC = next_chain, STYPE = text, INITCOND = '');
CREATE VIEW oracle AS
    SELECT tenant_id::text, (payload->>'lane')::int AS lane, count(*) AS n, chain(log_seq ORDER BY log_seq) AS chain,
        (array_agg(event_id ORDER BY log_seq DESC))[1] AS last_event_id, (array_agg(sequence_number ORDER BY log_seq DESC))[1] AS last_event_version,
        max(log_seq) AS last_log_seq
    FROM projector.events WHERE event_type = 'Ran' AND payload ? 'lane' GROUP BY 1, 2;
CREATE PROCEDURE run(who int, n int) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. n LOOP
        PERFORM projector_append('tenant-' || (random() * 9)::int, 'runner-' || (random() * 20)::int, 'Ran',
            CASE WHEN i % 11 = 0 THEN '{}' ELSE jsonb_build_object('lane', (random() * 2)::int) END);
        IF i % 3 > 0 THEN
            COMMIT;
        END IF;
    END LOOP;
END $$;
EOS
comes_true("count(*) = 3 FROM pg_stat_activity WHERE backend_type = 'projector worker' AND datname = current_database()", 'three workers are there');

sub run_all
{
	my ($n) = @_;
	return map { IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "CALL run($_, $n)" ], '>', \my $out, '2>', \my $err) } 1 .. 3;
}

sub all_is_well
{
	my ($name) = @_;
	comes_true("idle AND NOT EXISTS (SELECT FROM projector.projection_cursors c WHERE last_log_seq < (SELECT max(log_seq) FROM projector.events e
		WHERE event_type = 'Ran' AND e.tenant_id = c.tenant_id)) FROM idle", "$name: everything is applied");
	is(sql('SELECT count(*) FROM (TABLE lanes EXCEPT ALL TABLE oracle) d'), '0', "$name: the rows are what the log says");
	is(sql('SELECT count(*) FROM (TABLE oracle EXCEPT ALL TABLE lanes) d'), '0', "$name: all of them");
	is(sql('SELECT count(*) FROM (TABLE lanes2 EXCEPT ALL TABLE oracle) d'), '0', "$name: also by expressions");
	is(sql('SELECT count(*) FROM (TABLE oracle EXCEPT ALL TABLE lanes2) d'), '0', "$name: all of them");
	is(sql('SELECT count(*) FROM projector.failures WHERE resolved_at IS NULL'), '0', "$name: without an error");
	return;
}
my @runs = run_all(600);
IPC::Run::finish($_) for @runs;
all_is_well('three workers');
ok(slurp_file($node->logfile) !~ /terminated by signal|PANIC|TRAP/, 'nothing has crashed');

# in the middle of a slow batch
sql(<<'EOS');
CREATE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.3); RETURN new; END';
CREATE TRIGGER linger BEFORE UPDATE ON lanes FOR EACH ROW EXECUTE FUNCTION linger();
EOS
@runs = run_all(50);
ok( $node->poll_query_until('postgres',
		"SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'projector worker' AND wait_event = 'PgSleep'"),
	'a worker is in the middle of a batch');
$pid = sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'projector worker' AND wait_event = 'PgSleep' LIMIT 1");
kill 'KILL', $pid;
IPC::Run::finish($_) for @runs;
ok($node->poll_query_until('postgres', 'SELECT true'), 'the server is back');
sql('DROP TRIGGER linger ON lanes');
@runs = run_all(100);
IPC::Run::finish($_) for @runs;
all_is_well('after a crash');

my $log = slurp_file($node->logfile);
ok($log !~ /leak|not closed|PANIC|TRAP|still referenced/, 'nothing has leaked');
is(scalar(() = $log =~ /terminated by signal/g), 1, 'and nothing crashed but what was killed');
$node->stop;
done_testing();
