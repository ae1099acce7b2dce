# A database in which looking for work fails: workers exit when another database
# waits, and no worker continues without a slot.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# There is room for one worker.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
max_worker_processes = 3
projector.naptime = '1h'
fsync = off
EOC
$node->start;

sub append
{
	my ($database) = @_;
	$node->safe_psql($database, q{SELECT projector_append('acme', gen_random_uuid()::text, 'E', '{}')});
	return;
}

sub is_applied
{
	my ($database, $what) = @_;
	append($database);
	ok($node->poll_query_until($database, 'SELECT count(*) = (SELECT count(*) FROM projector.events) FROM counts'), $what);
	return;
}

# The running workers, and those with a slot.
sub count_workers
{
	my ($database) = @_;
	return $node->safe_psql($database, <<"EOS");
SELECT count(*), projector_worker_stop()
FROM pg_stat_activity WHERE backend_type = 'projector worker' AND datname = '$database'
EOS
}

$node->safe_psql('postgres', "CREATE DATABASE $_") foreach qw(bad good);
$node->safe_psql($_, <<'EOS') foreach qw(bad good);
CREATE EXTENSION projector;
CREATE TABLE counts (tenant_id text, id text, n int DEFAULT 0, last_event_id uuid, last_event_version bigint,
    PRIMARY KEY (tenant_id, id));
SELECT projector_create('counts', fold_columns => '{"n": "s.n+1"}', targets => '{counts}');
EOS
is_applied('good', 'a worker serves one database');
is_applied('bad', 'and the other');

# Its worker sleeps.  When the other database waits, it gives up its slot and
# looks for work one last time.
my $looks_fail = qr/column .*next_attempt_at.* does not exist/;
my $break = 'ALTER TABLE projector.apply_outbox RENAME COLUMN next_attempt_at TO broken';
my $repair = 'ALTER TABLE projector.apply_outbox RENAME COLUMN broken TO next_attempt_at';
my $before = -s $node->logfile;
$node->safe_psql('bad', $break);
is_applied('good', 'a worker that cannot look once more leaves to another database');
like(substr(slurp_file($node->logfile), $before), $looks_fail, 'it could not');

# For the next worker, looking for work always fails.
append('bad');
ok($node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity
    WHERE backend_type = 'projector worker' AND datname = 'bad'}), 'a worker tries again');
is_applied('good', 'one whose first look fails leaves to another database');
is_applied('good', 'and so on');

$node->safe_psql('bad', $repair);
is_applied('bad', 'when it is repaired its events are applied');
like(count_workers($_), qr/^(0\|0|1\|1)$/, "the workers that run in $_ are known") foreach qw(good bad);
$node->stop('fast');
done_testing();
