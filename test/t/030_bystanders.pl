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

sub started_in
{
	my ($database) = @_;
	my $oid = $node->safe_psql('postgres', "SELECT oid FROM pg_database WHERE datname = '$database'");
	return qr/registering background worker "projector worker for database $oid"/;
}

# The launcher checks each database once.
sub wait_for_look
{
	my ($database) = @_;
	$node->wait_for_log(started_in($database));
	return ok($node->poll_query_until('postgres', qq{SELECT count(*) = 0 FROM pg_stat_activity
    WHERE backend_type = 'projector worker' AND datname = '$database'}), "a worker has looked into $database, and left");
}

wait_for_look('other');
my $before = -s $node->logfile;
$node->safe_psql('other', 'CREATE TABLE t (id int)');
foreach my $i (1 .. 20)
{
	$node->safe_psql('other', "BEGIN; INSERT INTO t VALUES ($i); PREPARE TRANSACTION 'p'");
	$node->safe_psql('other', q{COMMIT PREPARED 'p'});
	$node->safe_psql('other', 'DROP EXTENSION plpgsql; CREATE EXTENSION plpgsql');
}

# It has checked all databases since.
$node->safe_psql('postgres', 'CREATE DATABASE third');
wait_for_look('third');
unlike(substr(slurp_file($node->logfile), $before), started_in('other'),
	'prepared transactions and other extensions start none');

# In a database with the extension they do start workers, at once.
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

# Where workers are disabled, one that starts leaves before it reads anything:
# here it would announce a position that the log has not reached.
$node->safe_psql('postgres', 'CREATE DATABASE disabled');
wait_for_look('disabled');
$node->safe_psql('postgres', 'ALTER DATABASE disabled SET projector.enabled = off');
$before = -s $node->logfile;
$node->safe_psql('disabled', <<'EOS');
BEGIN;
CREATE EXTENSION projector;
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE sql AS '';
SELECT projector_create('handled', handler => 'handle');
INSERT INTO projector.projection_cursors (projection_id, tenant_id, last_log_seq)
SELECT projection_id, 'acme', 1000000 FROM projector.projections;
COMMIT;
EOS
my $oid = $node->safe_psql('postgres', q{SELECT oid FROM pg_database WHERE datname = 'disabled'});
$node->wait_for_log(qr/unregistering background worker "projector worker for database $oid"/, $before);
is($node->safe_psql('disabled', q{SELECT projector_append('acme', 'a', 'E', '{}')}), '1',
	'a worker that is disabled in its database reads nothing there');
$node->stop('fast');
done_testing();
