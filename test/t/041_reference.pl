# docs/reference is complete and correct: its functions, views, settings, options
# and SQLSTATEs are compared with the catalogs and the code.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<'EOC');
shared_preload_libraries = 'projector'
projector.enabled = off
fsync = off
EOC
$node->start;

sub sql { my ($text) = @_; return $node->safe_psql('postgres', $text); }

sub page { my ($name) = @_; return slurp_file("docs/reference/$name.md"); }

# The rows of the tables on a page, as lists of their cells.
sub table_rows
{
	my ($text) = @_;
	my @rows;
	while ($text =~ /^\| (.*) \|$/mg)
	{
		push @rows, [ map { s/^\s+|\s+$//gr } split /\s\|\s/, "$1 ", -1 ];
	}
	return @rows;
}

# The names in the first cells of the rows: `name`.
sub names
{
	my ($text) = @_;
	my @names = sort map { $_->[0] =~ /^`([^`]+)`$/ ? $1 : () } table_rows($text);
	return @names;
}

sub squeeze
{
	my ($text) = @_;
	$text =~ s/\s+/ /g;
	$text =~ s/^ | $//g;
	$text =~ s/\( /(/g;
	return $text;
}

sql('CREATE EXTENSION projector');

# ---- functions ----

# A default without the cast that the catalog adds to it.
my $signatures = sql(q{
SELECT p.proname || '|' || p.proname || '('
       || regexp_replace(pg_get_function_arguments(p.oid), '(DEFAULT (''[^'']*''|[^ ,]+?))::[a-z ]+(\[\])?(?=,|$)', '\1', 'g')
       || ') RETURNS ' || pg_get_function_result(p.oid)
FROM pg_proc p
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
WHERE e.extname = 'projector' AND p.pronamespace <> 'projector'::regnamespace
ORDER BY 1});
my %in_catalog = map { split /\|/, $_, 2 } split /\n/, $signatures;

my (%entry, $heading);
foreach my $line (split /\n/, page('functions'))
{
	$heading = $1 if $line =~ /^### (\w+)$/;
	undef $heading if $line =~ /^## /;
	$entry{$heading} .= "$line\n" if defined $heading;
}
is(join(' ', sort keys %entry), join(' ', sort keys %in_catalog), 'every function has an entry, and every entry a function');

my @purposes = qw(appender reader modeller operator);
sql("CREATE ROLE docs_$_; SELECT projector_grant('docs_$_', '$_')") foreach @purposes;

foreach my $name (sort keys %entry)
{
	my $text = $entry{$name};
	my ($signature) = $text =~ /^```signature\n(.*?)^```$/ms;
	is(squeeze($signature // ''), squeeze($in_catalog{$name} // ''), "$name: its signature");
	like($text, qr/^\*\*Errors:\*\* \S/m, "$name: its errors");
	like($text, qr/^\*\*Example:\*\*/m, "$name: an example");

	# If there is a table of arguments, it has all of them.
	my @arguments = grep { defined } ($signature // '') =~ /(?:\(|, |\s)"?(\w+)"? (?:text|jsonb|bigint|integer|boolean|uuid|interval|text\[\])(?= DEFAULT|,|\))/g;
	if ($text =~ /^\| argument \|/m)
	{
		my %told = map { $_ => 1 } map { /`(\w+)`/g } map { $_->[0] } table_rows($text);
		is(join(' ', grep { !$told{$_} } @arguments), '', "$name: its arguments are explained");
	}

	my ($who) = $text =~ /^\*\*Privileges:\*\* ([^.]*)\./m;
	my $may = sql(qq{SELECT CASE WHEN has_function_privilege('public', p.oid, 'EXECUTE') THEN 'everyone' ELSE
		coalesce(nullif(concat_ws(', ', } . join(', ', map { "CASE WHEN has_function_privilege('docs_$_', p.oid, 'EXECUTE') THEN '$_' END" } @purposes) . qq{), ''), 'superusers') END
		FROM pg_proc p WHERE proname = '$name'});
	is($who // '', $may, "$name: who may call it");
}

# ---- views ----

my $columns = sql(q{
SELECT format('%s|`%s`|`%s`|%s', c.relname, a.attname, format_type(a.atttypid, NULL), col_description(c.oid, a.attnum))
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = 'projector'::regnamespace AND c.relkind = 'v'
ORDER BY c.relname, a.attnum});
my (%view, %described);
push @{ $view{ (split /\|/, $_, 2)[0] } }, (split /\|/, $_, 2)[1] foreach split /\n/, $columns;
undef $heading;
foreach my $line (split /\n/, page('views'))
{
	if ($line =~ /^## projector\.(\w+)$/) { $heading = $1; }
	elsif ($line =~ /^## /) { undef $heading; }
	elsif (defined $heading && $line =~ /^\| (`.*`) \| (`.*`) \| (.*) \|$/) { push @{ $described{$heading} }, "$1|$2|$3"; }
}
is(join(' ', sort keys %described), join(' ', sort keys %view), 'every view is described, and every description has a view');
foreach my $name (sort keys %view)
{
	is_deeply($described{$name}, $view{$name}, "projector.$name: its columns, as their comments say");
	is(scalar(grep { /\|$/ } @{ $view{$name} }), 0, "projector.$name: every column has a comment");
}

# ---- the log ----

is(join("\n", map { "$_->[0] $_->[1]" } grep { $_->[0] =~ /^`/ && @$_ == 3 } table_rows((split /^## /m, page('tables'))[1])),
	sql(q{SELECT format('`%s` `%s`', attname, format_type(atttypid, NULL)) FROM pg_attribute
		WHERE attrelid = 'projector.events'::regclass AND attnum > 0 ORDER BY attnum}),
	'the columns of projector.events');

# ---- settings, options, SQLSTATEs ----

is(join(' ', names(page('settings'))),
	join(' ', sort split /\n/, sql(q{SELECT name FROM pg_settings WHERE name LIKE 'projector.%'})), 'every setting');
# Default and context in the form of the page; times are compared in seconds, so
# that "1 min" equals "60 s".
foreach my $row (grep { $_->[0] =~ /^`projector/ && $_->[1] =~ /^`/ } table_rows(page('settings')))
{
	my ($name, $default, $who) = map { s/`//gr } @$row;
	is(sql(qq{SELECT CASE WHEN unit IS NULL THEN '$default' ELSE extract(epoch FROM '$default'::text::interval)::text END FROM pg_settings WHERE name = '$name'}) . " $who",
		sql(qq{SELECT CASE WHEN unit IS NULL THEN boot_val ELSE extract(epoch FROM (boot_val || unit)::interval)::text END || ' '
			|| CASE context WHEN 'user' THEN 'anyone' WHEN 'sighup' THEN 'reload' ELSE context END
			FROM pg_settings WHERE name = '$name'}) =~ s/\n//gr,
		"$name: its default and who sets it");
}

my ($ret, $out, $err) = $node->psql('postgres', q{SELECT projector_create('x', handler => 'x', options => '{"no such": 1}')});
my ($known) = $err =~ /HINT:  The options are (.*)\.$/m;
is(join(' ', names(page('options'))), join(' ', sort(($known // '') =~ /"(\w+)"/g)), 'every option');

my @codes = sort map { join '', /'(.)'/g } grep { /MAKE_SQLSTATE/ } split /\n/, slurp_file('src/base/errcodes.h');
is(join(' ', grep { /^PJ/ } names(page('sqlstates'))), join(' ', @codes), 'every SQLSTATE of our own');

$node->stop;
done_testing();
