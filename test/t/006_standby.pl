# A streaming standby: reading works, appending fails as any write does, and
# after promotion everything continues.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', "shared_preload_libraries = 'projector'\nprojector.enabled = off");
$primary->start;
$primary->safe_psql('postgres', q{
	CREATE EXTENSION projector;
	CREATE TABLE balance (tenant_id text, aggregate_id text, total bigint, PRIMARY KEY (tenant_id, aggregate_id));
	CREATE FUNCTION apply_balance(e projector.event) RETURNS void LANGUAGE sql AS $$
		INSERT INTO balance AS b VALUES (e.tenant_id, e.aggregate_id, e.payload::bigint)
		ON CONFLICT (tenant_id, aggregate_id) DO UPDATE SET total = b.total + excluded.total
	$$;
	SELECT projector_create('balance', handler => 'apply_balance', targets => '{balance}', mode => 'inline');
});
$primary->backup('backup');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

$primary->safe_psql('postgres', q{
	SELECT projector_append('t', 'a', 'Added', to_jsonb(n)) FROM generate_series(1, 4) n;
	SELECT projector_pause('balance');
	SELECT projector_append('t', 'b', 'Added', '5');
});
$primary->wait_for_catchup($standby);

is($standby->safe_psql('postgres', 'SELECT count(*) FROM projector.events'), '5', 'the log can be read');
is($standby->safe_psql('postgres', 'TABLE balance'), 't|a|10', 'and the read model');
is($standby->safe_psql('postgres', 'SELECT aggregate_id, last_sequence_number FROM projector.offsets'), 'a|4', 'and the offsets');
is($standby->safe_psql('postgres', 'SELECT aggregate_id, status FROM projector.outbox'), 'b|pending', 'and the outbox');
is($standby->safe_psql('postgres', 'SELECT projection_name, mode, state FROM projector.progress'), 'balance|backfill|paused', 'and what is to be done');
is($standby->safe_psql('postgres', q{SELECT lag_events, paused FROM projector.metrics WHERE projection_name = 'balance'}), '1|1', 'and the metrics');
is($standby->safe_psql('postgres', q{SELECT tenant_id, state, lag_events FROM projector.metrics_by_tenant}), 't|paused|1', 'by tenant');
like($standby->safe_psql('postgres', 'SELECT projector_openmetrics()'), qr/^projector_lag_events\{.*\} 1$/m, 'as text');
like($standby->safe_psql('postgres', 'SELECT string_agg(action, chr(44) ORDER BY id) FROM projector.audit'), qr/\Acreate,pause\z/, 'and who did what');

foreach my $command (
	q{projector_append('t', 'a', 'Added', '1')},
	q{projector_append('t', 'new', 'Added', '1', expected_version => 0)},
	q{projector_append_batch('t', 'a', '[{"event_type": "Added", "payload": 1}, {"event_type": "Added", "payload": 2}]')},
	q{projector_create('other', handler => 'apply_balance')},
	q{projector_set_mode('balance', 'off')},
	q{projector_pause('balance')},
	q{projector_drop('balance')},
	q{projector_reset('balance', force => true)},
	q{projector_retry('balance', 't', 'b', 1)},
	q{projector_drain()})
{
	my ($ret, $out, $err) = $standby->psql('postgres', "SELECT $command", extra_params => ['-v', 'VERBOSITY=sqlstate']);

	like($err, qr/25006/, "read-only: $command");
}
is($standby->safe_psql('postgres', 'SELECT count(*) FROM projector.events'), '5', 'the standby is still there');
ok(slurp_file($standby->logfile) !~ /terminated by signal|PANIC|TRAP/, 'and nothing crashed');

# The same in a read-only transaction on the primary.
my ($ret, $out, $err) = $primary->psql('postgres', q{BEGIN READ ONLY; SELECT projector_append('t', 'a', 'Added', '1')},
	extra_params => ['-v', 'VERBOSITY=sqlstate']);
like($err, qr/25006/, 'a read-only transaction cannot append');

# The standby takes over.
$primary->stop('fast');
$standby->promote;
is($standby->safe_psql('postgres', q{SELECT projector_append('t', 'a', 'Added', '1')}), '5', 'after promotion an append goes on where the primary stopped');
$standby->safe_psql('postgres', q{SELECT projector_resume('balance')});
$standby->safe_psql('postgres', q{SELECT projector_drain()});
is($standby->safe_psql('postgres', 'SELECT * FROM balance ORDER BY 1, 2'), "t|a|11\nt|b|5", 'and so does apply');
is($standby->safe_psql('postgres', q{SELECT count(*) FROM (SELECT log_seq > lag(log_seq) OVER (PARTITION BY aggregate_id ORDER BY sequence_number) AS rises
	FROM projector.events) x WHERE NOT rises}), '0', 'log_seq rises across the promotion');

$standby->stop;
done_testing();
