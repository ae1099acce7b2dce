# bin/projector top, in a real terminal (tmux): at 80 x 24 and 200 x 50, without a worker, with
# the server stopped meanwhile, with 1,000 projections, with hostile names; and what its keys do.
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
projector.enabled = off
projector.naptime = '100 ms'
projector.lag_warning = '1 h'
fsync = off
EOC
$node->start;
use_node($node);
$ENV{PGHOST} = $node->host;
$ENV{PGPORT} = $node->port;
$ENV{PGDATABASE} = 'postgres';
$ENV{LC_ALL} = 'C.UTF-8';
# Not the session of a developer who runs this test in tmux.
delete $ENV{TMUX};
$ENV{TMUX_TMPDIR} = PostgreSQL::Test::Utils::tempdir_short();

sub tmux
{
	my (@arguments) = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ 'tmux', '-f', '/dev/null', '-L', 'top', @arguments ], '<', \undef, '>', \$out, '2>', \$err,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default)) or $out = "tmux: $err";
	return $out;
}

sub start_top
{
	my ($columns, $rows) = @_;
	tmux('new-session', '-d', '-s', 'top', '-x', $columns, '-y', $rows, 'bin/projector top; echo "exit code $?"; read wait');
	return;
}

sub stop_top
{
	tmux('kill-server');
	return;
}

# The screen without blank lines at its end; times, process numbers and the place of the
# server are replaced.
sub screen
{
	my $text = tmux('capture-pane', '-p', '-t', 'top');
	my $host = $node->host;
	$text =~ s/\Q$host\E/HOST/g;
	$text =~ s/\b\d\d:\d\d:\d\d$/HH:MM:SS/mg;
	$text =~ s/ +(HH:MM:SS)$/ $1/mg;
	$text =~ s/^ +\d+ +\S+ (?:ms|s)( (?:idle|looking|applying|run|chores))/PID TIME$1/mg;
	$text =~ s/ +$//mg;
	$text =~ s/\n+\z/\n/;
	return $text;
}

# Wait until the screen matches; returns it.
sub screen_becomes
{
	my ($pattern, $name) = @_;
	my $text = '';
	foreach my $attempt (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$text = screen();
		if ($text =~ $pattern)
		{
			pass($name);
			return $text;
		}
		usleep(100_000);
	}
	fail($name);
	diag("the screen:\n$text");
	return $text;
}

sub keys_pressed
{
	my (@keys) = @_;
	tmux('send-keys', '-t', 'top', @keys);
	return;
}

# A line of the screen by number; the first is 0.
sub line_of
{
	my ($text, $number) = @_;
	return (split /\n/, $text)[$number] // '';
}

# ---- without a terminal ----

sql('CREATE EXTENSION projector');
sql($STOCK);
my ($out, $err) = ('', '');
IPC::Run::run([ 'bin/projector', 'top' ], '<', \undef, '>', \$out, '2>', \$err);
is($? >> 8, 2, 'without a terminal: exit code');
like($err, qr/\Aprojector: top needs a terminal/, 'without a terminal: it says so');

# ---- nothing, and no worker ----

start_top(80, 24);
my $text = screen_becomes(qr/^0 projections$/m, 'an empty database');
is($text, <<'EOS', 'an empty screen, 80 x 24');
projector top  postgres at HOST HH:MM:SS
0 projections
PROJECTION         MODE    STATE          LAG      OLDEST      RATE    DEAD WHY


















  WORKER        TIME DOES
no worker runs (idle workers leave)
p pause  r resume  u requeue  c cancel run  Tab list  o order  q quit
EOS

# Three projections, and no worker.  What OLDEST says changes with time, so nothing is old.
sql(<<'EOS');
CREATE TABLE a (LIKE stock INCLUDING ALL);
CREATE TABLE b (LIKE stock INCLUDING ALL);
SELECT projector_create('shop.stock', targets => '{stock}', options => '{"max_attempts": 1}',
	fold_columns => '{"on_hand": "s.on_hand + good((e.payload->>''qty'')::bigint)"}');
SELECT projector_create('shop.a', targets => '{a}', mode => 'inline', fold_columns => '{"on_hand": "s.on_hand + 1"}');
SELECT projector_create('shop.b', targets => '{b}', mode => 'inline', fold_columns => '{"on_hand": "s.on_hand + 1"}');
SELECT projector_drain();
SELECT projector_pause('shop.b', reason => 'a test');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload, recorded_at)
SELECT 'acme', 'item-' || i, 1, 'Received', '{"qty": 7}', now() + interval '1 day' FROM generate_series(1, 3) i;
EOS
my $before = <<'EOS';
projector top  postgres at HOST HH:MM:SS
3 projections: 1 no_worker, 1 paused, 1 ok
PROJECTION         MODE    STATE          LAG      OLDEST      RATE    DEAD WHY
shop.stock         async   no_worker        3        0 ms                   pro…
shop.b             inline  paused           3        0 ms                   by …
shop.a             inline  ok               0















  WORKER        TIME DOES
no worker runs (idle workers leave)
p pause  r resume  u requeue  c cancel run  Tab list  o order  q quit        1/3
EOS
$text = screen_becomes(qr/^3 projections: 1 no_worker, 1 paused, 1 ok$/m, 'work waits');
is($text, $before, 'no worker, 80 x 24');
keys_pressed('o');
$text = screen_becomes(qr/WHY\nshop\.a /, 'the other order');
keys_pressed('o');
screen_becomes(qr/WHY\nshop\.stock /, 'and back');

tmux('resize-window', '-t', 'top', '-x', '200', '-y', '50');
$text = screen_becomes(qr/^PROJECTION {31}MODE.*\n(?:.*\n)*.*q quit +1\/3$/m, 'a larger terminal');
is(line_of($text, 3), 'shop.stock                               async   no_worker        3        0 ms                   projector.enabled = off', '200 x 50: there is room for the reason');
is(line_of($text, 47), '  WORKER        TIME DOES', '200 x 50: the workers are at the bottom');
is(scalar(split /\n/, $text), 50, '200 x 50: all of it is used');
is((split /\n/, tmux('capture-pane', '-p', '-t', 'top'))[0] =~ /\d\d:\d\d:\d\d$/ ? length((split /\n/, tmux('capture-pane', '-p', '-t', 'top'))[0]) : 0, 200, '200 x 50: and its whole width');
tmux('resize-window', '-t', 'top', '-x', '30', '-y', '8');
screen_becomes(qr/\Aneeds 40 x 10$/m, 'a terminal that is too small');
tmux('resize-window', '-t', 'top', '-x', '80', '-y', '24');
screen_becomes(qr/^shop\.stock /m, 'and large enough again');

# ---- the server stops, and comes again ----

$node->stop('fast');
$text = screen_becomes(qr/^NO CONNECTION, trying again: /m, 'the server is stopped: it says so');
like($text, qr/^shop\.stock +async +no_worker/m, 'what was seen last stays');
$node->start;
screen_becomes(qr/^3 projections: 1 no_worker/m, 'it connects again');
$node->stop('immediate');
screen_becomes(qr/^NO CONNECTION/m, 'the server crashes: it says so');
$node->start;
screen_becomes(qr/^3 projections: /m, 'and connects again');

# ---- keys ----

keys_pressed('p');
screen_becomes(qr/^Pause "shop\.stock" for all tenants\?  y\/n$/m, 'p asks');
keys_pressed('n');
screen_becomes(qr/^nothing was done/m, 'no');
is(sql(q{SELECT count(*) FROM projector.projections WHERE paused}), '1', 'and it was not');
keys_pressed('p');
screen_becomes(qr/^Pause "shop\.stock"/m, 'p asks again');
keys_pressed('y');
screen_becomes(qr/^shop\.stock +async +paused/m, 'yes');
is(sql(q{SELECT pause_reason FROM projector.projections WHERE name = 'shop.stock'}), 'projector top', 'it is paused');
keys_pressed('Home');
# shop.b is the first of the two that are paused.
screen_becomes(qr/WHY\nshop\.b +.*\nshop\.stock/, 'the order has changed');
keys_pressed('Down', 'r');
screen_becomes(qr/^Resume "shop\.stock"\?/m, 'r asks for the one that is chosen');
keys_pressed('y');
screen_becomes(qr/^shop\.stock +async +no_worker/m, 'it is resumed');

# A run, and its progress.
sql(q{SELECT projector_start_run('shop.stock', 'acme')});
$text = screen_becomes(qr/^   RUN 1 active\n +\d+ shop\.stock, acme +rebuild +\[\.+\] +queued/m, 'a run waits');
keys_pressed('Tab', 'c');
screen_becomes(qr/^Cancel run \d+\?/m, 'c asks');
keys_pressed('y');
screen_becomes(qr/^run \d+ is cancelled/m, 'it is cancelled');
is(sql(q{SELECT state FROM projector.runs ORDER BY id DESC LIMIT 1}), 'cancelled', 'indeed');
screen_becomes(qr/DEAD WHY\n(?:(?!RUN).*\n)*  WORKER/m, 'and gone from the screen');
keys_pressed('Home', 'c');
screen_becomes(qr/^it has no active run/m, 'there is nothing to cancel');

# Workers, dead events, and requeue.
sql('INSERT INTO bad VALUES (7)');
sql('ALTER SYSTEM SET projector.enabled = on');
sql('SELECT pg_reload_conf()');
screen_becomes(qr/^shop\.stock +async +blocked +3 +0 ms +3 /m, 'events are dead');
screen_becomes(qr/^PID TIME (?:idle|looking|chores)/m, 'a worker is shown');
sql('DELETE FROM bad');
keys_pressed('Home', 'u');
screen_becomes(qr/^Try the failed and dead events of "shop\.stock" again/m, 'u asks');
keys_pressed('y');
screen_becomes(qr/^3 events will be tried again/m, 'yes');
comes_true(q{count(*) = 3 FROM stock}, 'they are applied');
screen_becomes(qr/^shop\.stock +async +ok +0/m, 'and it is ok');

# Events that are applied have a rate.
my $rate = 0;
foreach my $attempt (1 .. $PostgreSQL::Test::Utils::timeout_default)
{
	sql(q{SELECT projector_append('acme', 'item-' || i, 'Received', '{"qty": 1}') FROM generate_series(1, 3) i});
	last if $rate = screen() =~ /^shop\.stock .* [\d.,]+\/s/m;
	usleep(100_000);
}
ok($rate, 'the rate is shown');
screen_becomes(qr/^shop\.stock +async +ok +0$/m, 'and nothing, when nothing comes');

# A lock keeps a worker at its first event.
my $lock = $node->background_psql('postgres');
$lock->query_safe('BEGIN; LOCK TABLE stock IN ACCESS EXCLUSIVE MODE');
sql(q{SELECT projector_append('acme', 'item-1', 'Received', '{"qty": 7}')});
screen_becomes(qr/^PID TIME applying shop\.stock, tenant acme$/m, 'what a worker does');
$lock->query_safe('ROLLBACK');
$lock->quit;
screen_becomes(qr/^shop\.stock +async +ok +0/m, 'and it is ok again');

# An error of an action is a message.
keys_pressed('q');
screen_becomes(qr/^exit code 0$/m, 'q quits');
stop_top();
sql(q{CREATE ROLE watcher LOGIN; SELECT projector_grant('watcher', 'reader')});
{
	local $ENV{PGUSER} = 'watcher';
	start_top(80, 24);
	screen_becomes(qr/^3 projections: /m, 'a reader sees it too');
	screen_becomes(qr/^PID TIME /m, 'workers too');
	keys_pressed('p', 'y');
	screen_becomes(qr/^permission denied for function projector_pause/m, 'a reader cannot pause');
	keys_pressed('q');
	screen_becomes(qr/^exit code 0$/m, 'q quits');
	stop_top();
}

# ---- names that would move the cursor ----

sql(qq{CREATE TABLE evil (LIKE stock INCLUDING ALL);
	SELECT projector_create(E'\\x1b[31mevil\\u202e\\nname \\u4e2d\\u6587', targets => '{evil}', mode => 'off', fold_columns => '{"on_hand": "s.on_hand + 1"}')});
start_top(80, 24);
$text = screen_becomes(qr/^4 projections: /m, 'a hostile name');
like($text, qr/^\\x1b\[31mevil\\u202… off +off +/m, 'it is visible');
is(scalar(split /\n/, $text), 24, 'and takes one line');
keys_pressed('q');
screen_becomes(qr/^exit code 0$/m, 'q quits');
stop_top();

# ---- 1,000 projections ----

sql(q{SELECT projector_resume('shop.b')});
sql(<<'EOS');
DO $$
BEGIN
	FOR i IN 1..996 LOOP
		EXECUTE format('CREATE TABLE many_%s (LIKE stock)', i);
		EXECUTE format('ALTER TABLE many_%s ADD PRIMARY KEY (tenant_id, item_id)', i);
		PERFORM projector_create('many.' || to_char(i, 'FM0000'), targets => ARRAY['many_' || i], mode => 'off', fold_columns => '{"on_hand": "s.on_hand + 1"}');
	END LOOP;
END $$;
EOS
start_top(80, 24);
screen_becomes(qr{^1,000 projections: 997 off, 3 ok\n(?:.*\n)*.* 1/1,000$}m, '1,000 projections');
keys_pressed('End');
$text = screen_becomes(qr{ 1,000/1,000$}m, 'the end');
like($text, qr/^shop\.stock .*\n  WORKER/m, 'the last projection is the last line of the list');
keys_pressed('Home');
$text = screen_becomes(qr{ 1/1,000$}m, 'the beginning');
like($text, qr/WHY\n\\x1b.*\nmany\.0001 .*\nmany\.0002 /, 'the first are at the top');
keys_pressed('NPage');
$text = screen_becomes(qr{ 17/1,000$}m, 'a page further');
like($text, qr/^many\.0016 /m, 'the chosen one is on the screen');
keys_pressed('Down');
screen_becomes(qr{ 18/1,000$}m, 'one further');
tmux('resize-window', '-t', 'top', '-x', '200', '-y', '50');
$text = screen_becomes(qr/^many\.0040 /m, '200 x 50: more of them');
like($text, qr/^many\.0017 /m, '200 x 50: the chosen one is among them');

keys_pressed('C-c');
screen_becomes(qr/^exit code 0$/m, 'Ctrl-C quits');
stop_top();

$node->stop;
done_testing();
