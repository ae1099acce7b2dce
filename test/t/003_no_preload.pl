# A server that does not preload the library: CREATE EXTENSION is enough, and no
# session can set our settings before the library is loaded.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
# what a worker does without preloading is in 010_autostart.pl
$node->append_conf("postgresql.conf", "projector.enabled = off");
$node->start;

is($node->safe_psql('postgres', 'SHOW shared_preload_libraries'), '', 'nothing is preloaded');
$node->safe_psql('postgres', 'CREATE EXTENSION projector');
$node->safe_psql('postgres', q{
	CREATE TABLE balance (tenant_id text, aggregate_id text, total bigint, tenant text,
		PRIMARY KEY (tenant_id, aggregate_id));
	CREATE FUNCTION apply_balance(e projector.event) RETURNS void LANGUAGE sql AS $$
		INSERT INTO balance AS b VALUES (e.tenant_id, e.aggregate_id, e.payload::bigint,
			current_setting('projector.tenant_id'))
		ON CONFLICT (tenant_id, aggregate_id) DO UPDATE SET total = b.total + excluded.total
	$$;
});

# Each call is a session of its own, with the library not loaded yet.
$node->safe_psql('postgres', q{SELECT projector_create('balance', handler => 'apply_balance', targets => '{balance}', mode => 'inline')});
is($node->safe_psql('postgres', q{SELECT projector_append('t', 'a', 'Added', '1')}), '1', 'append');
is($node->safe_psql('postgres', 'TABLE balance'), 't|a|1|t', 'applied inline');
$node->safe_psql('postgres', q{INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) VALUES ('t', 'a', 2, 'Added', '2')});
is($node->safe_psql('postgres', 'TABLE balance'), 't|a|3|t', 'a plain INSERT too');
$node->safe_psql('postgres', q{SELECT projector_set_mode('balance', 'async')});
$node->safe_psql('postgres', q{SELECT projector_append('t', 'a', 'Added', '4')});
is($node->safe_psql('postgres', 'SELECT projector_drain()'), '1', 'drain');
is($node->safe_psql('postgres', 'TABLE balance'), 't|a|7|t', 'applied');
my ($ret, $out, $err) = $node->psql('postgres', q{DELETE FROM projector.events});
isnt($ret, 0, 'the log is append-only');

# A policy relies on projector.tenant_id: a user who sets it before the
# library is loaded must not get past it.
$node->safe_psql('postgres', q{
	CREATE ROLE reader LOGIN;
	ALTER TABLE balance ENABLE ROW LEVEL SECURITY;
	CREATE POLICY own ON balance USING (tenant_id = current_setting('projector.tenant_id', true));
	GRANT SELECT ON balance TO reader;
	GRANT USAGE ON SCHEMA projector TO reader;
	GRANT EXECUTE ON FUNCTION projector_append TO reader;
});
sub as_reader
{
	my ($sql, %options) = @_;
	my ($ret, $out, $err) = $node->psql('postgres', $sql,
		extra_params => [ '-U', 'reader' ], on_error_stop => 0, %options);
	return ($out, $err);
}
($out, $err) = as_reader('SELECT count(*) FROM balance');
is($out, '0', 'without a tenant a reader sees nothing');
# Before the library is loaded the name is an unknown placeholder that anybody
# can set; loading it discards the value.
($out, $err) = as_reader(q{
	SET projector.tenant_id = 't';
	SELECT projector_append('r', 'a', 'Added', '1');
	SELECT count(*) FROM balance;
	SELECT current_setting('projector.tenant_id')});
is((split /\n/, $out)[1], '0', 'once the library is loaded, what a user had set before is gone');
like($err, qr/permission denied to set parameter "projector.tenant_id"/, 'and it is said so');
($out, $err) = as_reader(q{
	SELECT projector_append('r', 'a', 'Added', '1');
	SET projector.tenant_id = 't';
	SELECT count(*) FROM balance});
is((split /\n/, $out)[1], '0', 'with the library loaded it cannot be set');
# A handler always sees the event's tenant.
$node->safe_psql('postgres', q{SELECT projector_set_mode('balance', 'strict')});
($out, $err) = as_reader(q{
	SET projector.tenant_id = 't';
	SELECT projector_append('r', 'b', 'Added', '8')});
is($node->safe_psql('postgres', q{SELECT * FROM balance WHERE aggregate_id = 'b'}), 'r|b|8|r',
	'a handler sees the tenant of the event, whatever the user had set');

# A policy on projector_tenant_id() is always safe: in a session that has not
# loaded the library there is no tenant, whatever it has set.
$node->safe_psql('postgres', q{
	CREATE TABLE kept (tenant_id text, n int);
	INSERT INTO kept VALUES ('t', 1), ('r', 1);
	ALTER TABLE kept ENABLE ROW LEVEL SECURITY;
	CREATE POLICY own ON kept USING (tenant_id = projector_tenant_id());
	GRANT SELECT ON kept TO reader;
});
($out, $err) = as_reader(q{SET projector.tenant_id = 't'; SELECT count(*) FROM balance; SELECT count(*) FROM kept});
is($out, "1\n0", 'a reader who forges the setting gets past a policy on the setting, not past one on the function');
($out, $err) = as_reader(q{SET debug_parallel_query = on; SET force_parallel_mode = on; SET projector.tenant_id = 't'; SELECT count(*) FROM kept});
is($out, '0', 'nor with a parallel plan');

# In a session that never loads the library the name stays a placeholder.  So if
# policies rely on the setting, every session must load the library.
$node->append_conf('postgresql.conf', "session_preload_libraries = 'projector'");
$node->reload;
($out, $err) = as_reader(q{SET projector.tenant_id = 't'; SELECT count(*) FROM balance});
is($out, '0', 'with session_preload_libraries it can never be set');
like($err, qr/permission denied to set parameter/, 'which is refused');
my ($r, $o, $e) = $node->psql('postgres', 'SELECT count(*) FROM balance',
	connstr => $node->connstr('postgres') . " user=reader options='-c projector.tenant_id=t'");
is($o, '0', 'nor in the connection string');

$node->stop;
done_testing();
