-- Everything that the catalogs say about the extension, one line for each object,
-- column, comment, privilege and registration, without oids.  Two databases with
-- the same objects return the same lines.  The tables of runs that are being built
-- are left out.
WITH RECURSIVE
-- The members of the extension, and what depends on them alone: indexes,
-- constraints, defaults, triggers, rules, policies, row types, sequences.
found (classid, objid) AS (
    SELECT 'pg_catalog.pg_extension'::pg_catalog.regclass::oid, oid FROM pg_catalog.pg_extension WHERE extname = 'projector'
    UNION
    SELECT d.classid, d.objid
    FROM pg_catalog.pg_depend d JOIN found f ON (d.refclassid, d.refobjid) = (f.classid, f.objid)
    WHERE d.deptype IN ('e', 'i')
       OR d.deptype = 'a' AND d.classid = ANY ('{pg_class,pg_constraint,pg_attrdef,pg_trigger,pg_rewrite,pg_policy,pg_statistic_ext}'::pg_catalog.regclass[]::oid[])
          AND d.refclassid = 'pg_class'::pg_catalog.regclass),
objects AS (
    SELECT f.classid, f.objid, i.type, i.identity
    FROM found f, pg_catalog.pg_identify_object(f.classid, f.objid, 0) i
    WHERE i.identity NOT LIKE '%build\_%' AND i.identity NOT LIKE 'pg\_toast.%'
      -- triggers that belong to users' tables
      AND NOT (i.type = 'trigger' AND i.identity NOT LIKE '% on projector.%')),
members AS (
    SELECT o.type, o.identity, 'member' AS what,
           coalesce((SELECT string_agg(pg_catalog.pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) || ' ' || d.deptype::text, ', '
                                       ORDER BY pg_catalog.pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid) COLLATE "C", d.deptype)
                     FROM pg_catalog.pg_depend d WHERE (d.classid, d.objid) = (o.classid, o.objid)), '') AS def
    FROM objects o),
definitions AS (
    SELECT o.type, o.identity, 'definition' AS what, jsonb_build_object(
               'owner', c.relowner::pg_catalog.regrole, 'acl', c.relacl::text, 'kind', c.relkind, 'persistence', c.relpersistence,
               'options', c.reloptions, 'identity', c.relreplident, 'rls', c.relrowsecurity, 'force', c.relforcerowsecurity,
               'am', (SELECT amname FROM pg_catalog.pg_am a WHERE a.oid = c.relam), 'toast', c.reltoastrelid <> 0,
               'view', CASE WHEN c.relkind IN ('v', 'm') THEN pg_catalog.pg_get_viewdef(c.oid) END,
               'index', CASE WHEN c.relkind = 'i' THEN pg_catalog.pg_get_indexdef(c.oid) END,
               'index flags', (SELECT to_jsonb(x) - '{indexrelid,indrelid,indexprs,indpred,indcollation,indclass}'::text[]
                               FROM pg_catalog.pg_index x WHERE x.indexrelid = c.oid),
               'sequence', (SELECT to_jsonb(s) - '{seqrelid,seqtypid}'::text[] || jsonb_build_object('type', s.seqtypid::pg_catalog.regtype)
                            FROM pg_catalog.pg_sequence s WHERE s.seqrelid = c.oid),
               'foreign', (SELECT jsonb_build_array(s.srvname, t.ftoptions) FROM pg_catalog.pg_foreign_table t
                           JOIN pg_catalog.pg_foreign_server s ON s.oid = t.ftserver WHERE t.ftrelid = c.oid))::text AS def
    FROM objects o JOIN pg_catalog.pg_class c ON c.oid = o.objid WHERE o.classid = 'pg_class'::pg_catalog.regclass
    UNION ALL
    SELECT o.type, o.identity, 'column ' || a.attnum, jsonb_build_object(
               'name', a.attname, 'type', pg_catalog.format_type(a.atttypid, a.atttypmod), 'collation', a.attcollation::pg_catalog.regcollation,
               'required', a.attnotnull, 'identity', a.attidentity, 'generated', a.attgenerated, 'dropped', a.attisdropped,
               'storage', a.attstorage, 'compression', a.attcompression, 'acl', a.attacl::text,
               -- from 15.20 on the server keeps a number of its own here
               'options', (SELECT array_agg(x) FROM unnest(a.attoptions) x WHERE x NOT LIKE 'pg\_attver=%'), 'fdw', a.attfdwoptions,
               'default', (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d WHERE (d.adrelid, d.adnum) = (a.attrelid, a.attnum)))::text
    FROM objects o JOIN pg_catalog.pg_attribute a ON a.attrelid = o.objid AND a.attnum > 0 WHERE o.classid = 'pg_class'::pg_catalog.regclass
    UNION ALL
    SELECT o.type, o.identity, 'definition', jsonb_build_object(
               'owner', p.proowner::pg_catalog.regrole, 'acl', p.proacl::text, 'source', p.prosrc, 'file', p.probin, 'cost', p.procost, 'rows', p.prorows,
               'text', CASE WHEN p.prokind <> 'a' THEN pg_catalog.pg_get_functiondef(p.oid) END,
               'aggregate', (SELECT to_jsonb(g) - '{aggfnoid,aggtranstype,aggmtranstype,aggsortop}'::text[] || jsonb_build_object('type', g.aggtranstype::pg_catalog.regtype)
                             FROM pg_catalog.pg_aggregate g WHERE g.aggfnoid = p.oid))::text
    FROM objects o JOIN pg_catalog.pg_proc p ON p.oid = o.objid WHERE o.classid = 'pg_proc'::pg_catalog.regclass
    UNION ALL
    SELECT o.type, o.identity, 'definition', jsonb_build_object('text', pg_catalog.pg_get_constraintdef(c.oid),
               'flags', ARRAY[c.condeferrable, c.condeferred, c.convalidated, c.connoinherit], 'index', c.conindid::pg_catalog.regclass)::text
    FROM objects o JOIN pg_catalog.pg_constraint c ON c.oid = o.objid WHERE o.classid = 'pg_constraint'::pg_catalog.regclass
    UNION ALL
    SELECT o.type, o.identity, 'definition', jsonb_build_object('text', pg_catalog.pg_get_triggerdef(t.oid), 'enabled', t.tgenabled)::text
    FROM objects o JOIN pg_catalog.pg_trigger t ON t.oid = o.objid WHERE o.classid = 'pg_trigger'::pg_catalog.regclass
    UNION ALL
    SELECT o.type, o.identity, 'definition', jsonb_build_object('owner', e.evtowner::pg_catalog.regrole, 'event', e.evtevent, 'function', e.evtfoid::pg_catalog.regproc,
               'enabled', e.evtenabled, 'tags', e.evttags)::text
    FROM objects o JOIN pg_catalog.pg_event_trigger e ON e.oid = o.objid WHERE o.classid = 'pg_event_trigger'::pg_catalog.regclass
    UNION ALL
    SELECT o.type, o.identity, 'definition', jsonb_build_object('text', pg_catalog.pg_get_ruledef(r.oid), 'enabled', r.ev_enabled)::text
    FROM objects o JOIN pg_catalog.pg_rewrite r ON r.oid = o.objid WHERE o.classid = 'pg_rewrite'::pg_catalog.regclass
    UNION ALL
    SELECT o.type, o.identity, 'definition', jsonb_build_object('permissive', p.polpermissive, 'command', p.polcmd, 'roles', p.polroles::pg_catalog.regrole[],
               'using', pg_catalog.pg_get_expr(p.polqual, p.polrelid), 'check', pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid))::text
    FROM objects o JOIN pg_catalog.pg_policy p ON p.oid = o.objid WHERE o.classid = 'pg_policy'::pg_catalog.regclass
    UNION ALL
    SELECT o.type, o.identity, 'definition', pg_catalog.pg_get_expr(d.adbin, d.adrelid)
    FROM objects o JOIN pg_catalog.pg_attrdef d ON d.oid = o.objid WHERE o.classid = 'pg_attrdef'::pg_catalog.regclass
    UNION ALL
    SELECT o.type, o.identity, 'definition', jsonb_build_object('owner', t.typowner::pg_catalog.regrole, 'acl', t.typacl::text, 'type', t.typtype, 'category', t.typcategory,
               'base', t.typbasetype::pg_catalog.regtype, 'required', t.typnotnull, 'default', t.typdefault,
               'labels', (SELECT array_agg(enumlabel ORDER BY enumsortorder) FROM pg_catalog.pg_enum WHERE enumtypid = t.oid))::text
    FROM objects o JOIN pg_catalog.pg_type t ON t.oid = o.objid WHERE o.classid = 'pg_type'::pg_catalog.regclass
    UNION ALL
    SELECT o.type, o.identity, 'definition', jsonb_build_object('owner', n.nspowner::pg_catalog.regrole, 'acl', n.nspacl::text)::text
    FROM objects o JOIN pg_catalog.pg_namespace n ON n.oid = o.objid WHERE o.classid = 'pg_namespace'::pg_catalog.regclass
    UNION ALL
    SELECT o.type, o.identity, 'definition', (to_jsonb(w) - '{oid,fdwowner,fdwhandler,fdwvalidator}'::text[] || jsonb_build_object(
               'owner', w.fdwowner::pg_catalog.regrole, 'handler', w.fdwhandler::pg_catalog.regproc, 'validator', w.fdwvalidator::pg_catalog.regproc))::text
    FROM objects o JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = o.objid WHERE o.classid = 'pg_foreign_data_wrapper'::pg_catalog.regclass
    UNION ALL
    SELECT o.type, o.identity, 'definition', (to_jsonb(s) - '{oid,srvowner,srvfdw}'::text[] || jsonb_build_object('owner', s.srvowner::pg_catalog.regrole))::text
    FROM objects o JOIN pg_catalog.pg_foreign_server s ON s.oid = o.objid WHERE o.classid = 'pg_foreign_server'::pg_catalog.regclass
    UNION ALL
    SELECT o.type, o.identity, 'definition', jsonb_build_object('owner', e.extowner::pg_catalog.regrole, 'version', e.extversion, 'schema', e.extnamespace::pg_catalog.regnamespace,
               'relocatable', e.extrelocatable, 'dumped', (SELECT array_agg(x.relid::pg_catalog.regclass::text || ' ' || x.condition ORDER BY x.relid::pg_catalog.regclass::text COLLATE "C")
                   FROM unnest(e.extconfig, e.extcondition) x (relid, condition)))::text
    FROM objects o JOIN pg_catalog.pg_extension e ON e.oid = o.objid WHERE o.classid = 'pg_extension'::pg_catalog.regclass),
lines AS (
    SELECT * FROM members
    UNION ALL
    SELECT * FROM definitions
    UNION ALL
    -- a kind of object that the definitions above do not know
    SELECT o.type, o.identity, 'definition', 'NOT COMPARED: add its catalog to this query'
    FROM objects o WHERE NOT EXISTS (SELECT FROM definitions d WHERE (d.type, d.identity) = (o.type, o.identity))
    UNION ALL
    SELECT o.type, o.identity, 'comment ' || c.objsubid, c.description
    FROM objects o JOIN pg_catalog.pg_description c ON (c.classoid, c.objoid) = (o.classid, o.objid)
    UNION ALL
    SELECT o.type, o.identity, 'initial privileges ' || p.objsubid, p.privtype::text || ' ' || p.initprivs::text
    FROM objects o JOIN pg_catalog.pg_init_privs p ON (p.classoid, p.objoid) = (o.classid, o.objid)
    UNION ALL
    SELECT o.type, o.identity, 'label', l.provider || ' ' || l.label
    FROM objects o JOIN pg_catalog.pg_seclabel l ON (l.classoid, l.objoid) = (o.classid, o.objid))
SELECT pg_catalog.replace(pg_catalog.concat_ws(' | ', type, identity, what, def), E'\n', E'\\n') FROM lines
ORDER BY type COLLATE "C", identity COLLATE "C", what COLLATE "C", def COLLATE "C";
