# Owns the data of a released version for the tests (test/released/VERSION.sql): how it
# is loaded, and what its read models must be in the end.
#
#   use ReleaseData;
#   load_release($node, 'db', '0.9');         # an assertion
#   settle_release('db');                     # as if it had been made there
#   drains_to_the_oracle('db');               # assertions
#
# The last two use the server of use_node().
package ReleaseData;
use strict;
use warnings;
use Exporter qw(import);
use ProjectorTest;
use Test::More;

our @EXPORT = qw(load_release settle_release drains_to_the_oracle);

# Load the data of a release.
sub load_release
{
	my ($server, $database, $version) = @_;
	# its objects belong to this role
	$server->safe_psql($database, q{DO $$ BEGIN IF to_regrole('postgres') IS NULL THEN CREATE ROLE postgres SUPERUSER; END IF; END $$});
	$server->command_ok([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $server->connstr($database), '-f', "test/released/$version.sql" ],
		"$database: the data is loaded");
	return;
}

# Make the projections live here, as if they had been created in this database.
sub settle_release
{
	my ($database) = @_;
	sql(q{UPDATE projector.projections SET owner_oid = owner::regrole, target_oids = targets::regclass[]::oid[],
		resolved_in = 'projector.projections'::regclass,
		home = (SELECT system_identifier FROM pg_control_system()) || '/' || (SELECT oid FROM pg_database WHERE datname = current_database())}, $database);
	return;
}

# Differences of the read models from the log.
my @models = qw(queued at_once followed switched fresh canary paused built run_often stopped retried dead in_place);
my $oracle = join("\nUNION ALL ", map {
	my ($model, $where) = @$_;
	qq{SELECT '$model', tenant_id, id, o.n, t.n, o.total, t.total FROM $model t FULL JOIN (
		SELECT tenant_id COLLATE "default" AS tenant_id, aggregate_id COLLATE "default" AS id, count(*) AS n,
			sum((payload->>'amount')::bigint)::bigint AS total
		FROM projector.events WHERE $where GROUP BY 1, 2) o USING (tenant_id, id)
		WHERE (o.n, o.total) IS DISTINCT FROM (t.n, t.total)}
} ((map { [ $_, 'true' ] } @models), [ 'strictly', "event_type = 'Checked'" ], [ 'unused', 'false' ], [ 'tried', 'false' ],
	[ 'skipping', "(aggregate_id, sequence_number) <> ('x', 2)" ]));
$oracle .= q{
UNION ALL SELECT 'totals', tenant_id, '', o.n, t.n, o.total, t.total FROM totals t FULL JOIN (
	SELECT tenant_id COLLATE "default" AS tenant_id, count(*) AS n, sum((payload->>'amount')::bigint)::bigint AS total
	FROM projector.events GROUP BY 1) o USING (tenant_id) WHERE (o.n, o.total) IS DISTINCT FROM (t.n, t.total)};

# Repair what makes events fail, let everything run, and compare.
sub drains_to_the_oracle
{
	my ($database) = @_;
	sql(q{TRUNCATE broken; SELECT projector_resume('paused'); SELECT projector_resume('queued', 'globex')}, $database);
	wait_until('count(*) = 0 FROM projector.runs WHERE finished_at IS NULL', $database);
	sql('SELECT count(*) FROM projector_requeue(max_rows => 1000)', $database);
	comes_true(q{count(*) = 0 FROM projector.apply_outbox WHERE shadow IS NULL}, "$database: the backlog drains", $database)
	  or diag(sql('SELECT * FROM projector.problems', $database));
	comes_true(q{bool_and(state = 'live') FROM projector.projection_cursors c JOIN projector.projections p USING (projection_id) WHERE p.mode <> 'shadow'},
		"$database: all pairs are live", $database)
	  or diag(sql('SELECT * FROM projector.status', $database));
	comes_true("count(*) = 0 FROM ($oracle) o", "$database: the read models are what the log says", $database)
	  or diag(sql($oracle, $database));
	is(sql(q{SELECT p.name, v.tenant_id FROM projector.projections p, projector_verify(p.name) v WHERE p.mode NOT IN ('off', 'shadow') AND NOT v.matches}, $database), '',
		"$database: live = rebuilt");
	is(sql(q{SELECT p.name, v.tenant_id FROM projector.projections p, projector_check_digests(p.name) v WHERE p.kind LIKE 'fold%' AND p.mode NOT IN ('off', 'shadow') AND NOT v.matches}, $database), '',
		"$database: the digests are right");
	is(sql('SELECT count(*) FROM projector.missing_events', $database), '0', "$database: no event is missing");
	is(sql('SELECT count(*) FROM projector.projection_run_slices', $database), '0', "$database: nothing is left of the runs");
	return;
}

1;
