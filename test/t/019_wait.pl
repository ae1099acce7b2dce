# Waiting for one's own write while workers run: no wait is missed, and none returns too early.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.naptime = '10 s'
max_connections = 260
max_prepared_transactions = 5
fsync = off
EOC
$node->start;
use_node($node);

sql(<<'EOS');
CREATE EXTENSION projector;
CREATE TABLE model (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT projector_create('model', targets => '{model}', fold_columns => '{"n": "s.n + 1"}');
CREATE TABLE follower (LIKE model INCLUDING ALL);
SELECT projector_create('follower', targets => '{follower}', fold_columns => '{"n": "s.n + 1"}', mode => 'follow');
-- An error unless the wait succeeded and the read model has the event.
CREATE FUNCTION check_seen(tenant text, item text, version bigint, applied boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF NOT applied OR NOT EXISTS (SELECT FROM model WHERE tenant_id = tenant AND id = item AND n >= version) THEN
		RAISE EXCEPTION '% of % of % is not there', version, item, tenant;
	END IF;
END $$;
EOS

# A session that waits for the first event of an aggregate.
sub start_wait
{
	my ($of) = @_;
	my %session = (out => '', err => '');
	$session{handle} = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "SELECT projector_wait('model', $of, 1, '120 s')" ],
		'>', \$session{out}, '2>', \$session{err});
	return \%session;
}

# Every event is waited for as soon as it is committed: the apply may commit before, between or
# after the waiter's check and its sleep.  Without wake-ups it would take 20 minutes and fail.
my $pair = $node->basedir . '/pair.sql';
append_to_file($pair, <<'EOS');
\set t random(1, 3)
\set a random(1, 200)
SELECT projector_append('t' || :t, 'a' || :a, 'E', '1') AS s \gset
SELECT (projector_wait('model', 't' || :t, 'a' || :a, :s) = 'applied')::int AS applied \gset
SELECT check_seen('t' || :t, 'a' || :a, :s, :applied = 1);
EOS
my $said = '';
my $ended = eval {
	IPC::Run::run([ 'pgbench', '-n', '-c', '16', '-j', '2', '-t', '1250', '-f', $pair, $node->connstr('postgres') ], '>&', \$said,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
};
ok($ended, '20,000 events, each waited for by its appender') or diag($said);
is(sql('SELECT sum(n) FROM model'), '20000', 'all have been applied, once');
is(sql("SELECT count(*) FROM (SELECT projector_wait('follower', tenant_id, aggregate_id, max(sequence_number), '60 s') AS a FROM projector.events GROUP BY tenant_id, aggregate_id) w WHERE a <> 'applied'"),
	'0', 'also in mode follow');

# Many wait for one event.
my @waiters;
foreach my $i (1 .. 200)
{
	push @waiters, start_wait(q{'crowd', 'x'});
}
ok($node->poll_query_until('postgres', q{SELECT count(*) = 200 FROM pg_stat_activity WHERE query LIKE 'SELECT projector_wait%' AND wait_event_type = 'Extension'}),
	'200 sessions wait, and do nothing else');
sql(q{SELECT projector_append('crowd', 'x', 'E', '1')});
my $applied = 0;
foreach my $session (@waiters)
{
	$session->{handle}->finish;
	$applied++ if $session->{out} eq "applied\n";
}
is($applied, 200, 'all of them are told');

# A wait can be cancelled; it ends when its projection is dropped.
foreach my $case ([ q{SELECT pg_cancel_backend(pid)}, qr/canceling statement/, 'a waiter can be cancelled' ],
	[ q{SELECT projector_pause('model')}, qr/^paused/m, 'is told of a pause' ],
	[ q{SELECT projector_resume('model')}, undef, undef ],
	[ q{SELECT projector_set_mode('model', 'off')}, qr/mode "off"/, 'of a mode in which nothing comes' ],
	[ q{SELECT projector_set_mode('model', 'async')}, undef, undef ],
	[ q{SELECT projector_drop('model')}, qr/has been dropped/, 'and of its end' ])
{
	my ($command, $expected, $name) = @$case;
	if (!defined $expected) { sql($command); next; }
	my $session = start_wait(q{'nobody', 'x'});
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query LIKE 'SELECT projector_wait%' AND wait_event_type = 'Extension'});
	sql($command =~ /cancel/ ? "$command FROM pg_stat_activity WHERE query LIKE 'SELECT projector_wait%' AND pid <> pg_backend_pid()" : $command);
	$session->{handle}->finish;
	like($session->{out} . $session->{err}, $expected, $name);
}

# Prepared events are found after their commit, although it wakes no worker.
sql(q{SELECT projector_create('model', targets => '{model}', fold_columns => '{"n": "s.n + 1"}', mode => 'inline')});
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM projector.status_by_tenant WHERE projection_name = 'model' AND cursor_state <> 'live'});
sql(q{BEGIN; SELECT projector_append('crowd', 'y', 'E', '1'); PREPARE TRANSACTION 'p'});
is(sql(q{SELECT projector_wait('model', 'crowd', 'y', 1, '50 ms')}), 'timeout', 'what is prepared is not there');
sql(q{COMMIT PREPARED 'p'});
is(sql(q{SELECT projector_wait('model', 'crowd', 'y', 1, '60 s')}), 'applied', 'once it is committed it is');

# On a standby.
$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
sql(q{SELECT projector_append('crowd', 'z', 'E', '1')});
is($standby->safe_psql('postgres', q{SELECT projector_wait('model', 'crowd', 'z', 1, '60 s')}), 'applied', 'a standby sees it, too');
is($standby->safe_psql('postgres', q{SELECT projector_wait('model', 'crowd', 'z', 2, '50 ms')}), 'timeout', 'or not');
my ($rc, $out, $err) = $standby->psql('postgres', q{SELECT projector_wait_log('model', 'crowd', 1)});
like($err, qr/cannot be used on a standby/, 'but not which transactions are open');
is($standby->safe_psql('postgres', q{SELECT count(*) > 0 FROM projector.status_by_tenant}), 't', 'the status can be read there');
$standby->stop;
$node->stop;
done_testing();
