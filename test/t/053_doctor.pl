# bin/projector doctor: it finds each of the misconfigurations that are planted here, one after
# the other, says what to do, and finds nothing when that was done.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use IPC::Run ();
use JSON::PP qw(decode_json);
use ProjectorTest;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.naptime = '100 ms'
idle_in_transaction_session_timeout = '1 d'
max_prepared_transactions = 5
wal_level = logical
EOC
# PostgreSQL::Test writes fsync = off for speed, which doctor reports.
$node->append_conf('postgresql.conf', 'fsync = on');
$node->start;
use_node($node);
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGDATABASE} = 'postgres';

sub doctor
{
	my (@arguments) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ 'bin/projector', 'doctor', @arguments ], '<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	is($err, '', 'no error');
	return ($? >> 8, $out);
}

# What is not ok, as "level check: text -> remedy" lines.
sub findings
{
	my (@arguments) = @_;
	my ($code, $out) = doctor('--json', @arguments);
	my $found = join '', map { "$_->{level} $_->{check}: $_->{text} -> $_->{remedy}\n" } grep { $_->{level} ne 'ok' } @{ decode_json($out) };
	return ($code, $found);
}

# Plant it: doctor finds it and nothing else, with this exit code.  Then do what it says.
my $planted = 0;
sub planted
{
	my ($name, %case) = @_;
	my @old = $case{old} ? ('--old', $case{old}) : ();
	sql($_) foreach @{ $case{plant} };
	sql('SELECT pg_reload_conf()');
	wait_until($case{until}) if $case{until};
	my ($code, $found) = findings(@old);
	like($found, $case{finds}, "$name: is found");
	unlike($found, qr/\n./, "$name: and nothing else") unless $case{others};
	is($code, $found =~ /^fail/m ? 2 : $found =~ /^warn/m ? 1 : 0, "$name: exit code");
	isnt($code, 0, "$name: is not ok") unless $case{harmless};

	# What doctor says is done as it says it; some need a hand.
	my ($remedy) = $found =~ /$case{finds}.*? -> (.*)/;
	$remedy = $case{remedy} if $case{remedy};
	sql($_) foreach split /; (?=[A-Z]{4})/, $remedy;
	sql($_) foreach @{ $case{after} // [] };
	wait_until($case{gone}) if $case{gone};
	($code, $found) = findings(@old);
	is($found, '', "$name: it is gone when that was done");
	is($code, 0, "$name: exit code afterwards");
	$planted++;
	return;
}

# ---- an installation that is well ----

sql('CREATE EXTENSION projector');
sql($STOCK);
sql(<<'EOS');
CREATE TABLE notes (tenant_id text, note text);
CREATE INDEX ON notes (tenant_id);
CREATE FUNCTION h(e projector.event) RETURNS void LANGUAGE sql AS 'INSERT INTO notes VALUES (e.tenant_id, e.event_type)';
SELECT projector_create('stock', targets => '{stock}', fold_columns => '{"on_hand": "s.on_hand + good((e.payload->>''qty'')::bigint)"}', options => '{"max_attempts": 1}');
SELECT projector_create('notes', targets => '{notes}', handler => 'h');
SELECT projector_append('acme', 'a', 'Received', '{"qty": 5}');
EOS
wait_until(q{count(*) = 2 FROM projector.status WHERE state = 'ok' AND lag_events = 0});
my ($code, $out) = doctor();
is($code, 0, 'all is well');
unlike($out, qr/^(?:warn|fail|info)/m, 'nothing is reported') or diag($out);
like($out, qr/^ok    preload: +the library is preloaded$/m, 'what was checked is listed');
like($out, qr/^\d+ ok, 0 info, 0 warnings, 0 failures$/m, 'and counted');
is((doctor('--quiet'))[1], ($out =~ /^(\d+ ok.*\n)/m)[0], '--quiet leaves out what is ok');

# ---- settings ----

my $reload = 'SELECT pg_reload_conf()';
planted('fsync', plant => ['ALTER SYSTEM SET fsync = off'], finds => qr/^fail settings: fsync = off: /, remedy => 'ALTER SYSTEM RESET fsync',
	after => [$reload], until => q{current_setting('fsync') = 'off'}, gone => q{current_setting('fsync') = 'on'});
planted('no workers', plant => ['ALTER SYSTEM SET projector.enabled = off'], finds => qr/^warn settings: projector\.enabled = off: /,
	until => q{current_setting('projector.enabled') = 'off'}, gone => q{current_setting('projector.enabled') = 'on'});
planted('triggers that do not fire', plant => ['ALTER DATABASE postgres SET session_replication_role = replica'],
	finds => qr/^fail stored settings: session_replication_role = replica for DATABASE postgres: /m, others => 1);
planted('a role with another isolation level', plant => [q{CREATE ROLE "Odd"; ALTER ROLE "Odd" SET default_transaction_isolation = 'serializable'}],
	finds => qr/^warn stored settings: default_transaction_isolation = serializable for ROLE "Odd": /);

# ---- our tables ----

planted('autovacuum of the outbox', plant => ['ALTER TABLE projector.apply_outbox SET (autovacuum_enabled = off)'],
	finds => qr/^fail autovacuum: autovacuum is disabled for projector\.apply_outbox: /);
planted('a disabled trigger', plant => ['ALTER TABLE projector.events DISABLE TRIGGER events_capture'],
	finds => qr/^fail triggers: trigger events_capture of projector\.events is disabled: /, remedy => 'ALTER TABLE projector.events ENABLE TRIGGER events_capture');
planted('a missing index', plant => ['DROP INDEX projector.apply_outbox_claim_idx'], finds => qr/^fail indexes: index apply_outbox_claim_idx is missing: /m,
	others => 1);   # the views cannot be read without it, which doctor says too
planted('a sequence with a cache', plant => ['ALTER SEQUENCE projector.events_log_seq_seq CACHE 20'], finds => qr/^fail sequence: /);
sql('ALTER TABLE projector.apply_outbox SET (autovacuum_vacuum_threshold = 1000000000, autovacuum_vacuum_insert_threshold = -1)');
planted('dead rows', plant => [
		q{INSERT INTO projector.apply_outbox (projection_id, tenant_id, aggregate_id, sequence_number, log_seq, event_type) SELECT 1000, 'x', 'x', i, i, 'x' FROM generate_series(1, 11000) i},
		q{DELETE FROM projector.apply_outbox WHERE projection_id = 1000}],
	until => q{n_dead_tup > 10000 FROM pg_stat_all_tables WHERE relid = 'projector.apply_outbox'::regclass},
	finds => qr/^warn outbox: projector\.apply_outbox has 11,0\d\d dead rows/, remedy => 'VACUUM projector.apply_outbox',
	gone => q{n_dead_tup < 10000 FROM pg_stat_all_tables WHERE relid = 'projector.apply_outbox'::regclass});

# ---- what stays open ----

planted('a forgotten prepared transaction', old => '0 s', plant => [q{BEGIN; CREATE TABLE forgotten (); PREPARE TRANSACTION 'for''gotten'}],
	finds => qr/^warn transactions: prepared transaction 'for''gotten' of \w+ is /, remedy => q{ROLLBACK PREPARED 'for''gotten'});
my $other = $node->background_psql('postgres');
$other->query_safe(q{BEGIN; SELECT projector_append('acme', 'b', 'Received', '{"qty": 1}')});
planted('an open transaction that appends', old => '0 s', plant => [], finds => qr/^warn log: process \d+ \(.*\) appended and has not ended for /,
	gone => q{count(*) = 0 FROM projector.appenders()});
eval { $other->quit; };
$other = $node->background_psql('postgres');
$other->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
planted('an old snapshot', old => '0 s', plant => [], finds => qr/^warn vacuum: process \d+ \(.*, idle in transaction\) has had a snapshot for /,
	gone => q{count(*) = 0 FROM pg_stat_activity WHERE state = 'idle in transaction'});
eval { $other->quit; };
planted('a slot that nobody uses', plant => [q{SELECT pg_create_logical_replication_slot('left_over', 'pgoutput')}],
	finds => qr/^warn slots: logical replication slot "left_over" is not in use: /);

# ---- projections ----

planted('a copy', plant => [q{UPDATE projector.projections SET home = 'elsewhere'}], finds => qr/^warn dormant: this database is a copy: "notes", "stock" do nothing here/,
	remedy => 'SELECT projector_adopt()', gone => q{count(*) = 2 FROM projector.status WHERE state = 'ok'});
planted('a stale definition', plant => [q{SELECT projector_alter('stock', '{"event_types": ["Received", "Shipped"]}')}], until => q{count(*) = 2 FROM projector.status WHERE state = 'ok'},
	finds => qr/^warn definitions: "stock" was built with an earlier definition: one tenant/, gone => q{NOT EXISTS (SELECT FROM projector.progress)});
planted('a target without an index', plant => ['DROP INDEX notes_tenant_id_idx'], finds => qr/^warn targets: target notes of "notes" has no index that begins with tenant_id: /);
planted('a disabled guard', plant => ['SET projector.guard_ddl = off; ALTER TABLE notes DISABLE TRIGGER projector_guard'], finds => qr/^fail guards: trigger projector_guard of notes \("notes"\) is disabled: /m,
	others => 1, after => [q{SELECT projector_alter('notes', '{}')}], gone => 'count(*) = 0 FROM projector.problems');
planted('a fold without its key', plant => ['SET projector.guard_ddl = off; ALTER TABLE stock DROP CONSTRAINT stock_pkey'], others => 1,
	finds => qr/^fail targets: target stock of "stock" has no unique key with tenant_id: /m,
	remedy => 'ALTER TABLE stock ADD PRIMARY KEY (tenant_id, item_id)', after => [q{SELECT projector_alter('stock', '{}')}], gone => q{count(*) = 0 FROM projector.problems});
sql('INSERT INTO bad VALUES (7)');
planted('a dead event', plant => [q{SELECT projector_append('acme', 'a', 'Received', '{"qty": 7}')}], until => q{EXISTS (SELECT FROM projector.problems WHERE problem = 'dead')},
	finds => qr/^fail problems: projector\.problems has 1 critical row/, remedy => q{DELETE FROM bad; SELECT projector_requeue('stock')}, gone => 'count(*) = 0 FROM projector.problems');

# ---- the server ----

# A database that was not updated yet.
sql('CREATE DATABASE older');
sql(q{CREATE EXTENSION projector VERSION '0.9'}, 'older');
my $found;
($code, $found) = findings('-d', 'older');
like($found, qr/^warn versions: the extension is 0\.9, and 1\.\d+ is installed -> ALTER EXTENSION projector UPDATE$/m, 'an old version is found');
isnt($code, 0, 'an old version: exit code');
sql('ALTER EXTENSION projector UPDATE', 'older');
($code, $found) = findings('-d', 'older');
is($found, '', 'an old version: it is gone when that was done');
$planted++;
sql('DROP DATABASE older WITH (FORCE)');

# Five databases with two workers each, and the launcher, need more than eight processes.
foreach my $number (1 .. 4)
{
	sql("CREATE DATABASE other_$number");
	sql('CREATE EXTENSION projector', "other_$number");
}
sql('ALTER SYSTEM SET projector.workers = 2');
sql($reload);
wait_until(q{current_setting('projector.workers') = '2'});
($code, $found) = findings();
like($found, qr/^warn worker slots: 5 databases with projector, 2 workers each, and a launcher need 11 of 8 worker processes: databases take turns -> ALTER SYSTEM SET max_worker_processes = 19/, 'too few worker slots are found');
is($code, 1, 'too few worker slots: exit code');
sql('ALTER SYSTEM RESET projector.workers');
sql("DROP DATABASE other_$_ WITH (FORCE)") foreach 1 .. 4;
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
($code, $found) = findings();
like($found, qr/^warn preload: the library is not preloaded: .* -> ALTER SYSTEM SET shared_preload_libraries = 'projector'/m, 'a library that is not preloaded is found');
$planted += 2;
cmp_ok($planted, '>=', 10, "$planted misconfigurations were planted");

# ---- a reader ----

sql(q{CREATE ROLE watcher LOGIN; SELECT projector_grant('watcher', 'reader')});
($code, $found) = findings('-U', 'watcher');
is($code, 0, 'a reader can ask too');
like($found, qr/\Ainfo preload: this role may not see shared_preload_libraries -> .*\n\z/, 'and is told what it cannot see');

$node->stop;
done_testing();
