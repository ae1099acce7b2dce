# Large rebuilds: killed, cancelled, while a worker runs, and of a log that was
# tampered with.  Memory does not grow with the number of events.
use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;
use Time::HiRes qw(time usleep);

plan skip_all => 'memory is measured by /proc' if !-r '/proc/self/status';

my $aggregates = 3_000;
my $each = 100;
my $many = $aggregates * $each;

# Few shared buffers, because a process's memory includes those it has touched.
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
shared_buffers = 16MB
restart_after_crash = on
fsync = off
autovacuum = off
max_wal_size = 4GB
EOC
$node->start;
use_node($node);

# The handler's rows show events that were applied twice or out of order; it waits
# at an event if the test asks for it.
sql(<<'EOS');
CREATE EXTENSION projector;
CREATE TABLE folded (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, chain text NOT NULL DEFAULT '',
    last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE handled (tenant_id text, id text, n bigint, chain text, PRIMARY KEY (tenant_id, id));
CREATE TABLE linger (id text);
CREATE FUNCTION handle(e projector.event) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO handled AS h VALUES (e.tenant_id, e.aggregate_id, e.sequence_number, md5(e.sequence_number::text))
    ON CONFLICT (tenant_id, id) DO UPDATE SET n = h.n + excluded.n, chain = md5(h.chain || excluded.n);
    IF EXISTS (SELECT FROM linger l WHERE l.id = e.aggregate_id) AND projector_is_replay() THEN
        PERFORM pg_sleep(1000);
    END IF;
END $$;
CREATE FUNCTION next_chain(chain text, n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT md5(chain || n)';
CREATE AGGREGATE chain(bigint) (SFUNC = next_chain, STYPE = text, INITCOND = '');
CREATE VIEW oracle AS
    SELECT tenant_id::text, aggregate_id::text AS id, sum(sequence_number)::bigint AS n, chain(sequence_number ORDER BY sequence_number) AS chain
    FROM projector.events WHERE event_type = 'N' GROUP BY 1, 2;
CREATE VIEW differences AS
    (TABLE handled EXCEPT ALL TABLE oracle) UNION ALL (TABLE oracle EXCEPT ALL TABLE handled);
SELECT projector_create('handled', handler => 'handle', targets => '{handled}', event_types => '{N}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT t, 'item-' || a, n, 'N', '{}' FROM unnest('{acme,beta}'::text[]) t, generate_series(1, 20) a, generate_series(1, 100) n ORDER BY n;
EOS
comes_true('count(*) = 0 FROM projector.apply_outbox', 'the events are applied');
is(sql('SELECT count(*) FROM differences'), '0', 'correctly');
sql("UPDATE handled SET n = -1 WHERE tenant_id = 'acme'");
sql('CREATE TABLE before AS SELECT * FROM handled');
my $same = <<'EOS';
SELECT (SELECT count(*) FROM (TABLE handled EXCEPT ALL TABLE before) d), (SELECT count(*) FROM handled),
    (SELECT count(*) FROM projector.offsets WHERE last_sequence_number = 100), (SELECT count(*) FROM projector.apply_outbox)
EOS
is(sql($same), '0|40|40|0', 'some rows are wrong');

# ---- killed, and cancelled ----

# Start a rebuild that gets stuck in the middle of it.
sub start_stuck
{
	my ($out, $err) = @_;
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "SELECT projector_rebuild('handled', 'acme')" ],
		'>', $out, '2>', $err);

	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
	  or die 'the rebuild did not start';
	return ($run, sql("SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep'"));
}

sql("INSERT INTO linger VALUES ('item-5')");
my ($out, $err) = ('', '');
my ($run, $pid) = start_stuck(\$out, \$err);
is(sql($same), '0|40|40|0', 'others see nothing of a rebuild');
my $start = time;
sql("SELECT pg_cancel_backend($pid)");
IPC::Run::finish($run);
cmp_ok(time - $start, '<', 2, 'cancelled, it ends at once');
like($err, qr/canceling statement due to user request/, 'and says so');
is(sql($same), '0|40|40|0', 'nothing has changed');
is(sql('SELECT count(*) FROM projector.failures'), '0', 'and nobody is blamed');

# the worker continues with other tenants, and with this one afterwards
($run, $pid) = start_stuck(\$out, \$err);
sql("SELECT projector_append(t, 'item-1', 'N', '{}') FROM unnest('{acme,beta}'::text[]) t");
comes_true("n = 5151 FROM handled WHERE tenant_id = 'beta' AND id = 'item-1'", 'another tenant goes on');
is(sql("SELECT n FROM handled WHERE tenant_id = 'acme' AND id = 'item-1'"), '-1', 'this one waits');
is(sql('SELECT tenant_id, sequence_number FROM projector.outbox'), 'acme|101', 'in the outbox');

# killed
kill 'KILL', $pid;
IPC::Run::finish($run);
ok($node->poll_query_until('postgres', 'SELECT true'), 'killed, and the server is back');
comes_true('count(*) = 0 FROM projector.apply_outbox', 'the event that waited is applied');
is( sql("SELECT count(*) FROM handled h JOIN before b USING (tenant_id, id) WHERE tenant_id = 'acme' AND h.n = CASE id WHEN 'item-1' THEN 100 ELSE -1 END"),
	'20', 'nothing else has changed');
is(sql("SELECT count(*), sum(last_sequence_number) FROM projector.offsets"), '40|4002', 'the offsets neither');

# now complete it; the worker applies events appended in between
sql('DELETE FROM linger');
($run, $out, $err) = (undef, '', '');
my $in = "BEGIN;\nSELECT projector_rebuild('handled', 'acme');\n";
$run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<', \$in, '>', \$out, '2>', \$err);
$run->pump until $out =~ /\d+\n/;
like($out, qr/^2001$/m, 'a rebuild in a transaction');
sql("SELECT projector_append(t, 'item-2', 'N', '{}') FROM unnest('{acme,beta}'::text[]) t");
comes_true("n = 5151 FROM handled WHERE tenant_id = 'beta' AND id = 'item-2'", 'another tenant goes on while it is open');
is(sql("SELECT n FROM handled WHERE tenant_id = 'acme' AND id = 'item-2'"), '-1', 'this one waits');
$in .= "COMMIT;\n\\q\n";
$run->finish;
comes_true('count(*) = 0 FROM projector.apply_outbox', 'and goes on when it has committed');
is(sql('SELECT count(*) FROM differences'), '0', 'all is what the log says');

# ---- memory ----

sql("SELECT projector_set_mode('handled', 'off')");
sql("SET projector.autostart = off; INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload)
    SELECT 'large', 'item-' || a, n, 'M', '{\"n\": 1}' FROM generate_series(1, $each) n, generate_series(1, $aggregates) a ORDER BY n");
sql(<<'EOS');
SELECT projector_create('folded', targets => '{folded}', event_types => '{M}', mode => 'off',
    fold_columns => '{"n": "s.n + (e.payload->>''n'')::bigint", "chain": "md5(s.chain || e.sequence_number)"}');
EOS

# The peak memory of a new process that runs a command, above its initial memory, in kB.
sub growth
{
	my ($command) = @_;
	my ($in, $out, $err) = ("SELECT count(*) FROM folded;\nSELECT 'pid ' || pg_backend_pid();\n", '', '');
	my $run = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<', \$in, '>', \$out, '2>', \$err);
	$run->pump until $out =~ /pid (\d+)\n/;
	my ($pid) = $out =~ /pid (\d+)/;
	my ($first) = slurp_file("/proc/$pid/status") =~ /^VmHWM:\s+(\d+) kB/m;
	$out = '';
	$in .= "$command;\nSELECT 'done';\n";
	$run->pump until $out =~ /done\n/ || $err =~ /ERROR/;
	my ($last) = slurp_file("/proc/$pid/status") =~ /^VmHWM:\s+(\d+) kB/m;
	my ($result) = $out =~ /^(\d+)\n/;
	$in .= "\\q\n";
	$run->finish;
	note("$command: from $first to $last kB");
	return ($last - $first, $result // $err);
}
my ($growth, $applied) = growth("SELECT projector_rebuild('folded', 'large')");
is($applied, $many, "$many events in one transaction");
cmp_ok($growth, '<', 100_000, 'in less than 100 MB');
is(sql('SELECT count(*), sum(n), count(DISTINCT chain) FROM folded'), "$aggregates|$many|1", 'correctly');
sql("SELECT projector_set_mode('folded', 'off')");
sql("SELECT projector_alter('folded', '{\"options\": {\"on_rebuild_error\": \"hold\", \"batch_size\": 100}}')");
($growth, $applied) = growth("SELECT projector_rebuild('folded', 'large')");
is($applied, $many, 'the same in subtransactions, of small batches');
cmp_ok($growth, '<', 100_000, 'in less than 100 MB');
is(sql('SELECT count(*), sum(n), count(DISTINCT chain) FROM folded'), "$aggregates|$many|1", 'correctly');

# cancelling a fast one works too, at any point
for my $ms (10, 50, 150)
{
	$start = time;
	like(error_of("SET statement_timeout = $ms; SELECT projector_rebuild('folded', 'large')"), qr/^57014/, "cancelled after $ms ms");
	cmp_ok(time - $start, '<', 2 + $ms / 1000, 'at once');
	is(sql('SELECT count(*), sum(n), count(DISTINCT chain) FROM folded'), "$aggregates|$many|1", 'nothing has changed');
}

# ---- tampered with ----

my $tamper = "SET session_replication_role = replica; ";
sql("SELECT projector_set_mode('handled', 'async')");
comes_true('count(*) = 0 FROM projector.apply_outbox', 'all is applied');
comes_true("count(*) = 0 FROM projector.projection_cursors WHERE tenant_id IN ('acme', 'beta') AND state NOT IN ('live', 'stopped')", 'the log has been read');
sql('DROP TABLE before');
sql('CREATE TABLE before AS SELECT * FROM handled');
sql("$tamper UPDATE projector.events SET payload = '{\"n\": 2}' WHERE tenant_id = 'acme' AND aggregate_id = 'item-7' AND sequence_number = 50");
like(error_of("SELECT projector_rebuild('handled', 'acme')"), qr/^PJ003: .*item-7/, 'a changed payload is found');
is(sql('SELECT count(*) FROM (TABLE handled EXCEPT ALL TABLE before) d'), '0', 'and nothing is changed');
is(sql("SELECT projector_rebuild('handled', 'beta')"), '2002', 'another tenant can be rebuilt');
like(error_of("SELECT projector_rebuild('handled')"), qr/^PJ003/, 'all of them cannot');
for my $gone ("sequence_number = 50", "sequence_number = 1", "sequence_number BETWEEN 50 AND 52")
{
	sql("$tamper UPDATE projector.events SET payload = '{}' WHERE tenant_id = 'acme' AND aggregate_id = 'item-7' AND sequence_number = 50");
	is( error_of("BEGIN; $tamper DELETE FROM projector.events WHERE tenant_id = 'acme' AND aggregate_id = 'item-7' AND $gone;
		SET LOCAL session_replication_role = origin; SELECT projector_rebuild('handled', 'acme')") =~ /^PJ007: .*item-7/ ? 'found' : 'not found',
		'found', "missing is found: $gone");
}
is(sql("SELECT projector_rebuild('handled', 'acme')"), '2002', 'put back, it works');
is(sql('SELECT count(*) FROM differences'), '0', 'and all is what the log says');

my $log = slurp_file($node->logfile);
ok($log !~ /leak|not closed|PANIC|TRAP|still referenced/, 'nothing has leaked');
is(scalar(() = $log =~ /terminated by signal/g), 1, 'and nothing crashed but what was killed');
$node->stop;
done_testing();
