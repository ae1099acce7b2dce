# Stored digests stay right while events are applied inline and by workers and the table is altered.  Comparing them
# with the rows at the same time never reports a false difference.
use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;
use Time::HiRes qw(time);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.workers = 2
autovacuum = off
fsync = off
EOC
$node->start;
use_node($node);

sql(<<'EOS');
CREATE EXTENSION projector;
CREATE TABLE quick (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, price numeric(10,2) DEFAULT 1.5, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE slow (LIKE quick INCLUDING ALL);
SELECT projector_create('quick', targets => '{quick}', fold_columns => '{"n": "s.n + 1"}', mode => 'inline');
SELECT projector_create('slow', targets => '{slow}', fold_columns => '{"n": "s.n + 1"}');
SELECT count(projector_append('t' || t, 'a' || a, 'Made', '{}')) FROM generate_series(1, 3) t, generate_series(1, 5) a;
EOS
my $settled = q{SELECT count(*) FILTER (WHERE matches) = 6 FROM projector_check_digests()};
ok($node->poll_query_until('postgres', $settled), 'all digests are kept, and right');

my $script = $node->basedir . '/append.sql';
PostgreSQL::Test::Utils::append_to_file($script, <<'EOS');
\set t random(1, 3)
\set a random(1, 300)
SELECT projector_append('t' || :t, 'a' || :a || '-' || :client_id, 'Made', '{}');
EOS

# above READ COMMITTED events are queued, so that a worker applies them, while others apply theirs inline
my $queued = $node->basedir . '/queued.sql';
PostgreSQL::Test::Utils::append_to_file($queued, <<'EOS');
\set t random(1, 3)
\set a random(1, 300)
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT projector_append('t' || :t, 'q' || :a || '-' || :client_id, 'Made', '{}');
COMMIT;
EOS
my ($out, $err) = ('', '');
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', '3', '-T', '8', '--max-tries=100', '-f', $script, '-f', $queued, '-d', $node->connstr('postgres') ], '<', \undef, '>', \$out, '2>', \$err);

# ALTER TABLE waits for sessions that write the table, and they wait for it
my ($checks, $false, $scale, $until) = (0, 0, 2, time + 8);
while (time < $until)
{
	sql("ALTER TABLE " . ($scale % 4 ? 'quick' : 'slow') . " ALTER price TYPE numeric(10," . (2 + ++$scale % 3) . ")");
	foreach (1 .. 5)
	{
		$false += sql('SELECT count(*) FROM projector_check_digests() WHERE NOT matches');
		$checks++;
	}
}
$load->finish;
is($false, 0, "no false alarm in $checks looks");
cmp_ok($checks, '>', 10, 'somebody has looked');
like($out, qr/number of failed transactions: 0/, 'all appends succeed') or diag($err);

# one more event each, so that every digest is computed from the altered rows
sql(q{SELECT count(projector_append('t' || t, 'a1', 'Made', '{}')) FROM generate_series(1, 3) t});
ok($node->poll_query_until('postgres', $settled), 'all digests are right in the end')
	or diag(sql('SELECT * FROM projector_check_digests()'));
is(sql(q{SELECT count(*) FROM projector.status_by_tenant d WHERE digest <> projector_digest(projection_name, tenant_id)}), '0', 'and the view says so, too');

# a background rebuild builds the rows aside, and their digest with them
my $kept = 'SELECT count(*) FROM projector_check_digests() WHERE matches';
is(sql($kept), '6', 'a digest of each projection and tenant');
sql(qq{SELECT count(*) FROM projector_start_run('$_')}) foreach qw(quick slow);
ok($node->poll_query_until('postgres', q{SELECT count(*) = 6 FROM projector.runs WHERE state = 'completed'}), 'all are rebuilt');
is(sql($kept), '6', 'and have a digest again, which is right');
done_testing();
