# A fold is rebuilt in the background beside the live read model, and merged into it at the end:
# with all kinds of targets, of references to it, and of changes made to it during the run.
use strict;
use warnings;
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ProjectorTest;
use Test::More;
use Time::HiRes qw(time);

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(allows_streaming => 'logical');
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.workers = 2
projector.naptime = 1h
restart_after_crash = on
autovacuum = off
log_statement = none
log_min_messages = warning
EOC
$node->start;
use_node($node);

# ---- the gate: an event with a gate waits while it is closed ----

my ($gate_in, $gate_out) = ('', '');
my $gate;

sub gate
{
	my ($command) = @_;
	$gate_out = '';
	$gate_in .= "$command;\n\\echo gate done\n";
	$gate->pump until $gate_out =~ /gate done/;
	return;
}

sub set_up_gate
{
	my ($database) = @_;
	($gate_in, $gate_out) = ('', '');
	$gate = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr($database) ], '<', \$gate_in, '>', \$gate_out, '2>', \my $err);
	return;
}

my $is_waiting = "EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND (classid, objid, objsubid) = (0, 1, 1) AND NOT granted)";

# ---- runs ----

sub start_run
{
	my ($name, $tenant) = @_;
	return sql("SELECT projector_start_run('$name', tenant_id => '" . ($tenant // 'acme') . "')");
}

# Wait for a run to end, and return its state.
sub ending
{
	my ($id) = @_;
	wait_until("state NOT IN ('queued', 'running') FROM projector.runs WHERE id = $id");
	return sql("SELECT concat_ws(' ', state, error_code, error_message) FROM projector.runs WHERE id = $id");
}

# Objects that must not exist when no run is active.
my $left = <<'EOS';
SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = 'projector'::regnamespace AND relname LIKE 'build%'),
	(SELECT count(*) FROM projector.projection_offsets WHERE projection_id < 0) +
	(SELECT count(*) FROM projector.apply_outbox WHERE projection_id < 0) +
	(SELECT count(*) FROM projector.projection_failures WHERE projection_id < 0),
	(SELECT count(*) FROM projector.projection_cursors WHERE run_id IS NOT NULL),
	(SELECT count(*) FROM pg_type WHERE typname LIKE '%build%')
EOS
sub nothing_left
{
	my ($label) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(sql($left), '0|0|0|0', "$label: nothing is left aside");
}

sub was_aside
{
	my ($id) = @_;
	return sql("SELECT built_aside FROM projector.projection_runs WHERE id = $id");
}

# Rebuild a projection, expecting success.  Returns the run's number.
sub rebuild
{
	my ($name, $label, $tenant) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $id = start_run($name, $tenant);
	is(ending($id), 'completed', "$label: the run completes");
	nothing_left($label);
	return $id;
}

# Remember the exact state of a table, and compare it later.
sub remember
{
	my ($table) = @_;
	sql("SET client_min_messages = warning; DROP TABLE IF EXISTS ${table}_was; CREATE TABLE ${table}_was AS SELECT ctid AS place, t::text AS r FROM $table t");
	return;
}

sub differences
{
	my ($table, $columns) = @_;
	$columns //= 'r';
	return sql("SELECT count(*) FROM (SELECT ctid AS place, t::text AS r FROM $table t) n FULL JOIN ${table}_was w USING ($columns)
		WHERE n.r IS NULL OR w.r IS NULL");
}

# All that has been appended has been applied.
sub settle
{
	wait_until("NOT EXISTS (SELECT FROM projector.apply_outbox) AND NOT EXISTS (SELECT FROM projector.projection_cursors WHERE state <> 'live')");
	return;
}

sql(<<'EOS');
CREATE EXTENSION projector;
CREATE FUNCTION pass(e projector.event) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF e.payload ? 'gate' THEN
		PERFORM pg_advisory_xact_lock_shared(1);
	END IF;
	RETURN 1;
END $$;
-- 10 kB that cannot be compressed
CREATE FUNCTION noise(seed text) RETURNS text LANGUAGE sql IMMUTABLE AS
	$$SELECT string_agg(encode(sha256((seed || i)::bytea), 'base64'), '') FROM generate_series(1, 230) i$$;
EOS
set_up_gate('postgres');

# ---- what a target may look like ----

# From 18 on, a generated column may be one that is not stored.
my ($virtual, $label) = $node->pg_version >= 18 ? ('label text GENERATED ALWAYS AS (id || n) VIRTUAL CHECK (label <> id),', 's.label') : ('', 's.id');

sql(<<'EOS' =~ s/VIRTUAL/$virtual/r =~ s/LABEL/$label/r);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE pair AS (a int, b text);
CREATE TABLE rich (VIRTUAL gone1 int, tenant_id text, n bigint NOT NULL DEFAULT 0, gone2 text DEFAULT 'x', id text,
	wide text, external text, twice bigint GENERATED ALWAYS AS (n * 2) STORED, digest text GENERATED ALWAYS AS (md5(wide)) STORED,
	no bigint GENERATED ALWAYS AS IDENTITY, level positive NOT NULL DEFAULT 1, feeling mood NOT NULL DEFAULT 'ok',
	tags text[] NOT NULL DEFAULT '{}', grid int[], both_ pair, flag char(3), price numeric(10,2) DEFAULT 0, blob bytea, doc jsonb,
	"odd ""name" text, last_event_id uuid, gone3 uuid, last_event_version bigint, CHECK (n >= 0), CHECK (level < 1000),
	PRIMARY KEY (tenant_id, id) INCLUDE (n));
ALTER TABLE rich DROP COLUMN gone1, DROP COLUMN gone2, DROP COLUMN gone3, ALTER external SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX ON rich (tenant_id, lower(id), n);
CREATE INDEX ON rich USING gin (tags);
SELECT projector_create('rich', targets => '{rich}', event_types => '{Rich}', options => '{"batch_size": 7}', fold_columns => $${
	"n": "s.n + (e.payload->>'n')::bigint", "wide": "coalesce(e.payload->>'wide', s.wide)", "external": "repeat('x', 5000)",
	"no": "e.log_seq", "level": "(s.level + 1)::positive", "feeling": "CASE s.feeling WHEN 'sad' THEN 'ok' ELSE 'sad' END::mood",
	"tags": "s.tags || e.sequence_number::text", "grid": "ARRAY[[1, 2], [3, e.sequence_number::int]]", "both_": "ROW(1, e.aggregate_id)::pair",
	"flag": "'f'", "price": "s.price + 0.10", "blob": "sha256(concat(e.payload, LABEL)::bytea)", "doc": "e.payload - 'wide'",
	"odd \"name": "nullif(e.sequence_number::text, '2')"}$$);
SELECT projector_append(t, 'id-' || a, 'Rich', jsonb_build_object('n', n, 'wide', CASE WHEN n = 3 THEN noise(t || a) END))
FROM unnest('{acme,beta}'::text[]) t, generate_series(1, 12) a, generate_series(1, 4) n;
EOS
settle();
sql(q{ALTER TABLE rich ADD later int NOT NULL DEFAULT 7, ADD later_gone text DEFAULT 'x', ADD later_text text DEFAULT 'fast'});
sql(q{ALTER TABLE rich DROP later_gone});
is(sql(q{SELECT count(*) FROM pg_attribute WHERE attrelid = 'rich'::regclass AND atthasmissing AND NOT attisdropped}), '2', 'columns with a fast default');
cmp_ok(sql(q{SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = 'rich'::regclass}), '>', 24 * 10_000, 'values out of line');
remember('rich');
my $id = rebuild('rich', 'all types');
is(was_aside($id), 't', 'all types: built aside');
is(differences('rich', 'place, r'), '0', 'all types: what is right is not touched, not even moved');
sql(<<'EOS');
UPDATE rich SET n = 1000 WHERE id = 'id-1';
UPDATE rich SET wide = noise('other') WHERE id = 'id-2';
UPDATE rich SET wide = NULL, later = 8 WHERE id = 'id-3';
UPDATE rich SET later_text = NULL WHERE id = 'id-4';
UPDATE rich SET feeling = 'happy', both_ = (2, 'x') WHERE id = 'id-5';
UPDATE rich SET tags = '{}', flag = 'g', price = 0.4, no = DEFAULT WHERE id = 'id-6';
UPDATE rich SET last_event_version = 100 WHERE id = 'id-7';
UPDATE rich SET id = 'moved' WHERE id = 'id-8';
DELETE FROM rich WHERE id IN ('id-9', 'id-10');
INSERT INTO rich (tenant_id, id, wide) SELECT t, 'new-' || i, noise('new') FROM generate_series(1, 3) i, unnest('{acme,beta,ghost}'::text[]) t;
EOS
is(differences('rich'), 2 * (8 * 2 + 2) + 9, 'all types: then a lot is wrong');
is(join(' ', map { ending($_) } split /\n/, sql(q{SELECT projector_start_run('rich')})), 'completed completed completed',
	'all types: all tenants are rebuilt, that in the read model only too');
nothing_left('all types');
is(differences('rich'), '0', 'all types: and all is as it was');
sql(q{SELECT projector_append('acme', 'id-1', 'Rich', '{"n": 5}')});
settle();
is(sql(q{SELECT n, twice, later, later_text FROM rich WHERE tenant_id = 'acme' AND id = 'id-1'}), '15|30|7|fast', 'all types: live goes on from there');

# by a function, with an identity of its own
sql(<<'EOS');
CREATE TABLE made (tenant_id text, gone int, wide text, id text, n int CHECK (n < 100), no int GENERATED BY DEFAULT AS IDENTITY, twice int GENERATED ALWAYS AS (n * 2) STORED,
	last_event_id uuid, last_event_version bigint, PRIMARY KEY (id, tenant_id));
ALTER TABLE made DROP gone, ADD later int DEFAULT 7;
CREATE FUNCTION fold_made(s made, e projector.event) RETURNS made STABLE LANGUAGE plpgsql AS $$
BEGIN
	IF e.event_type = 'Unmade' THEN
		RETURN NULL;
	END IF;
	s.tenant_id := e.tenant_id;
	s.id := e.aggregate_id;
	s.n := coalesce(s.n, 0) + 1;
	s.no := e.log_seq;
	s.wide := noise(s.n || s.id);
	s.later := 7;
	RETURN s;
END $$;
SELECT projector_create('made', targets => '{made}', fold => 'fold_made', event_types => '{Made,Unmade}', options => '{"batch_size": 3}');
SELECT projector_append('acme', 'id-' || a, CASE WHEN n > a THEN 'Unmade' ELSE 'Made' END, '{}') FROM generate_series(1, 6) a, generate_series(1, 4) n;
EOS
settle();
remember('made');
is(sql('SELECT count(*) FROM made'), '3', 'a function: some rows are deleted');
rebuild('made', 'a function');
is(differences('made', 'place, r'), '0', 'a function: nothing is touched');
sql(q{UPDATE made SET wide = 'no', later = 8; DELETE FROM made WHERE id = 'id-4'; INSERT INTO made VALUES ('acme', 'x', 'id-1')});
rebuild('made', 'a function');
is(differences('made'), '0', 'a function: all is as it was');

# a row that violates a constraint ends the run, and the read model does not change
sql(q{ALTER TABLE made ADD CHECK (n < 6)});
sql(q{SELECT projector_append('acme', 'id-6', 'Made', '{}') FROM generate_series(1, 2)});
wait_until("EXISTS (SELECT FROM projector.outbox WHERE status = 'failed')");
remember('made');
like(ending(start_run('made')), qr/^failed 23514 .*violates check constraint/, 'a row that is not allowed: the run fails');
nothing_left('a row that is not allowed');
is(differences('made', 'place, r'), '0', 'a row that is not allowed: nothing is touched');
sql(q{SELECT projector_drop('made')});

# ---- keys ----

# Tenant and key of several types, the primary key in both orders.  In "numerics" several aggregates
# share one row, and their keys are equal but written differently; the first one is kept.
my $uuid = '11111111-2222-3333-4444-55555555555';
sql(<<"EOS");
CREATE TABLE uuids (tenant_id uuid, id uuid, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE bigints (id bigint, tenant_id varchar(50), n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (id, tenant_id));
CREATE TABLE chars (tenant_id char(40), id char(6), n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (id, tenant_id));
CREATE TABLE names (tenant_id name, id name COLLATE "C", n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE collated (tenant_id text, id text COLLATE "en-x-icu", n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE DOMAIN code AS varchar(10) CHECK (VALUE <> 'x');
CREATE TABLE domains (tenant_id code, id code, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE enums (tenant_id text, id mood, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (id, tenant_id));
CREATE TABLE arrays (tenant_id text, id text[], n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE numerics (id numeric, tenant_id text, n bigint NOT NULL DEFAULT 0, path text NOT NULL DEFAULT '', last_event_id uuid, last_event_version bigint, last_log_seq bigint,
	PRIMARY KEY (id, tenant_id));
SELECT projector_create(x, targets => ARRAY[x], event_types => ARRAY[x], fold_columns => '{"n": "s.n + 1"}', options => '{"batch_size": 4}')
FROM unnest('{uuids,bigints,chars,names,collated,domains,enums,arrays}'::text[]) x;
SELECT projector_create('numerics', targets => '{numerics}', event_types => '{numerics}', key => '(e.payload->>''k'')::numeric', options => '{"batch_size": 4}',
	fold_columns => '{"n": "s.n + 1", "path": "s.path || (e.payload->>''k'') || '' ''"}');
SELECT projector_append(t, '$uuid' || a, 'uuids', '{}') FROM unnest('{${uuid}a,${uuid}b}'::text[]) t, generate_series(1, 9) a, generate_series(1, 2);
SELECT projector_append(t, a::text, 'bigints', '{}') FROM unnest('{${uuid}a,${uuid}b}'::text[]) t, unnest('{9,10,-1,0,1000000000000,2}'::bigint[]) a, generate_series(1, 2);
SELECT projector_append(t, a, 'chars', '{}') FROM unnest('{${uuid}a,${uuid}b}'::text[]) t, unnest('{a,bb,ccc,B,"a b",aaaaaa}'::text[]) a, generate_series(1, 2);
SELECT projector_append(t, a, 'names', '{}') FROM unnest('{${uuid}a,${uuid}b}'::text[]) t, unnest('{a,bb,ccc,B,"a b",aaaaaa}'::text[]) a, generate_series(1, 2);
SELECT projector_append(t, a, 'domains', '{}') FROM unnest('{a,b}'::text[]) t, unnest('{c,b,B}'::text[]) a, generate_series(1, 2);
SELECT projector_append(t, a, 'enums', '{}') FROM unnest('{${uuid}a,${uuid}b}'::text[]) t, unnest('{happy,ok,sad}'::text[]) a, generate_series(1, 2);
SELECT projector_append(t, a, 'arrays', '{}') FROM unnest('{${uuid}a,${uuid}b}'::text[]) t, unnest('{"{b,a}","{a,b}","{}","{a}"}'::text[]) a, generate_series(1, 2);
SELECT projector_append(t, a, 'collated', '{}') FROM unnest('{${uuid}a,${uuid}b}'::text[]) t, unnest('{a,B,c,ä,Z,z,_x,"a b",ab,a-b}'::text[]) a, generate_series(1, 2);
SELECT projector_append(t, 'n' || i, 'numerics', jsonb_build_object('k', k)) FROM unnest('{${uuid}a,${uuid}b}'::text[]) t,
	unnest('{1.0,1,1.00,20,3,20.000,-1,0.0,0,10,9}'::text[]) WITH ORDINALITY k (k, i) ORDER BY i;
EOS
settle();
is(sql("SELECT id, n, path FROM numerics WHERE tenant_id = '${uuid}a' ORDER BY id"),
	"-1|1|-1 \n0.0|2|0.0 0 \n1.0|3|1.0 1 1.00 \n3|1|3 \n9|1|9 \n10|1|10 \n20|2|20 20.000 ", 'keys: equal numbers are one row');
my %more = (uuids => "${uuid}0", bigints => 77, chars => 'zzz', names => 'zzz', collated => 'zzz', domains => 'zzz', enums => 'ok', arrays => '{zzz}', numerics => 77);
foreach my $table (sort keys %more)
{
	my ($first, $second) = $table eq 'domains' ? ('a', 'b') : ("${uuid}a", "${uuid}b");
	remember($table);
	rebuild($table, "key in $table", $first);
	is(differences($table, 'place, r'), '0', "key in $table: nothing is touched");
	sql("UPDATE $table SET n = 100 WHERE ctid = (SELECT min(ctid) FROM $table); DELETE FROM $table WHERE ctid = (SELECT max(ctid) FROM $table)");
	sql("UPDATE numerics SET id = id + 0.0000") if $table eq 'numerics';
	sql("INSERT INTO $table (tenant_id, id) VALUES ('$first', '$more{$table}') ON CONFLICT DO NOTHING");
	rebuild($table, "key in $table", $_) foreach $first, $second;
	is(differences($table), '0', "key in $table: all is as it was");
}

# more rows than are written at a time
sql(<<'EOS');
CREATE TABLE many (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, place bigint, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id), UNIQUE (place));
SELECT projector_create('many', targets => '{many}', event_types => '{Many}', fold_columns => '{"n": "s.n + 1", "place": "e.log_seq"}');
INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) SELECT 'many', 'id-' || a, 1, 'Many', '{}' FROM generate_series(1, 3500) a;
EOS
settle();
remember('many');
foreach my $wrong ('UPDATE many SET n = 2', 'DELETE FROM many', "INSERT INTO many SELECT 'many', 'new-' || i FROM generate_series(1, 2500) i",
	"UPDATE many SET n = 3 WHERE id LIKE '%1'; DELETE FROM many WHERE id LIKE '%2'; INSERT INTO many SELECT 'many', 'id-' || i || '-' FROM generate_series(1, 2500) i",
	'UPDATE many SET place = -place; UPDATE many m SET place = (SELECT max(-place) + min(-place) FROM many) + place')
{
	sql($wrong);
	rebuild('many', $wrong, 'many');
	is(differences('many'), '0', "$wrong: all is as it was");
}
# The last step has to be short: it must not read rows repeatedly.
sql(q{INSERT INTO projector.events (tenant_id, aggregate_id, sequence_number, event_type, payload) SELECT 'large', 'id-' || a, 1, 'Many', '{}' FROM generate_series(1, 8000) a});
settle();
my $in_foreground = time;
is(sql(q{SELECT projector_rebuild('many', 'large')}), '8000', 'many: rebuilt');
$in_foreground = time - $in_foreground;
$id = rebuild('many', 'many', 'large');
cmp_ok(sql("SELECT extract(epoch FROM finished_at - started_at) FROM projector.runs WHERE id = $id"), '<', 10 * $in_foreground,
	sprintf('many: it takes about as long as in the foreground, %.2f s', $in_foreground));
sql(q{SELECT projector_drop('many')});

# ---- what refers to the target ----

sql(<<'EOS');
CREATE ROLE reader;
CREATE TABLE target (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, place int, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE cascading (tenant_id text, id text, FOREIGN KEY (tenant_id, id) REFERENCES target ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE nulling (tenant_id text, id text, FOREIGN KEY (tenant_id, id) REFERENCES target ON DELETE SET NULL (id));
CREATE VIEW seen AS SELECT * FROM target;
GRANT SELECT ON target TO reader;
GRANT UPDATE (n) ON target TO reader;
COMMENT ON TABLE target IS 'the target';
CREATE TABLE fired (no serial, op text, id text, of_n boolean);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO fired (op, id, of_n) VALUES (tg_op, coalesce(new.id, old.id), tg_name = 'of_n');
	RETURN NULL;
END $$;
SELECT projector_create('target', targets => '{target}', event_types => '{Target}', options => '{"batch_size": 4, "writes": ["cascading", "nulling", "fired"]}',
	fold_columns => '{"n": "s.n + 1", "place": "(e.payload->>''place'')::int"}');
SELECT projector_append('acme', 'id-' || a, 'Target', jsonb_build_object('place', a)) FROM generate_series(1, 9) a;
EOS
settle();
remember('target');
sql(<<'EOS');
INSERT INTO cascading SELECT tenant_id, id FROM target;
INSERT INTO nulling SELECT tenant_id, id FROM target;
UPDATE target SET n = 5 WHERE id IN ('id-2', 'id-3');
INSERT INTO target VALUES ('acme', 'wrong', 1), ('beta', 'other', 1);
INSERT INTO cascading VALUES ('acme', 'wrong'), ('beta', 'other');
INSERT INTO nulling VALUES ('acme', 'wrong');
CREATE TRIGGER every AFTER INSERT OR UPDATE OR DELETE ON target FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER of_n AFTER UPDATE OF n ON target FOR EACH ROW WHEN (old.n <> new.n) EXECUTE FUNCTION note();
EOS
my $identity = <<'EOS';
SELECT c.oid, relfilenode, reltoastrelid, relacl, obj_description(c.oid), (SELECT array_agg(indexrelid ORDER BY 1) FROM pg_index WHERE indrelid = c.oid),
	(SELECT array_agg(t.oid ORDER BY 1) FROM pg_trigger t WHERE tgrelid = c.oid), (SELECT array_agg(attacl::text) FROM pg_attribute WHERE attrelid = c.oid),
	(SELECT count(*) FROM pg_depend WHERE refobjid = c.oid)
FROM pg_class c WHERE oid = 'target'::regclass
EOS
my $same = sql($identity);
$id = rebuild('target', 'references');
is(was_aside($id), 't', 'references: built aside');
is(sql($identity), $same, 'references: it is the same table, with all that belongs to it');
is(sql('SELECT count(*) FROM cascading'), '10', 'references: rows that refer to rows that stay do so, too');
is(sql('SELECT count(id), count(*) FROM nulling'), '9|10', 'references: in every way');
is(sql('SELECT op, id, of_n FROM fired ORDER BY no'), "UPDATE|id-2|f\nUPDATE|id-2|t\nUPDATE|id-3|f\nUPDATE|id-3|t\nDELETE|wrong|f",
	'references: triggers fire for rows that differ');
is(sql("SET ROLE reader; SELECT count(*) FROM target"), '10', 'references: who could read it can');
sql("DELETE FROM target WHERE tenant_id = 'beta'; TRUNCATE fired");
is(differences('target'), '0', 'references: all is as it was');
rebuild('target', 'references');
is(sql('SELECT count(*) FROM fired'), '0', 'references: nothing differs, nothing fires');

# Two rows that swap a unique value, without triggers or references that would see a delete and insert.
sub swap
{
	sql(q{UPDATE target SET place = NULL WHERE id = 'id-1'; UPDATE target SET place = 1 WHERE id = 'id-2'; UPDATE target SET place = 2 WHERE id = 'id-1';
		UPDATE target SET place = -1 WHERE id = 'id-4'; UPDATE target SET place = 4 WHERE id = 'id-3'});
	return;
}
sql('DROP TABLE cascading, nulling; DROP TRIGGER every ON target; DROP TRIGGER of_n ON target; ALTER TABLE target ADD CONSTRAINT one_place UNIQUE (tenant_id, place)');
swap();
is(was_aside(rebuild('target', 'swapped')), 't', 'swapped: built aside');
is(differences('target'), '0', 'swapped: all is as it was');

# A second unique key and triggers: in place, and the triggers see what they see live.
sql(<<'EOS');
CREATE TABLE counted (tenant_id text PRIMARY KEY, n int);
INSERT INTO counted SELECT tenant_id, count(*) FROM target GROUP BY 1;
CREATE FUNCTION count_rows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE counted SET n = n + CASE tg_op WHEN 'INSERT' THEN 1 ELSE -1 END WHERE tenant_id = coalesce(new.tenant_id, old.tenant_id);
	RETURN NULL;
END $$;
CREATE TRIGGER count_rows AFTER INSERT OR DELETE ON target FOR EACH ROW EXECUTE FUNCTION count_rows();
SELECT projector_alter('target', '{"options": {"writes": ["counted", "fired"]}}');
EOS
swap();
is(was_aside(rebuild('target', 'swapped, and counted')), 'f', 'swapped, and counted: not built aside');
is(differences('target'), '0', 'swapped, and counted: all is as it was');
is(sql('SELECT n FROM counted'), sql('SELECT count(*) FROM target'), 'swapped, and counted: the counter is right');
sql('DROP TRIGGER count_rows ON target');

# A second unique key and rows that refer to it: in place, where the foreign key protects them.
sql(q{CREATE TABLE refs (tenant_id text, place int, FOREIGN KEY (tenant_id, place) REFERENCES target (tenant_id, place)); INSERT INTO refs SELECT tenant_id, place FROM target;
	UPDATE target SET n = 100});
$id = start_run('target');
like(ending($id), qr/^failed 23503/, 'swapped, and held: the run fails as projector_rebuild does');
is(was_aside($id), 'f', 'swapped, and held: it is not built aside');
nothing_left('swapped, and held');
is(sql('SELECT count(*) FROM refs r WHERE NOT EXISTS (SELECT FROM target t WHERE (t.tenant_id, t.place) = (r.tenant_id, r.place))'), '0', 'swapped, and held: no reference dangles');
sql(q{DROP TABLE refs});
rebuild('target', 'nothing refers to it any more');
is(differences('target'), '0', 'nothing refers to it any more: all is as it was');

# Conflicts that a build aside cannot see: another row's unique value, or a row of another table.  With
# "hold" the event is held, and the others continue, as in projector_rebuild.
sql(q{SELECT projector_append('acme', 'later-' || a, 'Target', jsonb_build_object('place', a)) FROM generate_series(9, 10) a});
wait_until("EXISTS (SELECT FROM projector.outbox WHERE projection_name = 'target' AND aggregate_id = 'later-9' AND status = 'failed')");
sql(q{SELECT projector_alter('target', '{"options": {"on_rebuild_error": "hold", "retry_base": "1 h", "retry_max": "1 h"}}')});
is(sql(q{SELECT projector_rebuild('target', 'acme')}), '10', 'a unique value that another has: rebuilt, without that event');
my $held = q{SELECT aggregate_id, status FROM projector.outbox WHERE projection_name = 'target'};
is(sql($held), 'later-9|failed', 'a unique value that another has: it is held');
remember('target');
$id = start_run('target');
is(ending($id), 'completed', 'a unique value that another has: the run completes');
nothing_left('a unique value that another has');
is(sql($held), 'later-9|failed', 'a unique value that another has: it is held');
is(differences('target'), '0', 'a unique value that another has: the others are there');
sql(q{SELECT projector_skip('target', 'acme', 'later-9', 1, 'taken')});
settle();
sql('CREATE TABLE places (place int PRIMARY KEY); INSERT INTO places SELECT generate_series(1, 10);
	ALTER TABLE target ADD FOREIGN KEY (place) REFERENCES places');
sql(q{SELECT projector_append('acme', 'id-' || a, 'Target', jsonb_build_object('place', a)) FROM generate_series(11, 12) a});
wait_until("count(*) = 2 FROM projector.outbox WHERE projection_name = 'target' AND status = 'failed'");
is(sql(q{SELECT projector_rebuild('target', 'acme')}), '10', 'a row that does not refer to any: rebuilt, without that event');
remember('target');
$id = start_run('target');
is(ending($id), 'completed', 'a row that does not refer to any: the run completes');
is(sql("$held ORDER BY log_seq"), "id-11|failed\nid-12|failed", 'a row that does not refer to any: it is held');
is(differences('target'), '0', 'a row that does not refer to any: the others are there');
nothing_left('a row that does not refer to any');
sql(q{SELECT projector_drop('target')});

# ---- in place ----

sql(<<'EOS');
CREATE TABLE triggered (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, sum bigint, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION add_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	new.sum := coalesce(new.sum, 0) + new.n;
	RETURN new;
END $$;
CREATE TRIGGER t BEFORE INSERT OR UPDATE ON triggered FOR EACH ROW EXECUTE FUNCTION add_up();
SELECT projector_create('triggered', targets => '{triggered}', event_types => '{Triggered}', options => '{"batch_size": 4}', fold_columns => '{"n": "s.n + 1"}');
CREATE TABLE cleared (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE TABLE clearings (tenant_id text);
CREATE FUNCTION clear_it(tenant_id text) RETURNS void LANGUAGE sql AS
	'DELETE FROM cleared c WHERE c.tenant_id = $1; INSERT INTO clearings VALUES ($1)';
SELECT projector_create('cleared', targets => '{cleared}', event_types => '{Triggered}', options => '{"batch_size": 4, "clear": "clear_it", "writes": ["clearings"]}', fold_columns => '{"n": "s.n + 1"}');
SELECT projector_append('acme', 'id-' || a, 'Triggered', '{}') FROM generate_series(1, 5) a, generate_series(1, 4) n;
EOS
settle();
is(sql('SELECT DISTINCT n, sum FROM triggered'), '4|10', 'a trigger that changes rows');
foreach my $table (qw(triggered cleared))
{
	remember($table);
	sql("UPDATE $table SET n = 100 WHERE id = 'id-2'; DELETE FROM $table WHERE id = 'id-3'; INSERT INTO $table VALUES ('acme', 'wrong')");
	$id = rebuild($table, "$table, in place");
	is(was_aside($id), 'f', "$table, in place: not built aside");
	is(differences($table), '0', "$table, in place: all is as it was");
}
is(sql('SELECT * FROM clearings'), 'acme', 'cleared, in place: by its own function');

# ---- owners, policies, schemas and tablespaces ----

my $tablespace = PostgreSQL::Test::Utils::tempdir;
sql("CREATE TABLESPACE elsewhere LOCATION '$tablespace'");
sql(<<'EOS');
CREATE ROLE modeller;
CREATE TABLE ran (who text);
GRANT INSERT ON ran TO PUBLIC;
GRANT USAGE ON SCHEMA projector TO modeller;
GRANT EXECUTE ON FUNCTION projector_create, projector_start_run TO modeller;
CREATE SCHEMA model AUTHORIZATION modeller;
GRANT CREATE ON TABLESPACE elsewhere TO modeller;
SET ROLE modeller;
SET search_path = model, public;
CREATE FUNCTION note_ran() RETURNS void LANGUAGE sql AS 'INSERT INTO public.ran VALUES (current_user)';
CREATE FUNCTION span_length(a float8, b float8) RETURNS float8 IMMUTABLE LANGUAGE plpgsql AS 'BEGIN PERFORM model.note_ran(); RETURN a - b; END';
CREATE TYPE span AS RANGE (subtype = float8, subtype_diff = span_length);
CREATE TABLE secret (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, wide text, span span DEFAULT '[1,2]', last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id)) TABLESPACE elsewhere;
ALTER TABLE secret ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON secret USING (tenant_id = current_setting('projector.tenant_id'));
SELECT projector_create('secret', targets => '{secret}', event_types => '{Secret}', options => '{"batch_size": 4}',
	fold_columns => '{"n": "s.n + pass(e)", "wide": "noise(e.aggregate_id)"}');
RESET ROLE;
SELECT projector_append(t, 'id-' || a, 'Secret', CASE WHEN (t, a, n) = ('acme', 5, 1) THEN '{"gate": 1}' ELSE '{}' END::jsonb)
	FROM unnest('{acme,beta}'::text[]) t, generate_series(1, 9) a, generate_series(1, 2) n;
EOS
settle();
sql('SET search_path = model; CREATE TABLE public.secret_was AS SELECT ctid AS place, t::text AS r FROM secret t');
sub secret_differences
{
	return sql('SELECT count(*) FROM ((SELECT t::text FROM model.secret t EXCEPT SELECT r FROM secret_was) UNION ALL (SELECT r FROM secret_was EXCEPT SELECT t::text FROM model.secret t)) d');
}
sql("UPDATE model.secret SET n = 7 WHERE id = 'id-2'; DELETE FROM model.secret WHERE id = 'id-3'; INSERT INTO model.secret VALUES ('acme', 'wrong')");
gate('SELECT pg_advisory_lock(1)');
$id = sql("SET ROLE modeller; SELECT projector_start_run('secret', tenant_id => 'acme')");
wait_until($is_waiting);
is(sql("SELECT spcname, pg_get_userbyid(relowner), relacl IS NULL, has_table_privilege('reader', c.oid, 'SELECT')
	FROM pg_class c JOIN pg_tablespace s ON s.oid = reltablespace WHERE relname = 'build_$id'"),
	'elsewhere|modeller|t|f', 'a secret: what is built is in the same place, and belongs to the same role');
sub members_of
{
	my ($table) = @_;
	return sql("SELECT string_agg(replace(pg_describe_object(d.classid, d.objid, 0), relname, 'x'), ', ' ORDER BY d.classid)
		FROM pg_class c JOIN pg_type t ON t.oid = reltype JOIN pg_depend d ON deptype = 'e' AND (d.classid, d.objid) IN
			(('pg_class'::regclass, c.oid), ('pg_type'::regclass, t.oid), ('pg_type'::regclass, typarray))
		WHERE c.oid = 'projector.$table'::regclass");
}
like(members_of("build_$id"), qr/table projector.x/, 'a secret: what is built is part of the extension');
is(members_of("build_$id"), members_of('apply_outbox'), 'a secret: with its type, if those of our other tables are');

# ANALYZE runs code of types as the table's owner, even if autovacuum does it.
sql("ANALYZE projector.build_$id");
is(sql('SELECT DISTINCT who FROM ran'), 'modeller', 'a secret: code of its types runs as that role');
cmp_ok(sql("SELECT count(*) FROM projector.build_$id"), '>', 0, 'a secret: it is being built');
gate('SELECT pg_advisory_unlock(1)');
is(ending($id), 'completed', 'a secret: the run completes');
is(ending(start_run('secret', 'beta')), 'completed', 'a secret: also for another tenant');
nothing_left('a secret');
is(secret_differences(), '0', 'a secret: all is as it was');

# ---- logical replication ----

sql('CREATE PUBLICATION everything FOR ALL TABLES');
sql(q{SELECT pg_create_logical_replication_slot('decoded', 'test_decoding'), pg_create_logical_replication_slot('published', 'pgoutput')});
sql("UPDATE model.secret SET n = 7, wide = 'no' WHERE (tenant_id, id) = ('acme', 'id-2'); DELETE FROM model.secret WHERE (tenant_id, id) = ('acme', 'id-3')");
gate('SELECT pg_advisory_lock(1)');
$id = start_run('secret');
wait_until($is_waiting);
cmp_ok(sql("SELECT count(*) FROM projector.build_$id"), '>', 0, 'replication: rows are built aside');
my $decode = q{SELECT data FROM pg_logical_slot_get_changes('decoded', NULL, NULL, 'skip-empty-xacts', '1')};
my $decoded = sql($decode);
gate('SELECT pg_advisory_unlock(1)');
is(ending($id), 'completed', 'replication: the run completes');
nothing_left('replication');
is(secret_differences(), '0', 'replication: all is as it was');
$decoded .= "\n" . sql($decode);
like($decoded, qr/^table projector.projection_runs: UPDATE/m, 'replication: the run is seen');
unlike($decoded, qr/build_|pg_toast/, 'replication: what it builds is not');
is(scalar(() = $decoded =~ /^table model.secret: /mg), 4, 'replication: only its result is');
like($decoded, qr/^table model.secret: INSERT: [^\n]*id-3[^\n]*wide\[text\]:'[^\n']{10000}/m, 'replication: values out of line included');
my $published = sql(q{SELECT string_agg(encode(data, 'escape'), ' ') FROM pg_logical_slot_get_binary_changes('published', NULL, NULL, 'proto_version', '1', 'publication_names', 'everything')});
like($published, qr/projection_runs/, 'replication: the run is published');
like($published, qr/secret/, 'replication: its result is published');
unlike($published, qr/build_/, 'replication: what it builds is not published');
sql(q{SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots; DROP PUBLICATION everything});

# ---- events that fail ----

sql(<<'EOS');
CREATE TABLE poison (id text);
CREATE FUNCTION try(e projector.event) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF EXISTS (SELECT FROM poison p WHERE p.id = e.aggregate_id || e.sequence_number) THEN
		RAISE EXCEPTION 'poisoned';
	END IF;
	RETURN 1;
END $$;
CREATE TABLE failing (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, path text NOT NULL DEFAULT '', last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT projector_create('failing', targets => '{failing}', event_types => '{failing}', options => '{"batch_size": 4, "retry_base": "1 h", "retry_max": "1 h"}',
	fold_columns => '{"n": "s.n + try(e)", "path": "s.path || e.sequence_number || '' ''"}');
SELECT projector_append('acme', 'failing-' || a, 'failing', '{}') FROM generate_series(1, 9) a, generate_series(1, 3) n;
EOS
settle();
remember('failing');
my $waiting = "SELECT aggregate_id, sequence_number, status FROM projector.outbox WHERE projection_name = 'failing' ORDER BY log_seq";
my $failures = "SELECT aggregate_id, sequence_number, resolution FROM projector.failures WHERE projection_name = 'failing' ORDER BY id";
sql("INSERT INTO poison VALUES ('failing-32'), ('failing-44'); UPDATE failing SET n = 100 WHERE id = 'failing-8'");
sql("SELECT projector_append('acme', 'failing-4', 'failing', '{}') FROM generate_series(1, 2)");
wait_until("count(*) = 2 FROM projector.outbox WHERE projection_name = 'failing' AND status IN ('failed', 'held')");
like(ending(start_run('failing')), qr/^failed P0001 poisoned/, 'raised: the run fails');
like(sql("SELECT error_context FROM projector.runs ORDER BY id DESC LIMIT 1"), qr/event 2 \(failing\) of aggregate "failing-3" of tenant "acme"/, 'raised: the event is named');
nothing_left('raised');
is(differences('failing'), '2', 'raised: nothing has changed');
is(sql($waiting), "failing-4|4|failed\nfailing-4|5|held", 'raised: what waited still waits');
is(sql($failures), 'failing-4|4|', 'raised: nothing is recorded but in the run');
sql(q{SELECT projector_alter('failing', '{"options": {"on_rebuild_error": "hold"}}')});
rebuild('failing', 'held');
is(sql($waiting), "failing-3|2|failed\nfailing-3|3|held\nfailing-4|4|failed\nfailing-4|5|held", 'held: both wait now, and those behind them');
is(sql($failures), "failing-4|4|rebuilt\nfailing-3|2|\nfailing-4|4|", 'held: and are recorded');
is(sql("SELECT id, path FROM failing WHERE path <> '1 2 3 ' OR n <> 3 ORDER BY id"), 'failing-3|1 ' =~ s/\n//r, 'held: all others are built');
is(sql("SELECT n FROM failing WHERE id = 'failing-3'"), '1', 'held: and what came before them');
sql('DELETE FROM poison');
is(sql(q{SELECT projector_retry('failing', 'acme', 'failing-3', 2), projector_retry('failing', 'acme', 'failing-4', 4)}), 'applied|applied', 'held: they can be tried again');
settle();
is(sql($failures), "failing-4|4|rebuilt\nfailing-3|2|applied\nfailing-4|4|applied", 'held: and are done with');
is(sql("SELECT count(*) FILTER (WHERE path = '1 2 3 '), count(*) FILTER (WHERE path = '1 2 3 4 5 '), count(*) FROM failing"), '8|1|9', 'held: all are built');
sql(q{INSERT INTO poison VALUES ('failing-32'); SELECT projector_alter('failing', '{"options": {"on_rebuild_error": "skip"}}')});
rebuild('failing', 'skipped');
is(sql("SELECT path FROM failing WHERE id = 'failing-3'"), '1 3 ', 'skipped: it is passed over');
sql(q{DELETE FROM poison; SELECT projector_alter('failing', '{"options": {"on_rebuild_error": "raise"}}')});
rebuild('failing', 'skipped, and again');
is(sql("SELECT path FROM failing WHERE id = 'failing-3'"), '1 3 ', 'skipped, and again: it still is');
sql(q{SELECT projector_drop('failing')});
nothing_left('events that fail');

# In log order a dead event stops the tenant; rebuilt without it, the tenant continues.
sql(<<'EOS');
CREATE TABLE stopped (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, path text NOT NULL DEFAULT '', last_event_id uuid, last_event_version bigint, last_log_seq bigint,
	PRIMARY KEY (tenant_id, id));
SELECT projector_create('stopped', targets => '{stopped}', event_types => '{stopped}', key => 'left(e.aggregate_id, -1)', options => '{"batch_size": 4, "max_attempts": 1}',
	fold_columns => '{"n": "s.n + try(e)", "path": "s.path || right(e.aggregate_id, 1) || e.sequence_number || '' ''"}');
INSERT INTO poison VALUES ('stopped-33');
SELECT projector_append('acme', 'stopped-' || a, 'stopped', '{}') FROM (SELECT a FROM generate_series(1, 5) n, generate_series(1, 4) a ORDER BY n, a) x;
EOS
wait_until("state = 'stopped' FROM projector.projection_cursors c JOIN projector.projections p USING (projection_id) WHERE name = 'stopped' AND tenant_id = 'acme'");
my $stopped = q{SELECT n, path FROM stopped};
is(sql($stopped), '10|11 21 31 41 12 22 32 42 13 23 ', 'stopped: at an event');
like(ending(start_run('stopped')), qr/^failed P0001 poisoned/, 'stopped: a run fails there, too');
is(sql($stopped), '10|11 21 31 41 12 22 32 42 13 23 ', 'stopped: nothing has changed');
sql('DELETE FROM poison');
$id = rebuild('stopped', 'stopped, and mended');
is(was_aside($id), 't', 'stopped, and mended: built aside');
settle();
is(sql($stopped), '20|11 21 31 41 12 22 32 42 13 23 33 43 14 24 34 44 15 25 35 45 ', 'stopped, and mended: all is built');
is(sql("SELECT status, resolution FROM projector.failures LEFT JOIN projector.outbox USING (projection_name, log_seq) WHERE projection_name = 'stopped'"), '|rebuilt', 'stopped, and mended: all is settled');
sql(q{SELECT projector_append('acme', 'stopped-1', 'stopped', '{}')});
settle();
like(sql($stopped), qr/^21\|.* 16 $/, 'stopped, and mended: it goes on');
sql(q{SELECT projector_drop('stopped')});

# ---- things that happen during a run ----

# A table and a projection of that name; the gate is in the middle, after two batches.
sub make
{
	my ($name, $persistence) = @_;
	$persistence //= '';
	sql(<<"EOS");
CREATE $persistence TABLE $name (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, path text NOT NULL DEFAULT '', extra int, wide text,
	last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
SELECT projector_create('$name', targets => '{$name}', event_types => '{$name}', options => '{"batch_size": 4}',
	fold_columns => '{"n": "s.n + pass(e)", "path": "s.path || e.sequence_number || '' ''"}');
SELECT projector_append('acme', '$name-' || a, '$name', CASE WHEN (a, n) = (5, 1) THEN '{"gate": 1}' ELSE '{}' END::jsonb)
FROM generate_series(1, 9) a, generate_series(1, 2) n;
EOS
	settle();
	sql("UPDATE $name SET n = 7, path = 'no' WHERE id = '$name-2'; DELETE FROM $name WHERE id = '$name-7'; INSERT INTO $name VALUES ('acme', 'wrong')");
	return;
}

# Does a worker that waits for a row stop waiting, within three seconds?
sub lets_go
{
	local $PostgreSQL::Test::Utils::timeout_default = 3;
	return $node->poll_query_until('postgres',
		"SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'projector worker' AND wait_event = 'transactionid')");
}

# Does it equal the log?
sub is_right
{
	my ($name, $label) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $oracle = "SELECT tenant_id, aggregate_id, count(*)::text, string_agg(sequence_number || ' ', '' ORDER BY sequence_number)
		FROM projector.events WHERE event_type = '$name' GROUP BY 1, 2";
	my $model = "SELECT tenant_id, id, n::text, path FROM $name";
	return is(sql("SELECT * FROM (($oracle EXCEPT ALL $model) UNION ALL ($model EXCEPT ALL $oracle)) d ORDER BY 1, 2"), '', "$label: it is what the log says");
}

# Start a run, do something in the middle of it that has to wait for it, and open the gate when it waits.
sub meanwhile
{
	my ($name, $command) = @_;
	my ($out, $err) = ('', '');

	gate('SELECT pg_advisory_lock(1)');
	my $id = start_run($name);
	wait_until($is_waiting);
	local $ENV{PGAPPNAME} = 'meanwhile';
	my $session = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-c', $command =~ s/<run>/$id/gr ],
		'>', \$out, '2>', \$err);
	wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'meanwhile' AND wait_event_type = 'Lock')");
	gate('SELECT pg_advisory_unlock(1)');
	$session->finish;
	is($err, '', "$name: done in mid-run");
	return $id;
}

# Events are appended: to what has been built, what has not, and what is new.
foreach my $mode (qw(async follow inline))
{
	my $name = "busy_$mode";
	make($name);
	sql("SELECT projector_set_mode('$name', '$mode')");
	settle();
	gate('SELECT pg_advisory_lock(1)');
	$id = start_run($name);
	wait_until($is_waiting);
	sql("SELECT projector_append('acme', '$name-' || a, '$name', '{}') FROM unnest('{1,5,9,x}'::text[]) a, generate_series(1, 2)");
	is(sql("SELECT count(*), sum(n) FROM $name"), '9|' . (7 * 2 + 7), "$name: they wait");
	gate('SELECT pg_advisory_unlock(1)');
	is(ending($id), 'completed', "$name: the run completes");
	is(was_aside($id), 't', "$name: built aside");
	wait_until("count(*) = 0 FROM projector.apply_outbox");
	wait_until("sum(n) = 26 FROM $name");
	is_right($name, $name);
	nothing_left($name);
	sql("SELECT projector_drop('$name')");
}

# A run also works in mode off, and while paused.
make('off');
sql(q{SELECT projector_set_mode('off', 'off'); SELECT projector_append('acme', 'off-' || a, 'off', '{}') FROM unnest('{1,x}'::text[]) a});
$id = rebuild('off', 'off');
is(was_aside($id), 't', 'off: built aside');
is_right('off', 'off');
sql(q{SELECT projector_append('acme', 'off-' || a, 'off', '{}') FROM unnest('{1,y}'::text[]) a; SELECT projector_set_mode('off', 'async')});
settle();
is_right('off', 'off, and on');
make('paused');
sql(q{SELECT projector_pause('paused', 'acme'); SELECT projector_append('acme', 'paused-' || a, 'paused', '{}') FROM unnest('{1,x}'::text[]) a});
rebuild('paused', 'paused');
is_right('paused', 'paused');
is(sql(q{SELECT c.paused_by IS NOT NULL FROM projector.projection_cursors c JOIN projector.projections p USING (projection_id) WHERE name = 'paused' AND c.tenant_id = 'acme'}), 't', 'paused: it stays so');
sql(q{SELECT projector_append('acme', 'paused-y', 'paused', '{}'); SELECT projector_resume('paused', 'acme')});
settle();
is_right('paused', 'paused, and resumed');

# Another session has locked a row of the target.  The worker waits for it no longer than option "timeout"
# says, as in live apply, because it does nothing else while it waits.
make('locked');
sql(q{SELECT projector_alter('locked', '{"options": {"timeout": "100 ms"}}')});
gate(q{BEGIN; SELECT id FROM locked WHERE id = 'locked-2' FOR UPDATE});
$id = start_run('locked');
wait_until("processed_events = 18 FROM projector.runs WHERE id = $id");
ok(lets_go(), 'locked: a worker does not wait for ever');
gate('COMMIT');
wait_until("state <> 'running' FROM projector.runs WHERE id = $id");
rebuild('locked', 'locked, and free') if sql("SELECT state FROM projector.runs WHERE id = $id") ne 'completed';
nothing_left('locked');
is_right('locked', 'locked');

# The target changes: the build starts over.
my %changes = (
	added => 'ALTER TABLE added ADD COLUMN more int NOT NULL DEFAULT 5',
	dropped => 'ALTER TABLE dropped DROP COLUMN extra',
	retyped => 'ALTER TABLE retyped ALTER n TYPE numeric(20,1), ALTER extra TYPE text',
	renamed => 'ALTER TABLE renamed RENAME extra TO other',
	constrained => 'ALTER TABLE constrained ADD CHECK (n > 0) NOT VALID, ALTER wide SET DEFAULT 5',
	rekeyed => 'ALTER TABLE rekeyed DROP CONSTRAINT rekeyed_pkey, ADD PRIMARY KEY (id, tenant_id)',
	rewritten => 'VACUUM FULL rewritten',
	replaced => q{BEGIN; ALTER TABLE replaced RENAME TO replaced_was; CREATE VIEW replaced AS TABLE replaced_was; COMMIT});
foreach my $name (sort keys %changes)
{
	make($name);
	$id = meanwhile($name, $changes{$name});
	my $ending = ending($id);
	is($ending, 'completed', "$name: the run completes");
	nothing_left($name);
	if ($name eq 'retyped')
	{
		is(sql("SELECT count(*), sum(n), min(path), max(path) FROM retyped"), '9|18.0|1 2 |1 2 ', 'retyped: it is what the log says');
	}
	else
	{
		is_right($name, $name);
	}
	is(was_aside($id), 't', "$name: built aside");
	is(sql("SELECT processed_events, total_events FROM projector.runs WHERE id = $id"), '18|18', "$name: no event is counted twice");
	sql("SELECT projector_append('acme', '$name-1', '$name', '{}')");
	settle();
	is_right($name, "$name, then live") if $name ne 'retyped';
	sql("SELECT projector_drop('$name')");
}
is(sql('SELECT DISTINCT more FROM added'), '5', 'added: the new column has its default');

# The key column is replaced by another one.
make('key_moved');
sql('UPDATE key_moved SET wide = id');
$id = meanwhile('key_moved', 'ALTER TABLE key_moved DROP CONSTRAINT key_moved_pkey, ADD PRIMARY KEY (tenant_id, wide), ALTER id DROP NOT NULL');
is(ending($id), 'completed', 'key_moved: the run completes');
nothing_left('key_moved');
is(sql('SELECT count(*), sum(n), count(id), min(wide), max(wide) FROM key_moved'), '9|18|0|key_moved-1|key_moved-9', 'key_moved: it has been built with the new key');
sql(q{SELECT projector_drop('key_moved')});

# A type that only the target uses is dropped, and the column with it.
make('typed');
sql(q{CREATE TYPE fleeting AS ENUM ('a'); ALTER TABLE typed ADD feeling fleeting});
$id = meanwhile('typed', 'BEGIN; ALTER TABLE typed DROP COLUMN feeling; DROP TYPE fleeting; COMMIT');
is(ending($id), 'completed', 'typed: the run completes');
nothing_left('typed');
is_right('typed', 'typed');
sql(q{SELECT projector_drop('typed')});

# The owner is renamed.
make('orphaned');
sql(q{ALTER TABLE orphaned OWNER TO modeller; SELECT projector_alter('orphaned', '{"owner": "modeller"}')});
gate('SELECT pg_advisory_lock(1)');
$id = start_run('orphaned');
wait_until($is_waiting);
sql('ALTER ROLE modeller RENAME TO artist');
gate('SELECT pg_advisory_unlock(1)');
is(ending($id), 'completed', 'orphaned: the run goes on as the same role');
nothing_left('orphaned');
sql('ALTER ROLE artist RENAME TO modeller');
rebuild('orphaned', 'orphaned, and back');
is_right('orphaned', 'orphaned, and back');

# It can no longer be built aside: it is rebuilt in place.
foreach my $change ([ 'triggers', 'CREATE TRIGGER t BEFORE INSERT ON triggers FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger(); ALTER TABLE triggers DISABLE TRIGGER t' ],
	[ 'clears', q{SELECT projector_alter('clears', '{"options": {"clear": "clear_clears"}}')} ])
{
	my ($name, $command) = @$change;
	make($name);
	sql("CREATE FUNCTION clear_$name(tenant_id text) RETURNS void LANGUAGE sql AS 'DELETE FROM $name c WHERE c.tenant_id = \$1'");
	$id = meanwhile($name, $command);
	is(ending($id), 'completed', "$name: the run completes");
	is(was_aside($id), 'f', "$name: in place");
	is_right($name, $name);
	nothing_left($name);
	sql("SELECT projector_drop('$name')");
	nothing_left("$name, dropped");

	# restore it for the following tests
	sql("ALTER EXTENSION projector DROP TABLE projector.build_$id; DROP TABLE projector.build_$id;
		DELETE FROM projector.projection_offsets WHERE projection_id < 0") if sql($left) ne '0|0|0|0';
}

# The build's table is dropped.
make('vandalised');
$id = meanwhile('vandalised', 'BEGIN; ALTER EXTENSION projector DROP TABLE projector.build_<run>; DROP TABLE projector.build_<run>; COMMIT');
is(ending($id), 'completed', 'vandalised: the run completes');
is_right('vandalised', 'vandalised');
nothing_left('vandalised');

# Its owner adds a deferred trigger to it, which would run at commit as the worker: the build starts over without it.
make('added_to');
sql(q{TRUNCATE ran; CREATE FUNCTION add_to_build() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO ran VALUES (current_user); RETURN NULL; END'});
$id = meanwhile('added_to', 'CREATE CONSTRAINT TRIGGER later AFTER INSERT ON projector.build_<run> DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION add_to_build()');
is(ending($id), 'completed', 'added to: the run completes');
is_right('added_to', 'added to');
is(sql('SELECT count(*) FROM ran'), '0', 'added to: it has never run');
nothing_left('added to');
make('unkeyed');
$id = meanwhile('unkeyed', 'DROP INDEX projector.build_<run>_pkey');
is(ending($id), 'completed', 'unkeyed: the run completes');
is_right('unkeyed', 'unkeyed');
nothing_left('unkeyed');

# The target is dropped: the run waits, until it is cancelled.  Then the target is created again.
make('absent');
$id = meanwhile('absent', 'SET projector.guard_ddl = off; DROP TABLE absent');
wait_until(q{EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'projector worker')});
is(sql("SELECT state FROM projector.runs WHERE id = $id"), 'running', 'absent: the run waits');
is(sql(q{SELECT projector.problem(projection_id) FROM projector.projections WHERE name = 'absent'}), 'target table public.absent does not exist', 'absent: that is told');
is(sql("SELECT projector_cancel_run($id)"), 't', 'absent: it can be cancelled');
nothing_left('absent');
sql(q{CREATE TABLE absent (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, path text NOT NULL DEFAULT '',
	last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id))});
sql(q{SELECT projector_alter('absent', '{"targets": ["absent"]}')});
rebuild('absent', 'absent, and back');
is_right('absent', 'absent, and back');

# The run is cancelled, and live apply continues as if there had been none.
make('cancelled');
remember('cancelled');
gate('SELECT pg_advisory_lock(1)');
$id = start_run('cancelled');
wait_until($is_waiting);
sql(q{SELECT projector_append('acme', 'cancelled-8', 'cancelled', '{}')});
is(differences('cancelled', 'place, r'), '0', 'cancelled: readers see nothing of it');
{
	my ($out, $err) = ('', '');
	local $ENV{PGAPPNAME} = 'meanwhile';
	my $session = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', "SELECT projector_cancel_run($id)" ], '>', \$out, '2>', \$err);
	wait_until("EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'meanwhile' AND wait_event_type = 'Lock')");
	gate('SELECT pg_advisory_unlock(1)');
	$session->finish;
	is("$out$err", "t\n", 'cancelled: it waits for its batch');
}
like(ending($id), qr/^cancelled 57014 /, 'cancelled: it is');
nothing_left('cancelled');
settle();
is(sql("SELECT n, path FROM cancelled WHERE id IN ('cancelled-2', 'cancelled-8') ORDER BY id"), "7|no\n3|1 2 3 ", 'cancelled: live goes on unchanged');
rebuild('cancelled', 'cancelled, and once more');
is_right('cancelled', 'cancelled, and once more');

# The projection is dropped.
make('forgotten');
remember('forgotten');
meanwhile('forgotten', q{SELECT projector_drop('forgotten')});
nothing_left('forgotten');
is(sql(q{SELECT (SELECT count(*) FROM projector.projections WHERE name = 'forgotten'),
	(SELECT count(*) FROM projector.projection_runs r WHERE NOT EXISTS (SELECT FROM projector.projections p WHERE p.projection_id = r.projection_id)),
	(SELECT count(*) FROM projector.projection_offsets r WHERE NOT EXISTS (SELECT FROM projector.projections p WHERE p.projection_id = r.projection_id))}),
	'0|0|0', 'forgotten: nor is anything else');
is(differences('forgotten', 'place, r'), '0', 'forgotten: the read model stays as it was');

# ---- a crash in the middle ----

make('second');
make('logged');
gate('SELECT pg_advisory_lock(1)');
my %run = map { $_ => start_run($_) } 'second', 'logged';
wait_until("count(*) = 2 FROM pg_locks WHERE locktype = 'advisory' AND (classid, objid, objsubid) = (0, 1, 1) AND NOT granted");
cmp_ok(sql("SELECT min(processed_events) FROM projector.runs WHERE id IN ($run{second}, $run{logged})"), '>', 0, 'a crash: both have been at work');
$node->stop('immediate');
$gate->kill_kill;
$node->start;
set_up_gate('postgres');
foreach my $name ('logged', 'second')
{
	is(ending($run{$name}), 'completed', "$name, a crash: the run completes by itself");
	is_right($name, "$name, a crash");
}
nothing_left('a crash');

my $log = slurp_file($node->logfile);
unlike($log, qr/leak|not closed|PANIC|TRAP|still referenced|terminated by signal/, 'nothing has leaked or crashed');
unlike($log =~ s/^(?!.*(?:cache lookup failed|could not open relation|not in the primary key|deadlock)).*\n//mgr, qr/./, 'nor met anything unexpected');

# ---- the extension is dropped ----

sql('CREATE DATABASE other');
$node->safe_psql('other', <<'EOS');
CREATE EXTENSION projector;
CREATE TABLE t (tenant_id text, id text, n bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id));
CREATE FUNCTION pass(e projector.event) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF e.payload ? 'gate' THEN
		PERFORM pg_advisory_xact_lock_shared(1);
	END IF;
	RETURN 1;
END $$;
SELECT projector_create('t', targets => '{t}', options => '{"batch_size": 4}', fold_columns => '{"n": "s.n + pass(e)"}');
SELECT projector_append('acme', 'id-' || a, 'E', CASE WHEN (a, n) = (5, 1) THEN '{"gate": 1}' ELSE '{}' END::jsonb)
FROM generate_series(1, 9) a, generate_series(1, 2) n;
EOS
ok($node->poll_query_until('other', 'SELECT sum(n) = 18 FROM t'), 'another database: live');
$gate_in .= "\\q\n";
$gate->finish;
set_up_gate('other');
gate('SELECT pg_advisory_lock(1)');
$id = $node->safe_psql('other', q{SELECT projector_start_run('t')});
ok($node->poll_query_until('other', "SELECT $is_waiting"), 'another database: a run');
is($node->safe_psql('other', "SELECT count(*) FROM pg_class WHERE relname LIKE 'build%'"), '2', 'another database: builds aside');
{
	my ($out, $err) = ('', '');

	# a worker in mid-batch could deadlock with this, so it is stopped first
	ok(IPC::Run::run([ 'psql', '-XAtq', '-d', $node->connstr('other'), '-c', q{SET client_min_messages = warning; SET deadlock_timeout = '1 h'}, '-c', 'DROP EXTENSION projector CASCADE' ], '>', \$out, '2>', \$err,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default)), 'another database: the extension is dropped, whatever the worker is doing');
	gate('SELECT pg_advisory_unlock(1)');
	is($err, '', 'another database: without an error');
}
is($node->safe_psql('other', q{SELECT (SELECT count(*) FROM pg_extension WHERE extname = 'projector'), (SELECT count(*) FROM pg_namespace WHERE nspname = 'projector'),
	(SELECT count(*) FROM pg_class WHERE relname LIKE 'build%'), (SELECT count(*) FROM pg_type WHERE typname LIKE '%build%'), (SELECT sum(n) FROM t)}),
	'0|0|0|0|18', 'another database: nothing is left but the read model');
$gate_in .= "\\q\n";
$gate->finish;
ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = 'other')"), 'another database: its workers leave');
sql('DROP DATABASE other');

unlike(slurp_file($node->logfile), qr/leak|not closed|PANIC|TRAP|still referenced|terminated by signal/, 'nothing has leaked or crashed since');
$node->stop;
done_testing();
