# What happens in a database without the extension starts no workers there.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
max_prepared_transactions = 5
log_min_messages = debug1
fsync = off
EOC
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE other');
my $oid = $node->safe_psql('postgres', q{SELECT oid FROM pg_database WHERE datname = 'other'});

sub count_started
{
	my $count = () = slurp_file($node->logfile) =~ /registering background worker "projector worker for database $oid"/g;
	return $count;
}

sub no_workers
{
	return $node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity
    WHERE backend_type = 'projector worker' AND datname = 'other'});
}

# The launcher looks once.
my $wait = 10 * $PostgreSQL::Test::Utils::timeout_default;
for (1 .. $wait)
{
	last if count_started() > 0;
	$node->safe_psql('postgres', 'SELECT pg_sleep(0.1)');
}
ok(no_workers(), 'a worker has looked, and left');
my $before = count_started();
$node->safe_psql('other', 'CREATE TABLE t (id int)');
foreach my $i (1 .. 30)
{
	$node->safe_psql('other', "BEGIN; INSERT INTO t VALUES ($i); PREPARE TRANSACTION 'p'");
	$node->safe_psql('other', q{COMMIT PREPARED 'p'});
	$node->safe_psql('other', 'DROP EXTENSION IF EXISTS plpgsql; CREATE EXTENSION plpgsql');
}
# The launcher has looked at the databases since.
$node->safe_psql('postgres', 'CREATE DATABASE third');
$node->safe_psql('postgres', 'SELECT pg_sleep(2)');wait_for_probe;
is(count_started() - $before, 0, 'prepared transactions and other extensions start none');

# They still do where the extension is, and it is noticed at once.
$node->safe_psql('other', <<'EOS');
CREATE EXTENSION projector;
CREATE TABLE counts (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, id));
SELECT projector_create('counts', fold_columns => '{"n": "s.n+1"}', targets => '{counts}');
EOS
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity
    WHERE backend_type = 'projector worker' AND datname = 'other'}), 'with the extension there is a worker');
$node->safe_psql('other', q{BEGIN; SELECT projector_append('acme', 'a', 'E', '{}'); PREPARE TRANSACTION 'p'});
$node->safe_psql('other', q{COMMIT PREPARED 'p'});
ok($node->poll_query_until('other', 'SELECT count(*) = 1 FROM counts'), 'what a prepared transaction leaves is done');
$node->stop('fast');
done_testing();
