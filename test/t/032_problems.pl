# Every kind of problem in projector.problems is produced, its remedy is run as the
# view gives it, and the problem is gone. So is every state that needs a worker or
# another session.
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
projector.lag_warning = '1 h'
max_prepared_transactions = 5
fsync = off
EOC
$node->start;
use_node($node);

sql('CREATE EXTENSION projector');
sql($STOCK);
sql(<<'EOS');
SELECT projector_create('stock', targets => '{stock}', options => '{"max_attempts": 2, "retry_base": "1 h", "retry_max": "1 h"}',
	fold_columns => '{"on_hand": "s.on_hand + good((e.payload->>''qty'')::bigint)"}');
SELECT projector_append('acme', 'a', 'Received', '{"qty": 5}');
EOS

my (%problem, %state);

sub comes_into
{
	my ($state, $name) = @_;
	$name //= 'stock';
	comes_true("EXISTS (SELECT FROM projector.status_by_tenant WHERE projection_name = '$name' AND tenant_id = 'acme' AND state = '$state')", "state $state");
	is(sql("SELECT state FROM projector.status WHERE projection_name = '$name'"), $state, "state $state: of the projection too");
	is(sql("SELECT (why IS NULL) = (state = 'ok') FROM projector.status_by_tenant WHERE projection_name = '$name' AND tenant_id = 'acme'"), 't', "state $state: there is a reason, unless it is ok");
	$state{$state}++;
	return;
}

sub problem_comes
{
	my ($problem) = @_;
	comes_true("EXISTS (SELECT FROM projector.problems WHERE problem = '$problem')", "$problem: is told");
	$problem{$problem}++;
	return;
}

# Its remedy is run, and it goes.
sub remedy_helps
{
	my ($problem) = @_;
	my $remedy = sql("SELECT remedy FROM projector.problems WHERE problem = '$problem' LIMIT 1");
	my ($ret, undef, $err) = $node->psql('postgres', $remedy);
	is($ret, 0, "$problem: its remedy runs: $remedy") or diag($err);
	comes_true("NOT EXISTS (SELECT FROM projector.problems WHERE problem = '$problem')", "$problem: is gone");
	return;
}

comes_into('ok');

# An event that was recorded long ago, as after a restore.
sub append_old
{
	my ($item, $number) = @_;
	sql(qq{INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, recorded_at)
		VALUES ('acme', '$item', $number, 'Received', '{"qty": 1}', now() - interval '1 day')});
	return;
}

# ---- failing, dead ----

sql(q{INSERT INTO bad VALUES (7); SELECT projector_append('acme', 'b', 'Received', '{"qty": 7}')});
comes_into('failing');
problem_comes('failing');
is(sql(q{SELECT tenant_id, events, since IS NOT NULL, detail LIKE 'event 1 of b failed: bad quantity 7 (attempt 1; the next at %' FROM projector.problems}),
	'acme|1|t|t', 'failing: which event, since when, and when it is tried next');
remedy_helps('failing');
comes_into('blocked');
problem_comes('dead');
is(sql('SELECT level, reason FROM projector_health()'), 'critical|dead: stock tenant acme: event 1 of b is dead: bad quantity 7', 'dead: is the worst');
sql('DELETE FROM bad');
remedy_helps('dead');
comes_true(q{on_hand = 7 FROM stock WHERE item_id = 'b'}, 'and the event is applied');

# ---- lagging ----

# The worker waits for a lock on the read model.
my $other = $node->background_psql('postgres');
$other->query_safe('BEGIN; LOCK TABLE stock IN EXCLUSIVE MODE');
append_old('c', 1);
comes_into('lagging');
problem_comes('lagging');
# The remedy waits for that lock too, so it runs when the lock is gone.
my $remedy = sql(q{SELECT remedy FROM projector.problems WHERE problem = 'lagging'});
$other->query_safe('ROLLBACK');
like(sql($remedy), qr/^[01]$/, "lagging: its remedy runs: $remedy");
comes_true("NOT EXISTS (SELECT FROM projector.problems WHERE problem = 'lagging')", 'lagging: is gone');

# ---- no worker ----

sql(q{ALTER SYSTEM SET projector.enabled = off});
sql(q{SELECT pg_reload_conf()});
comes_true(q{NOT EXISTS (SELECT FROM projector.worker_activity())}, 'workers leave');
sql(q{SELECT projector_append('acme', 'a', 'Received', '{"qty": 1}')});
comes_into('no_worker');
problem_comes('no_worker');
# ALTER SYSTEM must be a command of its own, as it is in psql.
sql($_) foreach split /; /, sql(q{SELECT remedy FROM projector.problems});
comes_true('count(*) = 0 FROM projector.problems', 'no_worker: is gone');
sql('SELECT projector_worker_stop()');
sql(q{SELECT projector_append('acme', 'a', 'Received', '{"qty": 1}')});
problem_comes('no_worker');
remedy_helps('no_worker');

# Where workers may not run, the launcher still starts one from time to time. It is
# not a worker of this database, even before it has read that it must exit. The lock
# keeps it from reading that, and new sessions from starting.
sql('CREATE DATABASE quiet');
sql('ALTER DATABASE quiet SET projector.enabled = off');
my $quiet = $node->background_psql('quiet');
$quiet->query_safe(q{SET client_min_messages = warning; CREATE EXTENSION projector;
	CREATE FUNCTION h(e projector.event) RETURNS void LANGUAGE sql AS ''; SELECT projector_create('h', handler => 'h');
	SELECT projector_append('acme', 'a', 'E', '1'); SELECT projector_drain(); SELECT projector_append('acme', 'a', 'E', '1')});
$other = $node->background_psql('postgres');
$other->query_safe('BEGIN; LOCK TABLE pg_db_role_setting');
$other->query_safe('SELECT pg_reload_conf()');
my $reads = q{SELECT EXISTS (SELECT FROM pg_locks w JOIN pg_locks d USING (pid) WHERE w.relation = 'pg_db_role_setting'::regclass AND NOT w.granted
	AND d.classid = 'pg_database'::regclass AND d.objid = (SELECT oid FROM pg_database WHERE datname = current_database()))};
my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
my $started;
usleep(10_000) until ($started = $quiet->query_safe($reads)) eq 't' || time > $deadline;
is($started, 't', 'no_worker: the launcher starts a worker');
is($quiet->query_safe('SELECT state, why FROM projector.status_by_tenant'), 'no_worker|projector.enabled = off', 'no_worker: a worker that must exit is none');
$other->query_safe('ROLLBACK');
$other->quit;
$quiet->quit;
sql('DROP DATABASE quiet');

# ---- a lock ----

# A retry in an open transaction keeps the worker from the pair, but not appends.
$other->query_safe(q{BEGIN; SELECT projector_retry('stock', 'acme', 'a', 1)});
append_old('c', 2);
comes_into('waiting');
problem_comes('locked');
is(sql(q{SELECT detail ~ '^process [0-9]+ [(].*[)] has locked it since ', since IS NOT NULL, events FROM projector.problems}), 't|t|1', 'locked: by whom, and since when');
remedy_helps('locked');
eval { $other->quit; };
comes_into('ok');

# ---- an open transaction ----

foreach my $prepared (0, 1)
{
	my $name = "late_$prepared";
	my $append = q{SELECT projector_append('acme', 'x', 'Received', '{"qty": 1}')};
	if ($prepared)
	{
		sql("BEGIN; $append; PREPARE TRANSACTION 'forgotten'");
	}
	else
	{
		$other = $node->background_psql('postgres');
		$other->query_safe("BEGIN; $append");
	}
	sql(qq{CREATE TABLE $name (LIKE stock INCLUDING ALL);
		SELECT projector_create('$name', targets => '{$name}', mode => 'follow', fold_columns => '{"on_hand": "s.on_hand + (e.payload->>''qty'')::bigint"}')});
	comes_into('starting', $name);
	like(sql("SELECT why FROM projector.status_by_tenant WHERE projection_name = '$name' AND tenant_id = 'acme'"),
		$prepared ? qr/^prepared transaction 'forgotten' has been appending events since before/ : qr/^process \d+ \(.*\) has been appending events since before/,
		'starting: because of the open transaction');
	problem_comes('open_transaction');
	remedy_helps('open_transaction');
	eval { $other->quit; } if !$prepared;
	comes_into('ok', $name);
	sql("SELECT projector_drop('$name')");
}

# ---- what an operator did ----

sql(q{SELECT projector_pause('stock', 'acme', 'a test')});
comes_into('paused');
problem_comes('paused');
remedy_helps('paused');
sql(q{SELECT projector_set_mode('stock', 'off')});
comes_into('off');
sql(q{SELECT projector_set_mode('stock', 'shadow')});
comes_into('shadow');
sql(q{SELECT projector_set_mode('stock', 'async')});
comes_into('ok');

# ---- definitions and runs ----

sql(q{SELECT projector_alter('stock', '{"event_types": ["Received", "Shipped"]}')});
comes_into('ok');
problem_comes('stale');
sql('INSERT INTO bad VALUES (7)');
sql(sql(q{SELECT remedy FROM projector.problems WHERE problem = 'stale'}));
problem_comes('run_failed');
sql('DELETE FROM bad');
$other = $node->background_psql('postgres');
$other->query_safe('BEGIN; LOCK TABLE stock IN EXCLUSIVE MODE');
sql(sql(q{SELECT remedy FROM projector.problems WHERE problem = 'run_failed'}));
comes_into('rebuilding');
$other->query_safe('ROLLBACK');
$other->quit;
comes_true('count(*) = 0 FROM projector.problems', 'run_failed, stale: are gone');
comes_into('ok');
sql(q{CREATE FUNCTION h(e projector.event) RETURNS void LANGUAGE sql AS ''; SELECT projector_create('h', handler => 'h')});
comes_into('ok', 'h');
sql(q{SET projector.guard_ddl = off; DROP FUNCTION h});
problem_comes('cannot_run');
comes_into('blocked', 'h');
sql(q{CREATE FUNCTION h(e projector.event) RETURNS void LANGUAGE sql AS ''});
remedy_helps('cannot_run');
comes_into('ok', 'h');

# ---- a copy ----

sql(q{UPDATE projector.projections SET home = 'elsewhere'});
comes_into('dormant');
problem_comes('dormant');
remedy_helps('dormant');
comes_into('ok');

# ---- all of them ----

my $described = sql(q{SELECT col_description('projector.problems'::regclass, 2)});
is(join(' ', sort keys %problem), join(' ', sort($described =~ /(\w+)(?=,| or|$)/g)), 'every kind of problem has come, and its remedy has helped');
$described = sql(q{SELECT col_description('projector.status_by_tenant'::regclass, 3)});
$described =~ s/^.* of //;
is(join(' ', sort keys %state), join(' ', sort grep { $_ ne 'and' } $described =~ /(\w+)/g), 'every state has been there');
$node->stop;
done_testing();
