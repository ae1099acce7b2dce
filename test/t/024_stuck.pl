# What must not stop other work: an open transaction with a rebuild, a handler
# that ignores its timeout or crashes the server, dropping the extension or the
# database while a worker is busy.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;
use IPC::Run;
use Time::HiRes qw(time);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
restart_after_crash = on
fsync = off
log_min_messages = info
EOC
$node->start;
use_node($node);

my $setup = <<'EOS';
CREATE EXTENSION projector;
CREATE TABLE counts (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, id));
CREATE TABLE inline_counts (LIKE counts INCLUDING ALL);
SELECT projector_create('async', fold_columns => '{"n": "s.n+1"}', targets => '{counts}');
SELECT projector_create('inline', fold_columns => '{"n": "s.n+1"}', targets => '{inline_counts}', mode => 'inline');
EOS
sql($setup);

# Adding up deltas of inline appends never waits
sql(q{SELECT projector_append('acme', 'a', 'E', '{}')});
comes_true(q{SELECT applied_count = 1 FROM projector.projection_cursors JOIN projector.projections p USING (projection_id)
    WHERE p.name = 'inline' AND tenant_id = 'acme'}, 'what was applied inline is added up');
my ($in, $out, $err) = ('', '', '');
my $psql = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], \$in, \$out, \$err,
	IPC::Run::timeout(10 * $PostgreSQL::Test::Utils::timeout_default));
sub say_to
{
	my ($query) = @_;
	$out = '';
	$in .= "$query;\n\\echo DONE\n";
	$psql->pump until $out =~ /DONE/;
	return;
}
sql(q{SELECT projector_worker_stop()});
comes_true(q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'projector worker'}, 'no worker runs');
sql(q{SELECT projector_append('acme', 'a', 'E', '{}')});
is(sql(q{SELECT count(*) FROM projector.projection_deltas WHERE tenant_id = 'acme'}), 1, 'something is to be added up');
say_to(q{BEGIN});
say_to(q{SELECT projector_rebuild('inline', 'acme', 'a')});
sql(q{SELECT projector_worker_start()});
sql(q{SELECT projector_append('acme', 'b', 'E', '{}'), projector_append('globex', 'a', 'E', '{}')});
comes_true(q{SELECT count(*) = 1 FROM counts WHERE tenant_id = 'globex'},
	'an open transaction with a rebuild does not stop the worker for another tenant');
comes_true(q{SELECT applied_count = 1 FROM projector.projection_cursors JOIN projector.projections p USING (projection_id)
    WHERE p.name = 'inline' AND tenant_id = 'globex'}, 'nor the adding up');
sql(q{SELECT projector_append('globex', 'c', 'E', '{}')});
comes_true(q{SELECT count(*) = 2 FROM counts WHERE tenant_id = 'globex'}, 'and it goes on');
is(sql(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'projector worker' AND wait_event_type = 'Lock'}),
	0, 'the worker waits for no lock');
say_to(q{COMMIT});
comes_true(q{SELECT count(*) = 2 FROM counts WHERE tenant_id = 'acme'}, 'after the rebuild all is applied');

# The same for a drain that is left open.
say_to(q{BEGIN});
say_to(q{SELECT projector_drain()});
sql(q{SELECT projector_append(t, 'd', 'E', '{}') FROM unnest('{t1,t2,t3}'::text[]) t});
comes_true(q{SELECT count(*) = 3 FROM counts WHERE tenant_id LIKE 't_'}, 'nor does a drain that is left open');
is(sql(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'projector worker' AND wait_event_type = 'Lock'}),
	0, 'the worker waits for no lock');
say_to(q{COMMIT});

# Adding up is not quadratic: 10,000 rows of 5,000 tenants.
sql(q{SELECT projector_worker_stop()});
comes_true(q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'projector worker'}, 'workers stop');
sql(q{INSERT INTO projector.projection_cursors (projection_id, tenant_id)
    SELECT projection_id, 'x' || n FROM projector.projections, generate_series(1, 5000) n WHERE name = 'inline';
    INSERT INTO projector.projection_deltas
    SELECT projection_id, 'x' || n % 5000 + 1, 1, 0, 0, '0', now(), NULL, 0, 1, 0
    FROM projector.projections, generate_series(1, 10000) n WHERE name = 'inline'});
my $start = time;
sql(q{SELECT projector_worker_start()});
comes_true(q{SELECT count(*) = 0 FROM projector.projection_deltas}, 'deltas of 5,000 tenants are added up');
cmp_ok(time - $start, '<', 8, 'and it is not quadratic');
is(sql(q{SELECT min(applied_count), max(applied_count) FROM projector.projection_cursors WHERE tenant_id LIKE 'x%'}),
	'2|2', 'each once');

# A handler that ignores its timeout
sql(<<'EOS');
CREATE FUNCTION deaf(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF e.payload ? 'deaf' THEN
        LOOP
            BEGIN
                PERFORM pg_sleep(1000);
            EXCEPTION WHEN query_canceled THEN
                NULL;
            END;
        END LOOP;
    END IF;
END $$;
SELECT projector_create('deaf', handler => 'deaf', event_types => '{Deaf}',
    options => '{"timeout": "100 ms", "max_attempts": 2, "retry_base": "10 ms", "retry_max": "10 ms"}');
EOS
sql(q{SELECT projector_append('acme', 'deaf', 'Deaf', '{"deaf": 1}')});
comes_true(q{SELECT count(*) = 1 FROM projector.outbox WHERE projection_name = 'deaf' AND status = 'dead'},
	'an event whose code ignores its timeout is dead in the end');
is(sql(q{SELECT error_code, resolved_at IS NULL FROM projector.failures WHERE projection_name = 'deaf'}), 'PJ010|t',
	'and it is said why');
sql(q{SELECT projector_append('acme', 'after', 'E', '{}'), projector_append('acme', 'fine', 'Deaf', '{}')});
comes_true(q{SELECT count(*) = 1 FROM counts WHERE id = 'after'}, 'the others go on');
is(sql(q{SELECT projector_wait('deaf', 'acme', 'fine', 1, '60 s')}), 'applied', 'those of the same projection, too');

# An event that crashes the server
sql(<<'EOS');
CREATE FUNCTION crash(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF e.payload ? 'crash' THEN
        EXECUTE format('COPY (SELECT 1) TO PROGRAM %L', 'kill -9 ' || pg_backend_pid());
        PERFORM pg_sleep(10);
    END IF;
END $$;
SELECT projector_create('crash', handler => 'crash', event_types => '{Crash}',
    options => '{"max_attempts": 2, "retry_base": "10 ms", "retry_max": "10 ms"}');
EOS
my $before = -s $node->logfile;
sql(q{SELECT projector_pause('crash')});
sql(q{SELECT projector_append('acme', 'ok' || n, 'Crash', '{}') FROM generate_series(1, 20) n});
sql(q{SELECT projector_append('acme', 'crash', 'Crash', '{"crash": 1}')});
sql(q{SELECT projector_append('acme', 'ok' || n, 'Crash', '{}') FROM generate_series(21, 30) n});
sql(q{SELECT projector_resume('crash')});
$node->poll_query_until('postgres',
	q{SELECT count(*) = 1 FROM projector.outbox WHERE projection_name = 'crash' AND status = 'dead'});
comes_true(q{SELECT count(*) = 1 FROM projector.outbox WHERE projection_name = 'crash'},
	'an event that crashes the server is dead in the end, and is all that is left');
my $log = substr(slurp_file($node->logfile), $before);
my $crashes = () = $log =~ /was terminated by signal 9/g;
is($crashes, 3, 'the first crash, and max_attempts more');
sql(q{SELECT projector_append('acme', 'later', 'E', '{}')});
is(sql(q{SELECT projector_wait('async', 'acme', 'later', 1, '60 s')}), 'applied', 'the others go on');
comes_true(q{SELECT bool_and(NOT cautious) FROM projector.worker_marks}, 'caution ends');
$node->stop('fast');
$node->start;
sql(q{SELECT projector_append('acme', 'restarted', 'E', '{}')});
is(sql(q{SELECT projector_wait('async', 'acme', 'restarted', 1, '60 s')}), 'applied', 'after an orderly restart');
is(sql(q{SELECT count(*) FROM projector.worker_marks WHERE cautious}), 0, 'there is no caution');

# A run that crashes the server, in one piece and in slices.  Nothing else is to do then.
sql(<<'EOS');
ALTER SYSTEM SET projector.workers = 2;
CREATE TABLE armed (id int);
CREATE TABLE falls (LIKE counts INCLUDING ALL);
CREATE FUNCTION die() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('COPY (SELECT 1) TO PROGRAM %L', 'kill -9 ' || pg_backend_pid());
    PERFORM pg_sleep(10);
END $$;
CREATE FUNCTION fall(s falls, e projector.event) RETURNS falls IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF e.payload ? 'fall' AND EXISTS (TABLE armed) THEN
        PERFORM die();
    END IF;
    s.tenant_id := e.tenant_id;
    s.id := e.aggregate_id;
    s.n := coalesce(s.n, 0) + 1;
    RETURN s;
END $$;
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'falls', 'a' || a, s, 'Fall', CASE WHEN a = 15 AND s = 10 THEN '{"fall": 1}' ELSE '{}' END::jsonb
    FROM generate_series(1, 20) s, generate_series(10, 29) a ORDER BY s, a;
SELECT projector_create('falls', fold => 'fall', targets => '{falls}', event_types => '{Fall}',
    options => '{"max_attempts": 2, "batch_size": 10}');
EOS
comes_true(q{SELECT sum(n) = 400 FROM falls}, 'all is applied');
foreach my $slice_events (1000, 100)
{
	sql("ALTER SYSTEM SET projector.slice_events = $slice_events");
	$node->reload;
	comes_true("current_setting('projector.slice_events') = '$slice_events'", "a run is cut into slices of $slice_events events");
	sql('INSERT INTO armed VALUES (1)');
	$before = -s $node->logfile;
	my $run = sql(q{SELECT projector_start_run('falls', 'falls')});
	$node->poll_query_until('postgres', "SELECT finished_at IS NOT NULL FROM projector.runs WHERE id = $run");
	is(sql("SELECT state, error_code, slice_count > 1 FROM projector.projection_runs WHERE id = $run"), 'failed|PJ010|' . ($slice_events == 100 ? 't' : 'f'),
		'a run that crashes the server fails in the end');
	$log = substr(slurp_file($node->logfile), $before);
	$crashes = () = $log =~ /was terminated by signal 9/g;
	is($crashes, 3, 'after the first crash, and max_attempts more');
	is(sql(q{SELECT count(*), sum(n) FROM falls}), '20|400', 'readers see the old rows');
	sql('TRUNCATE armed');
	comes_true(q{SELECT bool_and(NOT cautious) FROM projector.worker_marks}, 'caution ends');
	$run = sql(q{SELECT projector_start_run('falls', 'falls')});
	comes_true("SELECT state = 'completed' FROM projector.runs WHERE id = $run", 'the next run completes');
}

# DROP EXTENSION and DROP DATABASE while a worker is busy
sql('CREATE DATABASE busy');
for my $i (1 .. 10)
{
	sql($setup, 'busy') if $i == 1 || sql(q{SELECT count(*) FROM pg_extension WHERE extname = 'projector'}, 'busy') == 0;
	sql(q{INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
        SELECT 't' || n % 7, 'a' || n, 1, 'E', '{}' FROM generate_series(1, 3000) n}, 'busy');
	my ($rc, $stdout, $stderr) = $node->psql('busy', 'DROP EXTENSION projector CASCADE');
	is($rc, 0, "DROP EXTENSION while a worker is busy $i") or diag $stderr;
	sql('DROP TABLE counts, inline_counts', 'busy');
}
sql($setup . <<'EOS', 'busy');
CREATE FUNCTION slow(e projector.event) RETURNS void LANGUAGE sql AS 'SELECT pg_sleep(600)';
SELECT projector_create('slow', handler => 'slow', event_types => '{Slow}', options => '{"timeout": "1 h"}');
SELECT projector_append('acme', 'slow', 'Slow', '{}');
EOS
comes_true(q{SELECT count(*) = 1 FROM pg_stat_activity WHERE datname = 'busy' AND wait_event = 'PgSleep'},
	'a worker is in a long batch');
my ($rc, $stdout, $stderr) = $node->psql('postgres', 'DROP DATABASE busy');
is($rc, 0, 'DROP DATABASE behind a long batch') or diag $stderr;

$in .= "\\q\n";
$psql->finish;
$node->stop('fast');
done_testing();
