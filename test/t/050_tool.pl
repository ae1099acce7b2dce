# bin/projector: every command in text and as JSON, with a database that is well and one that
# is not, for a superuser, a reader and a role without rights; and its errors.
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
fsync = off
EOC
$node->start;
use_node($node);
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGDATABASE} = 'postgres';

# Run the tool.  Returns its exit code, stdout and stderr.
sub tool
{
	my (@arguments) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ 'bin/projector', @arguments ], '<', \undef, '>', \$out, '2>', \$err,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	my $label = "@arguments" =~ s/[^ -~]/?/gr;
	unlike($err, qr/Traceback/, "$label: no traceback");
	return ($? >> 8, $out, $err);
}

sub tool_prints
{
	my ($arguments, $pattern, $name, $code) = @_;
	my ($got, $out, $err) = tool(split ' ', $arguments);
	like($out, $pattern, "$arguments: $name") or diag($err);
	is($got, $code // 0, "$arguments: exit code");
	return $out;
}

# An error is one line on stderr, says what to do, and has exit code 2.
sub tool_fails
{
	my ($arguments, $pattern, $name) = @_;
	my ($got, $out, $err) = tool(ref $arguments ? @$arguments : split ' ', $arguments);
	is($got, 2, "$name: exit code");
	like($err, qr/\Aprojector: [^\n]+\n\z/, "$name: one line");
	like($err, $pattern, "$name: it says what to do");
	return;
}

sub json
{
	my ($arguments, $code) = @_;
	my ($got, $out, $err) = tool((split ' ', $arguments), '--json');
	is($got, $code // 0, "$arguments --json: exit code") or diag($err);
	return decode_json($out);
}

# ---- errors ----

tool_fails('status', qr/has no extension projector: .*CREATE EXTENSION projector/, 'no extension');
tool_fails('-p 1 status', qr/cannot connect: .*PGHOST/, 'no server');
tool_fails('status -d nowhere', qr/database "nowhere" does not exist/, 'no database');
is((tool('health', '-p', '1'))[0], 2, 'health: a server that cannot be asked is critical');
tool_prints('health -p 1', qr/\ACRITICAL: cannot connect: [^\n]*\n\z/, 'in one line', 2);

sql('CREATE EXTENSION projector');
sql($STOCK);

# ---- a database that is well ----

tool_prints('status', qr/\AThere are no projections\.$/, 'nothing yet');
sql(<<'EOS');
SELECT projector_create('stock', targets => '{stock}', options => '{"max_attempts": 1}',
	fold_columns => '{"on_hand": "s.on_hand + good((e.payload->>''qty'')::bigint)"}');
SELECT projector_append('acme', 'a', 'Received', '{"qty": 5}'), projector_append('beta', 'b', 'Received', '{"qty": 6}');
CREATE ROLE watcher LOGIN;
SELECT projector_grant('watcher', 'reader');
CREATE ROLE stranger LOGIN;
CREATE ROLE repairer LOGIN;
SELECT projector_grant('repairer', 'operator');
EOS
wait_until(q{on_hand = 6 FROM stock WHERE item_id = 'b'});
wait_until(q{count(*) = 0 FROM projector.status WHERE state <> 'ok'});

my @as = ('', '-U watcher');
foreach my $as (@as)
{
	tool_prints("$as status", qr/^PROJECTION +MODE +STATE .*\nstock +async +ok +0 +0 +0$/m, 'it is ok');
	tool_prints("$as status stock", qr/^acme +async +ok .*\nbeta +async +ok/m, 'by tenant');
	tool_prints("$as problems", qr/\ANo problems\.$/, 'none');
	tool_prints("$as health", qr/\AOK: no problems\n\z/, 'it is ok');
	tool_prints("$as outbox", qr/\ANothing waits\.$/, 'nothing waits');
	tool_prints("$as audit", qr/grant .*\n.*create +stock/s, 'what was done, latest first');
	is_deeply([ map { $_->{state} } @{ json("$as status") } ], ['ok'], "$as status as JSON");
	is_deeply(json("$as problems"), [], "$as problems as JSON");
	is_deeply(json("$as health"), { level => 'ok', reason => '' }, "$as health as JSON");
	is_deeply(json("$as outbox"), [], "$as outbox as JSON");
	is(json("$as audit --limit 1")->[0]{action}, 'grant', "$as audit as JSON");
	is(scalar @{ json("$as top")->{projections} }, 1, "$as top as JSON");
}
tool_prints('verify stock', qr/^acme +yes +0 /m, 'it matches');
is_deeply([ map { $_->{matches} ? 1 : 0 } @{ json('verify stock --tenant acme') } ], [1], 'verify as JSON');
tool_prints('requeue stock', qr/\ANo event has failed or is dead\.$/, 'nothing to requeue');
is_deeply(json('requeue stock'), [], 'requeue as JSON');
tool_prints('rebuild stock --watch', qr/started 2 runs\. To cancel: SELECT projector_cancel_run\(id\).*\n2 completed: 2 events$/, 'all tenants');
is_deeply([ map { $_->{state} } @{ json('rebuild stock --tenant acme --watch') } ], ['completed'], 'rebuild as JSON');
tool_prints('rebuild stock --tenant acme', qr/started 1 run\. To cancel: SELECT projector_cancel_run\(\d+\)\n/, 'without watching');
wait_until('NOT EXISTS (SELECT FROM projector.progress)');
tool_prints("audit --since 1h --limit 1", qr/rebuild|start_run/, 'the latest');
tool_prints('audit --since 2100-01-01', qr/\ANothing is recorded\.$/, 'since a time');

# ---- a database that is not ----

sql(q{INSERT INTO bad VALUES (7); SELECT projector_append('acme', 'a', 'Received', '{"qty": 7}'), projector_append('acme', 'a', 'Received', '{"qty": 1}')});
wait_until(q{count(*) = 1 FROM projector.outbox WHERE status = 'dead'});
foreach my $as (@as)
{
	tool_prints("$as status", qr/^stock +async +blocked +1 +2 .* 1  event 2 of a is dead/m, 'it is blocked');
	tool_prints("$as status stock", qr/^acme +async +blocked .* 1 +0 +1  event 2 of a is dead: bad quantity 7\nbeta/m, 'the worst tenant first');
	tool_prints("$as status stock --limit 1", qr/^and 1 more tenant$/m, 'the rest is counted');
	tool_prints("$as problems", qr/\ACRITICAL  dead: stock, tenant acme, 2 waiting, since .*\n    event 2 of a is dead: bad quantity 7\n    SELECT \* FROM projector_requeue/, 'with the command');
	tool_prints("$as health", qr/\ACRITICAL: dead: stock tenant acme: event 2 of a is dead: bad quantity 7\n\z/, 'one line', 2);
	tool_prints("$as outbox --status dead --limit 100", qr/^stock +acme +a +2 +Received +dead +1 .* bad quantity 7$/m, 'the dead event');
	tool_prints("$as outbox --projection stock --tenant acme", qr/ held /, 'and the one that it holds');
	tool_prints("$as outbox --tenant beta", qr/\ANothing waits\.$/, 'not of another tenant');
	tool_prints("$as outbox --limit 1", qr/^and more: these are the first 1 event,/m, 'more are there');
	is(json("$as problems")->[0]{problem}, 'dead', "$as problems as JSON");
	is(json("$as health", 2)->{level}, 'critical', "$as health as JSON");
	is(json("$as outbox --status dead")->[0]{last_error}, 'bad quantity 7', "$as outbox as JSON");
	is_deeply([ map { $_->{state} } @{ json("$as status stock") } ], [ 'blocked', 'ok' ], "$as status of tenants as JSON");
}
sql('UPDATE stock SET on_hand = 1000');
tool_prints('verify stock --tenant acme', qr/^acme +no +1 .*\ntenant acme, key \(acme,a\)\n    live .*1000.*\n    rebuilt .*5.*\n1 tenant of 1 differ/ms, 'a change by hand is found', 1);
is(json('verify stock --tenant acme', 1)->[0]{differing_rows}, 1, 'verify as JSON');

# The event fails in a run too.
tool_prints('rebuild stock --tenant acme --watch', qr/^1 failed: .*\nrun \d+, tenant acme: failed: bad quantity 7$/m, 'a run that fails', 1);
is(json('rebuild stock --tenant acme --watch', 1)->[0]{error_message}, 'bad quantity 7', 'a run that fails, as JSON');
sql(q{SELECT projector_pause('stock', 'beta', 'a test')});
sql('DELETE FROM bad');
tool_prints('requeue stock --tenant acme --aggregate a --number 2', qr/^stock +acme +a +2\n1 event will be tried again$/m, 'it is tried again');
wait_until(q{count(*) = 0 FROM projector.outbox});
tool_prints('rebuild stock --watch', qr/2 completed/, 'the run works');
tool_prints('health', qr/\AWARNING: paused: stock tenant beta: by .*: a test\n\z/, 'a warning', 1);
is(json('health', 1)->{level}, 'warning', 'a warning, as JSON');
sql(q{SELECT projector_resume('stock', 'beta')});

# ---- Ctrl-C ends watching, not the run ----

{
	my $lock = $node->background_psql('postgres');
	$lock->query_safe('BEGIN; LOCK TABLE stock IN EXCLUSIVE MODE');
	my ($out, $err) = ('', '');
	my $watcher = IPC::Run::start([ 'bin/projector', 'rebuild', 'stock', '--tenant', 'acme', '--watch' ], '<', \undef, '>', \$out, '2>', \$err,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	$watcher->pump until $out =~ /started 1 run/ && $err =~ /\w/;
	$watcher->signal('INT');
	$watcher->finish;
	is($watcher->result(0), 130, 'Ctrl-C: exit code');
	like($err, qr/projector: stopped watching; the run goes on\. To cancel: SELECT projector_cancel_run\(\d+\)\n\z/, 'Ctrl-C: how to cancel');
	is(sql(q{SELECT count(*) FROM projector.runs WHERE state IN ('queued', 'running')}), '1', 'Ctrl-C: the run goes on');
	$lock->query_safe('ROLLBACK');
	$lock->quit;
	comes_true(q{state = 'completed' FROM projector.runs ORDER BY id DESC LIMIT 1}, 'Ctrl-C: and completes');
}

# ---- rights ----

tool_fails('-U stranger status', qr/projector_grant\('stranger', 'reader'\)/, 'a stranger');
tool_prints('-U stranger health', qr/\ACRITICAL: permission denied/, 'a stranger', 2);
tool_fails('-U watcher requeue stock', qr/projector_grant\('watcher', 'operator'\)/, 'a reader repairs nothing');
tool_fails('-U repairer rebuild stock', qr/owner/, 'an operator who is not the owner');

# ---- typing errors ----

tool_fails('status nonsense', qr/there is no projection "nonsense"/, 'no such projection');
tool_fails('outbox --projection nonsense', qr/there is no projection "nonsense"/, 'outbox: no such projection');
tool_fails('requeue nonsense', qr/"nonsense"/, 'requeue: no such projection');
tool_fails('rebuild nonsense', qr/"nonsense"/, 'rebuild: no such projection');
tool_fails('verify stock --tenant nonsense', qr/"nonsense"/, 'verify: no such tenant');
tool_fails('audit --since yesteryear', qr/an interval such as "2 hours"/, 'no such time');
is((tool('frobnicate'))[0], 2, 'no such command');
foreach my $command ('', qw(status problems health top outbox requeue rebuild verify audit doctor report))
{
	my ($code, $out) = tool($command || (), '--help');
	is($code, 0, "$command --help");
	like($out, qr/--json/, "$command --help lists the options");
}

# ---- connections, and where the functions are ----

my ($host, $port) = ($node->host, $node->port);
{
	local @ENV{qw(PGHOST PGPORT PGDATABASE)};
	delete @ENV{qw(PGHOST PGPORT PGDATABASE)};
	my $file = PostgreSQL::Test::Utils::tempdir() . '/service';
	append_to_file($file, "[here]\nhost=$host\nport=$port\ndbname=postgres\n");
	is((tool('health', '-h', $host, '-p', $port, '-d', 'postgres'))[0], 0, 'options');
	is((tool('-h', $host, '-p', $port, '-d', 'postgres', 'health'))[0], 0, 'options before the command');
	is((tool('health', '-d', "host=$host port=$port dbname=postgres"))[0], 0, 'a conninfo string');
	is((tool('health', '-d', "postgresql:///postgres?host=$host&port=$port"))[0], 0, 'a URI');
	local $ENV{PGSERVICEFILE} = $file;
	local $ENV{PGSERVICE} = 'here';
	is((tool('health'))[0], 0, 'a service');
}
sql(q{CREATE DATABASE elsewhere});
sql(q{CREATE SCHEMA "Event log"; CREATE EXTENSION projector SCHEMA "Event log"}, 'elsewhere');
is((tool('health', '-d', 'elsewhere'))[0], 0, 'functions in another schema');
tool_prints('problems -d elsewhere', qr/No problems/, 'there too');

# ---- installed, as the package does it ----

{
	my $prefix = PostgreSQL::Test::Utils::tempdir();
	system("mkdir -p $prefix/bin $prefix/share/projector-tools && cp bin/projector $prefix/bin && cp -r tools/projector_cli $prefix/share/projector-tools") == 0 or die 'cannot copy';
	my ($out, $err) = ('', '');
	IPC::Run::run([ "$prefix/bin/projector", 'health' ], '<', \undef, '>', \$out, '2>', \$err);
	like($out, qr/\AOK: /, 'it finds its modules where the package puts them') or diag($err);
	like(scalar(`find $prefix -name '*.pyc'`), qr/\A\z/, 'and writes nothing beside them');
}

# ---- a limit that would hide everything ----

foreach my $command ('problems', 'outbox', 'audit', 'status', 'requeue stock')
{
	my ($code, $out, $err) = tool((split ' ', $command), '--limit', '0');
	is($code, 2, "$command --limit 0: exit code");
	like($err, qr/--limit: '0' is not a number from 1/, "$command --limit 0: refused");
}

# ---- output that goes nowhere ----

foreach my $case ([ '>&-', 0, qr/\A\z/ ], [ '>/dev/full', 2, qr/\Aprojector: No space left on device\n\z/ ], [ '| head -c 1 >/dev/null', 0, qr/\A\z/ ])
{
	my ($where, $code, $said) = @$case;
	my $err = '';
	IPC::Run::run([ 'bash', '-o', 'pipefail', '-c', "bin/projector report $where" ], '<', \undef, '2>', \$err);
	is($? >> 8, $code, "report $where: exit code");
	like($err, $said, "report $where: what it says");
}

# ---- names that would move the cursor ----

sql(qq{CREATE TABLE evil (LIKE stock INCLUDING ALL);
	SELECT projector_create(E'e\\x1b[31mvil\\u202e\\nname', targets => '{evil}', mode => 'inline', fold_columns => '{"on_hand": "s.on_hand + 1"}');
	SELECT projector_append(E'ten\\x1b[2J\\u200fant', E'a\\u2066', 'Received', '{"qty": 5}')});
foreach my $command ('status', 'audit', 'problems', 'outbox')
{
	my ($code, $out) = tool($command);
	is($code, 0, "$command: hostile names");
	unlike($out, qr/[\x00-\x09\x0b-\x1f\x7f]|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]/, "$command: no control characters");
}
tool_prints('status', qr/^e\\x1b\[31mvil\\u202e\\x0aname /m, 'they are visible');
like((tool('status', "e\x1b[31mvil\xe2\x80\xae\nname"))[1], qr/^ten\\x1b\[2J\\u200fant /m, 'tenants too');

# ---- a database without an encoding ----

sql(q{CREATE DATABASE bytes ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0});
$node->safe_psql('bytes', "CREATE EXTENSION projector; $STOCK");
$node->safe_psql('bytes', q{SELECT projector_create('stock', targets => '{stock}', fold_columns => '{"on_hand": "s.on_hand + 1"}');
	BEGIN;
	SELECT projector_append(E't\xe4', 'lamp', 'Received', '{"qty": "x"}');
	SELECT projector_pause('stock', E't\xe4');
	COMMIT});
foreach my $command ('status', 'status stock', 'problems', 'outbox', 'audit', 'audit --json', 'report')
{
	my ($code, $out, $err) = tool((split ' ', $command), '-d', 'bytes');
	isnt($code, 2, "$command: bytes that are no characters") or diag($err);
	like($out, qr/t\\xe4|stock/, "$command: are shown");
}
like((tool('status', 'stock', '-d', 'bytes'))[1], qr/^t\\xe4 /m, 'as an escape');
is(json('audit -d bytes')->[0]{arguments}{tenant_id}, 't\xe4', 'in JSON too');

$node->stop;
done_testing();
