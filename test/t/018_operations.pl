# docs/operations.md: every statement on the page is run in the situation it is for, and has
# the effect the page describes.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.naptime = '100 ms'
max_prepared_transactions = 5
fsync = off
EOC
$node->start;
use_node($node);

# The page: its statements by heading, in order.
my (%page, $heading, $block);
foreach my $line (split /\n/, slurp_file('docs/operations.md'))
{
	if ($line =~ /^#+ (.*)/) { $heading = $1; }
	elsif ($line =~ /^```sql/) { $block = ''; }
	elsif ($line =~ /^```/ && defined $block) { push @{ $page{$heading} }, $block; undef $block; }
	elsif (defined $block) { $block .= "$line\n"; }
}

# Run the next block of a section unchanged, statement by statement, as psql does.
my $run = 0;
sub page
{
	my ($of) = @_;
	my $text = shift @{ $page{$of} } or die "no more statements under \"$of\"";
	my ($out, $err);
	is($node->psql('postgres', $text, stdout => \$out, stderr => \$err, on_error_stop => 1), 0, "$of: the statements run") or diag($err);
	$run++;
	return $out;
}

sql('CREATE EXTENSION projector');
sql($STOCK);
sql(<<'EOS');
SELECT projector_create('inventory.stock', targets => '{stock}', options => '{"max_attempts": 1}',
	fold_columns => '{"on_hand": "s.on_hand + good((e.payload->>''qty'')::bigint)"}');
SELECT projector_append('acme', 'item-1', 'Received', '{"qty": 5}'), projector_append('acme', 'item-3', 'Received', '{"qty": 1}');
EOS
my $wait = q{projector_wait('inventory.stock', 'acme', 'item-1', };
is(sql("SELECT $wait 1, '60 s')"), 'applied', 'the projection works');

my $first = 'Operations: what to do at 3 a.m.';
like(page($first), qr/^inventory.stock\|async\|ok\|0\|0\|\|0\|$/, 'nothing to tell');
unshift @{ $page{$first} }, "SELECT * FROM projector.status;\nSELECT * FROM projector.problems;\n";

# ---- dead items ----

sql(q{INSERT INTO bad VALUES (7), (13); SELECT projector_append('acme', 'item-1', 'Received', '{"qty": 7}'), projector_append('acme', 'item-2', 'Received', '{"qty": 13}')});
comes_true("count(*) = 2 FROM projector.outbox WHERE status = 'dead'", 'two events are dead');
is(scalar(() = slurp_file($node->logfile) =~ /WARNING:  projection "inventory.stock": event \d+ of .*: dead$/mg), 1, 'people are told once, not once per event');
like(page($first), qr/^inventory.stock\|async\|blocked\|1\|.*\|2\|event 2 of.*\ncritical\|dead\|inventory.stock\|acme\|.*\|2\|event \d of item-\d is dead: bad quantity/s, 'that is told at once');
like(page('Dead items grow'), qr/item-1\|2.*item-2\|1.*P0001\|bad quantity/s, 'and what they are');
like(page('The lag rises'), qr/inventory.stock\|acme\|async\|blocked\|event \d of .*\|2\|.*\|2\|bad quantity.*\|dead\|/s, 'it is a lag, too');
like(page('The lag rises'), qr/^\s*t$/, 'more workers can be had');
comes_true("count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'projector worker'", 'and come');
like($node->safe_psql('postgres', "SELECT $wait 2, '0')"), qr/blocked/, 'who waits is told');
sql('DELETE FROM bad WHERE qty = 7');
like(page('Dead items grow'), qr/inventory.stock\|acme\|item-1\|2.*applied/s, 'what is mended is applied');
comes_true("count(*) = 1 FROM projector.outbox WHERE status = 'dead'", 'the other is dead again');
is(page('Dead items grow'), 't', 'and is passed over');
comes_true("NOT EXISTS (SELECT FROM projector.outbox)", 'nothing is left');
is(sql('SELECT count(*) FROM projector.problems'), '0', 'nothing to tell');

# ---- a wait that times out ----

sql(q{SELECT projector_pause('inventory.stock', 'acme', 'a test')});
sql(q{SELECT projector_append('acme', 'item-1', 'Received', '{"qty": 1}')});
is(sql("SELECT $wait 3)"), 'paused', 'who waits is told of a pause');
like(sql('SELECT problem, detail, remedy FROM projector.problems'), qr/^paused\|by .*: a test\|SELECT projector_resume/, 'and so is who asks');
like(page('Wait times out'), qr/^applied\n1\|.*paused\|by .*: a test\n.*pending/s, 'the lag and the event are shown');
sql(q{SELECT projector_resume('inventory.stock', 'acme')});
is(sql("SELECT $wait 3, '60 s')"), 'applied', 'then it is applied');

# ---- an open transaction ----

sql(q{SELECT projector_set_mode('inventory.stock', 'follow')});
sql(q{BEGIN; SELECT projector_append('other', 'x', 'Received', '{"qty": 1}'); PREPARE TRANSACTION 'forgotten'});
sql(q{SELECT projector_append('acme', 'item-1', 'Received', '{"qty": 1}')});
comes_true(q{EXISTS (SELECT FROM projector.problems WHERE problem = 'open_transaction' AND detail LIKE 'prepared transaction ''forgotten''%')},
	'a transaction that holds back the log is named');
is(sql(q{SELECT state, why LIKE 'prepared transaction ''forgotten'' has an open transaction%' FROM projector.status_by_tenant WHERE tenant_id = 'acme'}), 'waiting|t',
	'and the state says that it is waited for');
like(page('A transaction does not end'), qr/^\w+\|[^|]+\|prepared transaction 'forgotten'[^|]*\|.*ROLLBACK PREPARED/, 'and the remedy ends it');
sql(q{ROLLBACK PREPARED 'forgotten'});
is(sql("SELECT $wait 4, '60 s')"), 'applied', 'without it, it goes on');
sql(q{SELECT projector_set_mode('inventory.stock', 'async')});
comes_true("count(*) = 0 FROM projector.status_by_tenant WHERE cursor_state <> 'live'", 'all is well again');

# ---- a worker that cannot keep up ----

sql(q{ALTER SYSTEM SET projector.lag_warning = 0});
sql(q{SELECT pg_reload_conf()});
sql(q{BEGIN; LOCK TABLE stock IN EXCLUSIVE MODE; PREPARE TRANSACTION 'lock'});
sql(q{SELECT projector_append('acme', 'item-9', 'Received', '{"qty": 1}')});
comes_true(q{EXISTS (SELECT FROM projector.status_by_tenant WHERE tenant_id = 'acme' AND state = 'lagging' AND worker_pid IS NOT NULL)},
	'events that wait for long are a lag');
is(sql(q{SELECT problem, remedy FROM projector.problems}), q{lagging|SELECT projector_drain('inventory.stock', 'acme')}, 'which is a problem');
sql(q{ROLLBACK PREPARED 'lock'});
is(sql(q{SELECT projector_wait('inventory.stock', 'acme', 'item-9', 1, '60 s')}), 'applied', 'until they are applied');
sql(q{ALTER SYSTEM RESET projector.lag_warning});
sql(q{SELECT pg_reload_conf()});

# ---- a digest ----

sql(q{UPDATE stock SET on_hand = 1000 WHERE item_id = 'item-1'});
like(page('A digest differs'), qr/^inventory.stock\|acme\nacme\|f\|1\|.*1000/s, 'a change by hand is found');
like(page('A digest differs'), qr/^(Received\|.*\n){4}4\nt$/, 'explained, and mended');
like(page('A digest differs'), qr/^\d+$/m, 'a run is started');
comes_true('NOT EXISTS (SELECT FROM projector.progress)', 'and ends');
is(sql('SELECT DISTINCT state FROM projector.runs'), 'completed', 'well');
is(sql(q{SELECT on_hand FROM stock WHERE item_id = 'item-1'}), '14', 'the read model is right');

# ---- a run that fails ----

sql('INSERT INTO bad VALUES (7)');
sql(q{SELECT projector_start_run('inventory.stock', tenant_id => 'acme')});
comes_true("EXISTS (SELECT FROM projector.problems WHERE problem = 'run_failed')", 'a run that fails is told');
like(page('A run has failed'), qr/inventory.stock\|acme\|rebuild\|P0001\|bad quantity 7\|.*event 2 \(Received\) of aggregate "item-1"/s, 'with the event');
is(sql(q{SELECT on_hand FROM stock WHERE item_id = 'item-1'}), '14', 'the read model is as it was');
like(page('A run has failed'), qr/\d/, 'it is started again, to go on without');
comes_true('NOT EXISTS (SELECT FROM projector.progress)', 'and ends');
is(sql(q{SELECT state FROM projector.runs ORDER BY id DESC LIMIT 1}), 'completed', 'well');
is(sql(q{SELECT item_id, on_hand FROM stock ORDER BY 1}), "item-1|5\nitem-3|1\nitem-9|1", 'without what came after');
sql('DELETE FROM bad');
sql(q{SELECT projector_requeue(projection_name, tenant_id, aggregate_id, sequence_number) FROM projector.outbox WHERE status IN ('failed', 'dead')});
is(sql("SELECT $wait 4, '60 s')"), 'applied', 'which follows once that is mended');
is(sql(q{SELECT on_hand FROM stock WHERE item_id = 'item-1'}), '14', 'the read model is right');

# ---- disk, and workers ----

like(page('The disk grows'), qr/^(?=.*^events\|)(?=.*^apply_outbox\|)/ms, 'the tables are listed');
page('The disk grows');
sql(q{SELECT projector_worker_stop()});
sql(q{SELECT projector_append('acme', 'item-1', 'Received', '{"qty": 1}')});
is(sql('SELECT problem, remedy FROM projector.problems'), 'no_worker|SELECT projector_worker_start()', 'no worker: that is told');
like(page('A worker is absent'), qr/projector launcher/s, 'who is there, and the settings');
like(page('A worker is absent'), qr/^[12]\n\d+$/, 'one comes, or it is done here');
is(sql("SELECT $wait 5, '60 s')"), 'applied', 'the event is applied');

# ---- what is missing, and owners ----

sql(q{UPDATE projector.projections SET options = options || '{"colour": "red"}' WHERE name = 'inventory.stock'});
is(page('A projection cannot run'), 'inventory.stock|cannot run: unknown option "colour"', 'a projection that cannot run says why');
page('A projection cannot run');
is(sql(q{SELECT DISTINCT why FROM projector.status_by_tenant WHERE projection_name = 'inventory.stock'}), '', 'it can again');
sql(q{CREATE ROLE old_owner; CREATE ROLE new_owner; ALTER TABLE stock OWNER TO old_owner; GRANT SELECT ON bad TO old_owner, new_owner});
sql(q{SELECT projector_alter('inventory.stock', '{"owner": "old_owner"}')});
sql(q{SELECT projector_append('acme', 'item-1', 'Received', '{"qty": 1}')});
is(sql("SELECT $wait 6, '60 s')"), 'applied', 'it runs as a role of its own');
like(page('A role that owns projections goes away'), qr/inventory.stock/, 'its projections are given away');
sql(q{SELECT projector_append('acme', 'item-1', 'Received', '{"qty": 1}')});
is(sql("SELECT $wait 7, '60 s')"), 'applied', 'and go on as the new owner');
is(sql(q{SELECT owner FROM projector.projections WHERE name = 'inventory.stock'}), 'new_owner', 'whose name is noted');

is(page('Metrics are absent'), "ok|\nt", 'the metrics can be read');

# ---- crashes, and what is missing from the log ----

like(page('A worker does not move, or the server crashes again and again'), qr/^\d+\|[^|]*\|f\|\|$/m, 'workers are marked, none is cautious');
is(page('Events are missing from the log'), '', 'nothing is missing from the log');
is(join(', ', map { "$_: " . @{ $page{$_} } . ' left' } grep { @{ $page{$_} } } sort keys %page), '', 'every statement of the page has been run');
note("$run blocks of statements");
$node->stop;
done_testing();
