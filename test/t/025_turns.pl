# More databases than workers: they take turns, and the views show which wait.
# There are as many slots as the server has worker processes, databases with
# stopped workers do not use them up, and an invalid database costs nothing.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $setup = <<'EOS';
CREATE EXTENSION projector;
CREATE TABLE counts (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, id));
SELECT projector_create('counts', fold_columns => '{"n": "s.n+1"}', targets => '{counts}');
EOS
my $append = q{SELECT projector_append('acme', 'a', 'E', '{}')};

# The script is run in each database, because in a copy projections are dormant.
sub make_databases
{
	my ($node, $prefix, $n) = @_;
	my @names = map { $prefix . $_ } 1 .. $n;
	$node->safe_psql('postgres', "CREATE DATABASE $_ STRATEGY file_copy") foreach @names;
	$node->safe_psql($_, $setup) foreach @names;
	return @names;
}

sub applied
{
	my ($node, $database, $n) = @_;
	return $node->poll_query_until($database, "SELECT coalesce(sum(n), 0) = $n FROM counts");
}

sub new_node
{
	my ($name, $conf) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);
	$node->init;
	$node->append_conf('postgresql.conf', "fsync = off\n$conf");
	$node->start;
	return $node;
}

# With the launcher, room for three workers, and eight databases
my $node = new_node('launcher', "shared_preload_libraries = 'projector'\nmax_worker_processes = 5\n");
my @databases = make_databases($node, 'turn', 8);
foreach my $round (1 .. 2)
{
	$node->safe_psql($_, $append) foreach @databases;
	my @left = grep { !applied($node, $_, $round) } @databases;
	is("@left", '', "each database has its turn $round");
}
like(slurp_file($node->logfile), qr/databases? waits? for a projector worker/, 'the log says that databases wait');

# A database without a worker reports it: all workers are busy elsewhere.
$node->safe_psql($_, <<'EOS') foreach @databases[ 0 .. 3 ];
CREATE FUNCTION slow(e projector.event) RETURNS void LANGUAGE sql AS 'SELECT pg_sleep(600)';
SELECT projector_create('slow', handler => 'slow', event_types => '{Slow}', options => '{"timeout": "1 h"}');
SELECT projector_append('acme', 'slow', 'Slow', '{}');
EOS
ok($node->poll_query_until('postgres', q{SELECT count(*) = 3 FROM pg_stat_activity
    WHERE backend_type = 'projector worker' AND wait_event = 'PgSleep'}), 'all workers are busy');
$node->safe_psql('turn8', $append);
ok($node->poll_query_until('turn8', q{SELECT count(*) = 1 FROM projector.problems
    WHERE problem = 'no_worker' AND since IS NOT NULL AND detail LIKE 'all background worker slots are in use%'}),
	'what is starved is shown');
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid), pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE backend_type = 'projector worker'});
$node->stop('fast');

# As many workers as the server may have, even more than 40
$node->append_conf('postgresql.conf', "max_worker_processes = 50\nmax_connections = 20\n");
$node->start;
$node->safe_psql('postgres', "DROP DATABASE $_ WITH (FORCE)") foreach @databases;
@databases = make_databases($node, 'many', 43);
$node->safe_psql($_, $append) foreach @databases;
my @left = grep { !applied($node, $_, 1) } @databases;
is("@left", '', '43 databases have their events applied');
ok($node->poll_query_until('postgres', q{SELECT count(DISTINCT datname) = 43 FROM pg_stat_activity
    WHERE backend_type = 'projector worker' AND datname LIKE 'many%'}), 'each has a worker of its own');

# Databases with stopped workers do not use up slots.
foreach my $database (@databases)
{
	$node->safe_psql($database, 'SELECT projector_worker_stop()');
	$node->safe_psql('postgres', "DROP DATABASE $database WITH (FORCE)");
}
my ($last) = make_databases($node, 'last', 1);
$node->safe_psql($last, $append);
ok(applied($node, $last, 1), 'after 43 times create, stop, drop another database has a worker');

# An invalid database
$node->safe_psql('postgres', 'CREATE DATABASE broken');
$node->safe_psql('postgres', q{UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'broken'});
my $before = -s $node->logfile;
foreach my $database (make_databases($node, 'after', 3))
{
	$node->safe_psql($database, $append);
	ok(applied($node, $database, 1), "$database has a worker");
}
unlike(substr(slurp_file($node->logfile), $before), qr/cannot connect to invalid database/,
	'no worker is started in an invalid database');
$node->stop('fast');

# Without the launcher: the slots are in dynamic shared memory.
$node = new_node('alone', "max_worker_processes = 4\n");
@databases = make_databases($node, 'turn', 6);
foreach my $round (1 .. 2)
{
	$node->safe_psql($_, $append) foreach @databases;
	my @waiting = grep { !applied($node, $_, $round) } @databases;
	is("@waiting", '', "without the launcher each database has its turn $round");
}
$node->stop('fast');

done_testing();
