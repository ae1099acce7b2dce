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
	return start_query("SELECT projector_wait('model', $of, 1, '120 s')");
}

sub start_query
{
	my ($query) = @_;
	my %session = (out => '', err => '');
	$session{handle} = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $query ],
		'>', \$session{out}, '2>', \$session{err});
	return \%session;
}

# Sessions that wait for a position of tenant "crowd" in the log, asleep.
sub start_log_waiters
{
	my ($n, $position) = @_;
	my @sessions = map { start_query("SELECT projector_wait_log('follower', 'crowd', $position, '180 s')") } 1 .. $n;
	$node->poll_query_until('postgres', qq{SELECT count(*) = $n FROM pg_stat_activity WHERE query LIKE 'SELECT projector_wait_log%' AND wait_event_type = 'Extension'})
		or die "they do not wait";
	return @sessions;
}

# How many of some sessions end with this answer.
sub count_answers
{
	my ($answer, @sessions) = @_;
	my $found = 0;
	foreach my $session (@sessions)
	{
		eval { $session->{handle}->finish };
		$found++ if $session->{out} eq "$answer\n";
	}
	return $found;
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

# A position in the log: every one is waited for as soon as it is committed.
my $triple = $node->basedir . '/triple.sql';
append_to_file($triple, <<'EOS');
\set a random(1, 200)
SELECT projector_append('t' || :client_id % 3, 'b' || :client_id || '-' || :a, 'E', '1') AS s \gset
SELECT max(log_seq) AS l FROM projector.events WHERE tenant_id = 't' || :client_id % 3 AND aggregate_id = 'b' || :client_id || '-' || :a \gset
SELECT 1 / (projector_wait_log('follower', 't' || :client_id % 3, :l) = 'applied')::int;
SELECT 1 / count(*) FROM follower WHERE tenant_id = 't' || :client_id % 3 AND id = 'b' || :client_id || '-' || :a AND n >= :s;
EOS
$ended = eval {
	IPC::Run::run([ 'pgbench', '-n', '-c', '16', '-j', '2', '-t', '200', '-f', $triple, $node->connstr('postgres') ], '>&', \$said,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
};
ok($ended && $said !~ /aborted/, '3,200 positions, each waited for by its appender') or diag($said);

# One of those who wait for an open transaction finds out for all when it has ended.  Whoever that
# is may go, and many of the others.
sql(q{BEGIN; SELECT projector_append('crowd', 'w', 'E', '1'); PREPARE TRANSACTION 'w'});
my $position = sql(q{SELECT last_value FROM projector.events_log_seq_seq});
@waiters = start_log_waiters(40, $position);
foreach my $round (1 .. 3)
{
	sql(q{SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT projector_wait_log%' AND pid <> pg_backend_pid() ORDER BY backend_start LIMIT 10) w});
	$node->poll_query_until('postgres', "SELECT count(*) = 40 - 10 * $round FROM pg_stat_activity WHERE query LIKE 'SELECT projector_wait_log%' AND pid <> pg_backend_pid()");
}
sql(q{COMMIT PREPARED 'w'});
is(count_answers('applied', @waiters), 10, 'those who are left are told of its end');

# Who waits for a position that has not been reached is not woken by what is applied meanwhile.
sub looks { return sql(q{SELECT pg_stat_force_next_flush(); SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'apply_outbox_dead_idx'}) =~ s/\s//gr }
my $append = $node->basedir . '/append.sql';
append_to_file($append, q{SELECT projector_append('crowd', 'v', 'E', '1');});
my $before = looks();
$position = sql(q{SELECT last_value + 301 FROM projector.events_log_seq_seq});
@waiters = start_log_waiters(20, $position);
IPC::Run::run([ 'pgbench', '-n', '-t', '300', '-f', $append, $node->connstr('postgres') ], '>&', \$said) or die $said;
sql(q{SELECT projector_append('crowd', 'v', 'E', '1')});
is(count_answers('applied', @waiters), 20, 'positions in the future are waited for');
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE query LIKE 'SELECT projector_wait_log%' AND pid <> pg_backend_pid()});
my $looks = looks() - $before;
ok($looks >= 20 && $looks < 20 * 40, 'with few looks') or diag($looks);

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
