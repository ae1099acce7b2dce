\set ECHO none
-- Owns try(command), which runs a command and returns "ok", or its error as
-- text: SQLSTATE and message, and below them what else try_shows names.  Set
-- that psql variable before including this file:
--   detail, hint   these parts of the error; both by default
--   context        the line of the context that names an expression
--   bare           parts without labels
--   answer         the command's result instead of "ok"
--   message        nothing else
-- Numbers of runs become N, and rows that fail a constraint are left out.  The
-- file that includes this one drops the function.
\if :{?try_shows}
\else
\set try_shows 'detail hint'
\endif
CREATE FUNCTION try(command text) RETURNS text
LANGUAGE plpgsql SET try.shows = :'try_shows' AS $$
DECLARE
    shows text[] := string_to_array(current_setting('try.shows'), ' ');
    bare boolean := 'bare' = ANY (shows);
    answer text := 'ok';
    detail text;
    hint text;
    context text;
BEGIN
    IF 'answer' = ANY (shows) THEN
        EXECUTE command INTO answer;
    ELSE
        EXECUTE command;
    END IF;
    RETURN answer;
EXCEPTION WHEN others THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL,
        hint = PG_EXCEPTION_HINT, context = PG_EXCEPTION_CONTEXT;
    RETURN regexp_replace(concat_ws(E'\n  ', sqlstate || ': ' || sqlerrm,
        CASE WHEN 'detail' = ANY (shows) AND detail <> '' AND detail !~ '^Failing row'
            THEN CASE WHEN bare THEN '' ELSE 'detail: ' END || detail END,
        CASE WHEN 'hint' = ANY (shows) AND hint <> ''
            THEN CASE WHEN bare THEN '' ELSE 'hint: ' END || hint END,
        CASE WHEN 'context' = ANY (shows)
            THEN 'context: ' || substring(context FROM 'expression for [^\n]*') END),
        '([Rr]un |cancel_run\()\d+', '\1N', 'g');
END $$;
\unset try_shows
\set ECHO all
