# The registry outside of one session: names in dumps, copies that are adopted, a
# restore over the original, and a worker with a projection that cannot run.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;
use Time::HiRes qw(usleep);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.naptime = '100 ms'
fsync = off
EOC
$node->start;
use_node($node);
my $dir = PostgreSQL::Test::Utils::tempdir;

sub logged { my ($pattern) = @_; my @found = slurp_file($node->logfile) =~ /$pattern/g; return scalar @found; }

# Poll the server's log until a pattern has been found the given number of times.
sub comes_in_log
{
	my ($pattern, $times) = @_;
	foreach (1 .. 1800) { return 1 if logged($pattern) >= $times; usleep(100_000); }
	return 0;
}

sql(<<'EOS');
CREATE EXTENSION projector;
CREATE ROLE alice;
CREATE TABLE stock (tenant_id text, id text, n int NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE notes (tenant_id text, note text);
ALTER TABLE stock OWNER TO alice;
CREATE FUNCTION note(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO notes VALUES (e.tenant_id, e.aggregate_id)';
SELECT projector_create('stock', fold_columns => '{"n": "s.n + 1"}', targets => '{stock}');
SELECT projector_alter('stock', '{"owner": "alice"}');
SELECT projector_create('notes', handler => 'note', targets => '{notes}', options => '{"max_attempts": 1}');
SELECT projector_append('acme', 'a', 'E', '{}');
EOS
comes_true("(SELECT n FROM stock) = 1", 'the worker applies');

# ---- names are refreshed by workers ----

sql('ALTER ROLE alice RENAME TO anna; ALTER TABLE stock RENAME TO pile');
comes_true(q{(owner, targets) = ('anna', '{public.pile}') FROM projector.projections WHERE name = 'stock'}, 'a worker notes the new names');
sql(q{SELECT projector_append('acme', 'a', 'E', '{}')});
comes_true("(SELECT n FROM pile) = 2", 'and goes on');

# ---- a function is dropped and created again ----

sql('DROP FUNCTION note');
my $stopped = qr/projection "notes" has stopped: function public.note/;
comes_true(q{EXISTS (SELECT FROM projector.status_by_tenant WHERE projection_name = 'notes' AND why LIKE 'cannot run%')}, 'status says that it cannot run');
sql(q{SELECT projector_append('acme', 'a', 'E', '{}') FROM generate_series(1, 20)});
comes_true("(SELECT n FROM pile) = 22", 'the others are applied meanwhile');
ok(comes_in_log($stopped, 1), 'so does the log');

# after several checks by the worker it has still been logged once
my $looks = sql(q{SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'});
comes_true("xact_commit > $looks + 20 FROM pg_stat_database WHERE datname = 'postgres'", 'some looks later');
is(logged($stopped), 1, 'still once');
is(sql('SELECT count(*) FROM projector.failures'), '0', 'no attempt is counted');
sql(q{CREATE FUNCTION note(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO notes VALUES (e.tenant_id, e.aggregate_id)'});
comes_true("(SELECT count(*) FROM notes) = 22", 'it goes on by itself');
ok(comes_in_log(qr/projection "notes" continues/, 1), 'the log says that too');
sql('DROP FUNCTION note');
ok(comes_in_log($stopped, 2), 'another episode is told again');
sql(q{CREATE FUNCTION note(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO notes VALUES (e.tenant_id, e.aggregate_id)'});

# ---- a run waits for the function too ----

sql(q{SELECT projector_pause('notes'); SELECT projector_start_run('notes'); DROP FUNCTION note});
comes_true(q{EXISTS (SELECT FROM projector.status_by_tenant WHERE why LIKE 'cannot run%' OR paused_by IS NOT NULL)}, 'a run finds no function');
sql(q{CREATE FUNCTION note(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO notes VALUES (e.tenant_id, e.aggregate_id)'});
sql(q{SELECT projector_resume('notes')});
comes_true(q{NOT EXISTS (SELECT FROM projector.progress)}, 'it ends when there is one');
is(sql(q{SELECT state FROM projector.runs ORDER BY id DESC LIMIT 1}), 'completed', 'well');

# ---- a restore over the original: pg_restore --clean ----

my $dump = "$dir/dump";
$node->command_ok([ 'pg_dump', '-Fc', '-f', $dump, $node->connstr('postgres') ], 'a dump');
sql(q{SELECT projector_worker_stop()});
$node->command_ok([ 'pg_restore', '--clean', '--if-exists', '--exit-on-error', '-d', $node->connstr('postgres'), $dump ],
	'is restored over the original, targets and all');
is(sql(q{SELECT string_agg(name || ' ' || (home = (SELECT system_identifier || '/' || (SELECT oid FROM pg_database WHERE datname = 'postgres') FROM pg_control_system()))::text, ', ' ORDER BY name) FROM projector.projections}),
	'notes true, stock true', 'where the projections are at home');
sql(q{SELECT projector_worker_start(); SELECT projector_append('acme', 'a', 'E', '{}')});
comes_true("(SELECT n FROM pile) = 23 AND (SELECT count(*) FROM notes) = 23", 'and go on with the new tables');
comes_true(q{bool_and(resolved_in = 'projector.projections'::regclass AND target_oids[1] = targets[1]::regclass) FROM projector.projections}, 'whose oids are noted');

is(sql(q{SELECT count(*) FROM pg_event_trigger e JOIN pg_depend d ON d.objid = e.oid AND d.classid = 'pg_event_trigger'::regclass AND d.deptype = 'e' WHERE evtname LIKE 'projector_guard%'}), '3',
	'the guard is back, as part of the extension');
my ($code, $refusal) = (0, '');
$code = $node->psql('postgres', 'DROP TABLE pile', stderr => \$refusal);
like($refusal, qr/cannot drop table public.pile because projection "stock" uses it/, 'and on guard');

# ---- a copy is adopted: notices name owner and targets, a missing one stops the projection ----

$node->command_ok([ 'createdb', '-h', $node->host, '-p', $node->port, 'copy' ], 'another database');
sql('ALTER ROLE anna RENAME TO nina');
$node->command_ok([ 'pg_restore', '--no-owner', '-d', $node->connstr('copy'), $dump ], 'gets a copy');
sql('DROP FUNCTION note; DROP TABLE notes CASCADE', 'copy');
my ($out, $err);
$node->psql('copy', 'SELECT projector_adopt()', stdout => \$out, stderr => \$err);
is($out, '2', 'which is adopted');
like($err, qr/NOTICE:  projection "stock" is adopted: owner none, targets public.pile/, 'the table it found is said');
like($err, qr/WARNING:  projection "stock" cannot run: role anna does not exist/, 'and the role it did not find');
like($err, qr/NOTICE:  projection "notes" is adopted: owner \S+, targets none/, 'the role it found is said');
like($err, qr/WARNING:  projection "notes" cannot run: target table public.notes does not exist/, 'and the table it did not find');
sql(q{SELECT projector_append('acme', 'a', 'E', '{}')}, 'copy');
is(sql(q{SELECT count(*) FROM projector.status_by_tenant WHERE why LIKE 'cannot run%'}, 'copy'), '2', 'neither runs');
sql('CREATE ROLE anna; ALTER TABLE pile OWNER TO anna', 'copy');
is(sql(q{SELECT count(*) FROM projector.status_by_tenant WHERE why LIKE 'cannot run%'}, 'copy'), '2', 'not even if there is a role of that name');
$node->psql('copy', 'SELECT projector_adopt()', stdout => \$out, stderr => \$err);
like($err, qr/NOTICE:  projection "stock" is adopted: owner anna, targets public.pile/, 'until that is adopted too');
comes_true("(SELECT n FROM pile) = 23", 'then it runs', 'copy');
is(sql('SELECT count(*) FROM projector.failures', 'copy'), '0', 'and nothing has failed');
comes_true(q{owner = 'nina' FROM projector.projections WHERE name = 'stock'}, 'the original has its own owner');
$node->stop;
done_testing();
