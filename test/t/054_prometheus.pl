# monitoring/: the metrics in Prometheus, by its exporter and by a file; the alerts, fired by
# one problem after another and cleared by its repair; and the queries of the dashboard.
#
# Exporters and Prometheus are Debian's, on loopback.  Prometheus gets a copy of the rules that
# waits for nothing and has lower thresholds; promtool tests the rules themselves.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use HTTP::Tiny;
use IPC::Run ();
use JSON::PP qw(decode_json);
use ProjectorTest;
use Test::More;
use Time::HiRes qw(time usleep);

my @programs = qw(prometheus promtool prometheus-postgres-exporter prometheus-node-exporter);
foreach my $program (@programs)
{
	plan skip_all => "$program is not installed" unless grep { -x "$_/$program" } split /:/, $ENV{PATH};
}

my $began = time;
my $timeout = $PostgreSQL::Test::Utils::timeout_default / 2;
my $dir = PostgreSQL::Test::Utils::tempdir();
my $http = HTTP::Tiny->new(timeout => 10);
my %port = map { $_ => PostgreSQL::Test::Cluster::get_free_port() } qw(exporter node prometheus);
my %running;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.naptime = '100 ms'
fsync = off
EOC
$node->start;
use_node($node, 'shop');

# ---- programs ----

sub start_program
{
	my ($name, @command) = @_;
	my $log = "$dir/$name.log";
	$running{$name} = IPC::Run::start(\@command, '<', \undef, '>', $log, '2>', $log);
	return;
}

END
{
	local $? = $?;
	my $failed = $? || !Test::More->builder->is_passing;
	foreach my $name (keys %running)
	{
		$running{$name}->kill_kill;
		diag("$name: " . substr(slurp_file("$dir/$name.log"), -2000)) if $failed;
	}
}

sub write_file
{
	my ($name, $text) = @_;
	open(my $fh, '>', "$dir/$name") or die "$dir/$name: $!";
	print $fh $text;
	close($fh) or die "$dir/$name: $!";
	return "$dir/$name";
}

# What a server says; nothing if it does not answer.
sub get
{
	my ($name, $path) = @_;
	my $answer = $http->get("http://127.0.0.1:$port{$name}$path");
	return $answer->{status} == 599 ? '' : $answer->{content};
}

# Wait until a function returns true, and return that.
sub eventually
{
	my ($test) = @_;
	my $end = time + $timeout;
	while (time < $end)
	{
		my $result = $test->();
		return $result if $result;
		usleep(100_000);
	}
	return;
}

# ---- metrics as text ----

# Metrics of projector in the text format, as a hash: series with sorted labels, and what HELP
# and TYPE say.  The exporter's own label is left out.
sub parse_metrics
{
	my ($text) = @_;
	my %found;
	foreach my $line (split /\n/, $text)
	{
		if ($line =~ /^# (HELP|TYPE) (projector_\S+) (.*)/) { $found{"$1 $2"} = $3; }
		elsif ($line =~ /^(projector_\w+)\{(.*)\} (\S+)$/)
		{
			my ($name, $labels, $value) = ($1, $2, $3);
			my @labels = grep { !/^server=/ } $labels =~ /(\w+="(?:[^"\\]|\\.)*")/g;
			$found{ "$name\{" . join(',', sort @labels) . '}' } = $value;
		}
		elsif ($line =~ /^projector/) { $found{$line} = 'not understood'; }
	}
	return \%found;
}

# Without heads that have no series: an exporter does not print these.
sub without_empty
{
	my ($metrics) = @_;
	my %used;
	foreach my $series (grep { /\{/ } keys %$metrics)
	{
		my ($name) = $series =~ /^(\w+)/;
		$used{$name} = 1;
		$used{ $name =~ s/_(bucket|sum|count)$//r } = 1;
	}
	return { map { $_ => $metrics->{$_} } grep { /\{/ || $used{ (split ' ')[1] } } keys %$metrics };
}

# All databases, as projector_openmetrics prints them.
sub printed
{
	return without_empty(parse_metrics(join '', map { sql('SELECT projector_openmetrics()', $_) . "\n" } qw(shop other)));
}

# Two sets of metrics have the same names, labels, types and values.  Ages go on.
sub same_metrics
{
	my ($got, $expected, $name) = @_;
	my @differences = map { "only there: $_" } grep { !exists $got->{$_} } sort keys %$expected;
	push @differences, map { "only here: $_" } grep { !exists $expected->{$_} } sort keys %$got;
	foreach my $series (grep { exists $got->{$_} } sort keys %$expected)
	{
		my ($x, $y) = ($got->{$series}, $expected->{$series});
		next if $x eq $y || $series =~ /lag_seconds\{/;
		push @differences, "$series: $x, not $y" if $series !~ /\{/ || abs($x - $y) > 1e-6 * abs($y);
	}
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(join("\n", @differences), '', $name);
}

# ---- Prometheus ----

sub ask
{
	my ($path, %arguments) = @_;
	my $answer = get('prometheus', "$path?" . $http->www_form_urlencode(\%arguments));
	# While it starts, it says so in plain text.
	return eval { decode_json($answer) } // { status => 'error', error => "not ready: $answer", data => {} };
}

# The alerts that are firing, by name and what they are for.
sub firing
{
	my $answer = ask('/api/v1/alerts');
	return { 'no answer' => {} } if $answer->{status} ne 'success';
	my @alerts = grep { $_->{state} eq 'firing' } @{ $answer->{data}{alerts} };
	return { map { join(' ', $_->{labels}{alertname}, $_->{labels}{projection} // $_->{labels}{datname} // 'file') => $_ } @alerts };
}

my %fired;

sub fires
{
	my ($alert, $name) = @_;
	my $found = eventually(sub { firing()->{$alert} });
	$fired{ $alert =~ s/ .*//r } = 1;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($found, "$name: $alert fires") || diag('firing: ' . join ', ', sort keys %{ firing() });
}

sub clears
{
	my ($name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(eventually(sub { !%{ firing() } }), "$name: all alerts clear") || diag('firing: ' . join ', ', sort keys %{ firing() });
}

# ---- files that promtool can check alone ----

sub promtool
{
	my ($name, @arguments) = @_;
	my ($out, $input) = ('', '');
	$input = pop(@arguments) if ref $arguments[-1];
	my $ok = IPC::Run::run([ 'promtool', @arguments ], '<', ref $input ? $input : \$input, '>', \$out, '2>&1', IPC::Run::timeout($timeout));
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($ok, $name) || diag($out);
}

my $rules = slurp_file('monitoring/prometheus-rules.yaml');
promtool('promtool accepts the rules', qw(check rules monitoring/prometheus-rules.yaml));
promtool('the rules fire when they should, and not earlier', qw(test rules monitoring/prometheus-rules_test.yaml));

# Headings as GitHub makes anchors of them.
my %anchors = map { my $anchor = lc; $anchor =~ s/[^\w\- ]//g; $anchor =~ tr/ /-/; ($anchor => 1) }
  slurp_file('docs/operations.md') =~ /^#+ (.*)/mg;
my @alerts = split /^ +- alert: /m, $rules;
shift @alerts;
foreach my $alert (@alerts)
{
	my ($name) = $alert =~ /^(\w+)/;
	my ($page) = $alert =~ m{runbook_url: docs/operations\.md#(\S+)};
	ok($page && $anchors{$page}, "$name: its runbook is a heading of docs/operations.md");
	like($alert, qr/severity: (critical|warning|info)\n.*summary: \S.*description: \S/s, "$name has a severity and says what happened");
}

# The units of systemd, for a database whose name needs no escapes.
SKIP:
{
	skip 'systemd-analyze is not installed', 1 unless grep { -x "$_/systemd-analyze" } split /:/, $ENV{PATH};
	my @units;
	foreach my $type (qw(service timer))
	{
		write_file("projector-textfile\@.$type", slurp_file("monitoring/projector-textfile\@.$type"));
		push @units, "$dir/projector-textfile\@shop.$type";
	}
	my $complaints = '';
	IPC::Run::run([ 'systemd-analyze', 'verify', @units ], '>', \$complaints, '2>&1', IPC::Run::timeout($timeout));
	# It also reads the machine's own units.
	is(join("\n", grep { /projector-textfile/ } split /\n/, $complaints), '', 'systemd understands the units');
}

# ---- databases to watch ----

sql("CREATE DATABASE $_", 'postgres') foreach qw(shop other);
sql('CREATE ROLE watcher LOGIN', 'postgres');
sql("CREATE EXTENSION projector; SELECT projector_grant('watcher', 'reader')", $_) foreach qw(shop other);
sql($STOCK, $_) foreach qw(shop other);
my $fold = q{fold_columns => '{"on_hand": "s.on_hand + good((e.payload->>''qty'')::bigint)"}'};
sql(<<"EOS");
CREATE TABLE followed (LIKE stock INCLUDING ALL);
CREATE TABLE unused (LIKE stock INCLUDING ALL);
SELECT projector_create('stock', targets => '{stock}', options => '{"max_attempts": 1}', $fold);
SELECT projector_create('followed', targets => '{followed}', mode => 'follow', options => '{"max_attempts": 1000}', $fold);
SELECT projector_create(E'un"used\\\\', targets => '{unused}', mode => 'off', $fold);
EOS
sql("SELECT projector_create('stock', targets => '{stock}', options => '{\"max_attempts\": 1}', $fold)", 'other');
foreach my $db (qw(shop other))
{
	sql(q{SELECT projector_append('t' || i, 'a', 'Moved', '{"qty": 7}') FROM generate_series(1, 5) i}, $db);
	wait_until(q{count(*) = 0 FROM projector.status WHERE mode <> 'off' AND (state <> 'ok' OR lag_events > 0)}, $db);
}

# ---- the exporter, and the file ----

sub start_exporter
{
	local $ENV{DATA_SOURCE_NAME} = 'host=' . $node->host . ' port=' . $node->port . ' user=watcher dbname=shop sslmode=disable';
	start_program('exporter', 'prometheus-postgres-exporter', '--extend.query-path=monitoring/postgres_exporter.yaml',
		'--auto-discover-databases', '--include-databases=shop,other', '--disable-default-metrics', '--disable-settings-metrics',
		"--web.listen-address=127.0.0.1:$port{exporter}");
	return;
}

sub exported
{
	return parse_metrics(get('exporter', '/metrics'));
}

# The commands of the service, for a database.  Here the files belong to this user.
sub write_textfile
{
	my ($db) = @_;
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGUSER => 'watcher', PGDATABASE => $db);
	my $unit = slurp_file('monitoring/projector-textfile@.service');
	$ENV{$1} = $2 while $unit =~ /^Environment="(\w+)=([^%"]*)"/mg;
	my @commands = $unit =~ /^ExecStart(?:Pre|Post)?=\+?(.*)/mg;
	foreach my $command (@commands)
	{
		$command =~ s{/var/lib/prometheus/node-exporter}{$dir/textfile}g;
		$command =~ s/ -o prometheus / /;
		$command =~ s/%i/$db/g;
		$command =~ s{^/usr/bin/psql}{psql};
		system($command) == 0 or die "$command fails";
	}
	return scalar @commands;
}

start_exporter();
mkdir "$dir/textfile" or die "$dir/textfile: $!";
is(write_textfile($_), 3, "the file of $_ is written") foreach qw(shop other);
start_program('node', 'prometheus-node-exporter', '--collector.disable-defaults', '--collector.textfile',
	"--collector.textfile.directory=$dir/textfile", "--web.listen-address=127.0.0.1:$port{node}");
ok(eventually(sub { get('node', '/metrics') =~ /^projector_/m && get('exporter', '/metrics') =~ /^projector_/m }), 'both exporters answer')
  or BAIL_OUT(get('exporter', '/metrics'));

# Prometheus reads UTF-8 only.
sql(q{CREATE DATABASE latin ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0}, 'postgres');
sql("CREATE EXTENSION projector; SELECT projector_grant('watcher', 'reader'); CREATE TABLE t (tenant_id text, id text, n int,
	last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
	SELECT projector_create(chr(246), targets => '{t}', fold_columns => '{\"n\": \"1\"}')", 'latin');
write_textfile('latin');
{
	my $text = slurp_file("$dir/textfile/projector-latin.prom");
	like($text, qr/projection="\xc3\xb6"/, 'the file of a database in LATIN1 is UTF-8');
	promtool('promtool accepts it', qw(check metrics), \$text);
}
unlink "$dir/textfile/projector-latin.prom" or die;

sub compare_metrics
{
	my ($when, $atleast) = @_;
	my $expected = printed();
	cmp_ok(scalar(grep { /\{/ } keys %$expected), '>=', $atleast, "$when: there are metrics");
	same_metrics(exported(), $expected, "$when: the exporter has the same metrics as projector_openmetrics()");
	write_textfile($_) foreach qw(shop other);
	same_metrics(without_empty(parse_metrics(get('node', '/metrics'))), $expected, "$when: the file has them, too");
	promtool("$when: promtool accepts them", qw(check metrics), \sql('SELECT projector_openmetrics()'));
	return;
}

sub set_workers
{
	my ($onoff) = @_;
	sql("ALTER SYSTEM SET projector.enabled = $onoff", 'postgres');
	sql('SELECT pg_reload_conf()', 'postgres');
	wait_until(q{count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'projector worker'}) if $onoff eq 'off';
	return;
}

# Nothing moves without workers.
set_workers('off');
compare_metrics('quiet', 90);
sql(q{INSERT INTO bad VALUES (13)});
sql(q{SELECT projector_append(E't"\\\\2', 'a', 'Moved', '{"qty": 13}')});
sql(q{SELECT projector_drain()});
sql(q{SELECT projector_start_run('stock', tenant_id => 't1')});
compare_metrics('with a dead event and a run', 95);
like(get('exporter', '/metrics'), qr/^projector_run_progress_ratio\{.*\} 0$/m, 'the run is shown');
sql(q{DELETE FROM bad});
sql(q{SELECT projector_requeue('stock'), projector_requeue('followed')});
set_workers('on');
wait_until(q{count(*) = 0 FROM projector.problems});

# ---- Prometheus ----

my $impatient = $rules;
is($impatient =~ s/^( +for:) \S+$/$1 0s/mg, scalar @alerts, 'the copy of the rules does not wait');
is($impatient =~ s/(lag_seconds|tail_blocked_seconds) > 60\b/$1 > 2/g, 2, 'and has lower thresholds');
write_file('rules.yaml', $impatient);
my $config = write_file('prometheus.yaml', <<"EOC");
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 500ms}
rule_files: [rules.yaml]
scrape_configs:
  - job_name: postgresql
    static_configs: [{targets: ['127.0.0.1:$port{exporter}']}]
  - job_name: node
    static_configs: [{targets: ['127.0.0.1:$port{node}']}]
    metric_relabel_configs: [{source_labels: [__name__], regex: 'node_textfile.*', action: keep}]
EOC
promtool('promtool accepts the configuration', qw(check config), $config);
start_program('prometheus', 'prometheus', "--config.file=$config", "--storage.tsdb.path=$dir/prometheus",
	"--web.listen-address=127.0.0.1:$port{prometheus}", '--log.level=warn');
my $first = time;
ok(eventually(sub { @{ ask('/api/v1/query', query => 'projector_database_log_events')->{data}{result} // [] } == 2 }), 'Prometheus has the metrics of both databases')
  or BAIL_OUT('there is nothing to watch');
ok(eventually(sub { @{ ask('/api/v1/query', query => 'node_textfile_mtime_seconds')->{data}{result} // [] } == 2 }), 'and the age of their files');
clears('nothing is wrong');

# ---- one problem after another ----

sql(q{INSERT INTO bad VALUES (13)});
sql(q{SELECT projector_append('t1', 'a', 'Moved', '{"qty": 13}')});
fires('ProjectorDeadEvents stock', 'a poison event');
fires('ProjectorEventsFail followed', 'where it is tried again');
like(firing()->{'ProjectorDeadEvents stock'}{annotations}{description} // '', qr/^1 events of projection stock in database shop /, 'the alert says what happened');
sql(q{DELETE FROM bad});
sql(q{SELECT projector_requeue('stock'), projector_requeue('followed')});
clears('the cause is gone');

set_workers('off');
sql(q{SELECT projector_start_run('stock', tenant_id => 't1')});
sql(q{SELECT projector_append('t' || i % 5, 'b' || i, 'Moved', '{"qty": 1}') FROM generate_series(1, 10001) i});
fires('ProjectorNoWorker stock', 'no worker');
fires('ProjectorNoWorker followed', 'no worker');
fires('ProjectorOutboxGrows stock', 'a full outbox');
fires('ProjectorLag stock', 'a lag');
is(sql(q{SELECT outbox_pending, lag_events FROM projector.metrics WHERE projection_name = 'stock'}), '10000|10000', 'counts stop at 10,000');
ok(!grep({ /^ProjectorTailBlocked/ } keys %{ firing() }), 'that is no open transaction');
set_workers('on');
clears('with workers');

my ($in, $out) = ("BEGIN;\nSELECT projector_append('t9', 'a', 'Moved', '{\"qty\": 1}');\n", '');
my $session = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('shop') ], '<', \$in, '>', \$out, '2>&1', IPC::Run::timeout($timeout));
$session->pump until $out =~ /^1$/m;
sql(q{SELECT projector_append('t1', 'c', 'Moved', '{"qty": 1}')});
fires('ProjectorTailBlocked shop', 'an open transaction');
fires('ProjectorLag followed', 'which others wait for');
ok(!firing()->{'ProjectorLag stock'}, 'a projection with a queue does not wait for it');
$in .= "ROLLBACK;\n\\q\n";
$session->finish;
clears('the transaction has ended');

sql('INSERT INTO bad VALUES (7)');
sql(q{SELECT projector_start_run('stock', tenant_id => 't1')});
fires('ProjectorRunFailed stock', 'a failed run');
sql('DELETE FROM bad');
sql(q{SELECT projector_start_run('stock', tenant_id => 't1')});
clears('the next run succeeds');

sql(q{UPDATE projector.projections SET options = options || '{"colour": "red"}' WHERE name = 'stock'}, 'other');
fires('ProjectorCannotRun stock', 'an unknown option');
is(firing()->{'ProjectorCannotRun stock'}{labels}{datname}, 'other', 'the alert names the database');
sql(q{SELECT projector_alter('stock', '{"options": {"colour": null}}')}, 'other');
clears('the option is gone');

sql(q{SELECT projector_pause('stock')}, 'other');
fires('ProjectorPaused stock', 'a pause');
sql(q{SELECT projector_resume('stock')}, 'other');
clears('it goes on');

$node->stop;
fires("ProjectorMetricsAbsent $_", 'the server is down') foreach qw(shop other);
$node->start;
clears('the server is up');

utime time - 3600, time - 3600, "$dir/textfile/projector-shop.prom";
fires('ProjectorMetricsOld file', 'nobody writes the file');
write_textfile('shop');
clears('the file is new');
is(join(', ', grep { !$fired{$_} } map { /^(\w+)/ } @alerts), '', 'every alert has fired');

# ---- the dashboard ----

my $dashboard = decode_json(slurp_file('monitoring/grafana-dashboard.json'));
my @queries;
foreach my $panel (@{ $dashboard->{panels} })
{
	push @queries, map { [ $panel->{title}, $_->{expr} ] } @{ $panel->{targets} // [] };
}
push @queries, map { [ $_->{name}, $_->{expr} ] } @{ $dashboard->{annotations}{list} };
push @queries, map { [ "variable $_->{name}", $_->{query}{query} =~ s/^label_values\((.*), (\w+)\)$/count by ($2) ($1)/r ] }
  grep { $_->{type} eq 'query' } @{ $dashboard->{templating}{list} };
cmp_ok(scalar @queries, '>', 40, 'the dashboard has queries');
foreach my $query (@queries)
{
	my ($title, $expr) = @$query;
	$expr =~ s/\$__rate_interval/10s/g;
	$expr =~ s/"\$(instance|datname|projection)"/".*"/g;
	my $answer = ask('/api/v1/query_range', query => $expr, start => $first, end => time, step => 1);
	is($answer->{status} . ($answer->{error} // ''), 'success', "$title: the query runs");
	cmp_ok(scalar @{ $answer->{data}{result} // [] }, '>', 0, "$title: there is data") or diag($expr);
}

# Every panel is in its place, and uses the data source that the reader chooses.
my (%ids, %cells, @wrong);
foreach my $panel (@{ $dashboard->{panels} })
{
	my $at = $panel->{gridPos};
	push @wrong, "$panel->{title}: its id is used twice" if $ids{ $panel->{id} }++;
	push @wrong, "$panel->{title}: too wide" if $at->{x} + $at->{w} > 24;
	foreach my $x ($at->{x} .. $at->{x} + $at->{w} - 1)
	{
		push @wrong, map { "$panel->{title}: on top of another" } grep { $cells{"$x $_"}++ } $at->{y} .. $at->{y} + $at->{h} - 1;
	}
	push @wrong, map { "$panel->{title}: a fixed data source" }
	  grep { $_->{datasource}{uid} ne '${datasource}' } @{ $panel->{targets} // [] };
}
is(join("\n", @wrong), '', 'the panels are laid out');

note(sprintf '%.0f seconds', time - $began);
$node->stop;
done_testing();
