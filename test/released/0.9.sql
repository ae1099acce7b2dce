--
-- PostgreSQL database dump
--



SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: projector; Type: EXTENSION; Schema: -; Owner: -
--

CREATE EXTENSION IF NOT EXISTS projector WITH SCHEMA public;


--
-- Name: EXTENSION projector; Type: COMMENT; Schema: -; Owner: 
--

COMMENT ON EXTENSION projector IS 'read models kept true to an event log, inside the database';


--
-- Name: amount(projector.event, text); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public.amount(e projector.event, name text) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE
    AS $$
BEGIN
    IF e.payload ? 'gate' THEN
        PERFORM pg_advisory_xact_lock_shared((e.payload->>'gate')::int);
    END IF;
    IF e.payload ? 'bad' AND EXISTS (SELECT FROM public.broken b WHERE b.name = amount.name) THEN
        RAISE EXCEPTION 'bad event for %', name;
    END IF;
    RETURN (e.payload->>'amount')::bigint;
END $$;


ALTER FUNCTION public.amount(e projector.event, name text) OWNER TO postgres;

--
-- Name: apply_dead(projector.event); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public.apply_dead(e projector.event) RETURNS void
    LANGUAGE plpgsql
    AS $$ BEGIN
        INSERT INTO public.dead AS t VALUES (e.tenant_id, e.aggregate_id, 1, public.amount(e, 'dead'), e.event_id, e.sequence_number)
        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, total = t.total + excluded.total,
            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version; END $$;


ALTER FUNCTION public.apply_dead(e projector.event) OWNER TO postgres;

--
-- Name: apply_in_place(projector.event); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public.apply_in_place(e projector.event) RETURNS void
    LANGUAGE plpgsql
    AS $$ BEGIN
        INSERT INTO public.in_place AS t VALUES (e.tenant_id, e.aggregate_id, 1, public.amount(e, 'in_place'), e.event_id, e.sequence_number)
        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, total = t.total + excluded.total,
            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version; END $$;


ALTER FUNCTION public.apply_in_place(e projector.event) OWNER TO postgres;

--
-- Name: apply_retried(projector.event); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public.apply_retried(e projector.event) RETURNS void
    LANGUAGE plpgsql
    AS $$ BEGIN
        INSERT INTO public.retried AS t VALUES (e.tenant_id, e.aggregate_id, 1, public.amount(e, 'retried'), e.event_id, e.sequence_number)
        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, total = t.total + excluded.total,
            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version; END $$;


ALTER FUNCTION public.apply_retried(e projector.event) OWNER TO postgres;

--
-- Name: apply_skipping(projector.event); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public.apply_skipping(e projector.event) RETURNS void
    LANGUAGE plpgsql
    AS $$ BEGIN
        INSERT INTO public.skipping AS t VALUES (e.tenant_id, e.aggregate_id, 1, public.amount(e, 'skipping'), e.event_id, e.sequence_number)
        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, total = t.total + excluded.total,
            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version; END $$;


ALTER FUNCTION public.apply_skipping(e projector.event) OWNER TO postgres;

--
-- Name: apply_stopped(projector.event); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public.apply_stopped(e projector.event) RETURNS void
    LANGUAGE plpgsql
    AS $$ BEGIN
        INSERT INTO public.stopped AS t VALUES (e.tenant_id, e.aggregate_id, 1, public.amount(e, 'stopped'), e.event_id, e.sequence_number)
        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, total = t.total + excluded.total,
            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version; END $$;


ALTER FUNCTION public.apply_stopped(e projector.event) OWNER TO postgres;

--
-- Name: make_fold(text, text, jsonb, text[]); Type: PROCEDURE; Schema: public; Owner: postgres
--

CREATE PROCEDURE public.make_fold(IN name text, IN mode text, IN options jsonb DEFAULT '{}'::jsonb, IN event_types text[] DEFAULT NULL::text[])
    LANGUAGE plpgsql
    AS $$
BEGIN
    CALL make_table(name);
    PERFORM projector_create(name, targets => ARRAY[name], mode => mode, options => options, event_types => event_types,
        fold_columns => jsonb_build_object('n', 's.n + 1', 'total', format('s.total + amount(e, %L)', name)));
END $$;


ALTER PROCEDURE public.make_fold(IN name text, IN mode text, IN options jsonb, IN event_types text[]) OWNER TO postgres;

--
-- Name: make_handler(text, text, jsonb); Type: PROCEDURE; Schema: public; Owner: postgres
--

CREATE PROCEDURE public.make_handler(IN name text, IN ordering text DEFAULT NULL::text, IN options jsonb DEFAULT '{}'::jsonb)
    LANGUAGE plpgsql
    AS $_$
BEGIN
    CALL make_table(name);
    EXECUTE format('CREATE FUNCTION %I(e projector.event) RETURNS void LANGUAGE plpgsql AS $f$ BEGIN
        INSERT INTO public.%I AS t VALUES (e.tenant_id, e.aggregate_id, 1, public.amount(e, %L), e.event_id, e.sequence_number)
        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, total = t.total + excluded.total,
            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version; END $f$',
        'apply_' || name, name, name);
    PERFORM projector_create(name, handler => 'apply_' || name, targets => ARRAY[name], ordering => ordering, options => options);
END $_$;


ALTER PROCEDURE public.make_handler(IN name text, IN ordering text, IN options jsonb) OWNER TO postgres;

--
-- Name: make_table(text); Type: PROCEDURE; Schema: public; Owner: postgres
--

CREATE PROCEDURE public.make_table(IN name text)
    LANGUAGE plpgsql
    AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (tenant_id text, id text, n bigint NOT NULL DEFAULT 0,
        total bigint NOT NULL DEFAULT 0, last_event_id uuid, last_event_version bigint, PRIMARY KEY (tenant_id, id))', name);
END $$;


ALTER PROCEDURE public.make_table(IN name text) OWNER TO postgres;

SET default_tablespace = '';


--
-- Name: at_once; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.at_once (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.at_once OWNER TO postgres;

--
-- Name: broken; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.broken (
    name text
);


ALTER TABLE public.broken OWNER TO postgres;

--
-- Name: built; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.built (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.built OWNER TO postgres;

--
-- Name: canary; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.canary (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.canary OWNER TO postgres;

--
-- Name: dead; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.dead (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.dead OWNER TO postgres;

--
-- Name: followed; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.followed (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.followed OWNER TO postgres;

--
-- Name: fresh; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.fresh (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.fresh OWNER TO postgres;

--
-- Name: in_place; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.in_place (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.in_place OWNER TO postgres;

--
-- Name: paused; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.paused (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.paused OWNER TO postgres;

--
-- Name: queued; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.queued (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.queued OWNER TO postgres;

--
-- Name: retried; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.retried (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.retried OWNER TO postgres;

--
-- Name: run_often; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.run_often (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.run_often OWNER TO postgres;

--
-- Name: skipping; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.skipping (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.skipping OWNER TO postgres;

--
-- Name: stopped; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.stopped (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.stopped OWNER TO postgres;

--
-- Name: strictly; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.strictly (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.strictly OWNER TO postgres;

--
-- Name: switched; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.switched (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.switched OWNER TO postgres;

--
-- Name: totals; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.totals (
    tenant_id text NOT NULL,
    n bigint NOT NULL,
    total bigint NOT NULL
);


ALTER TABLE public.totals OWNER TO postgres;

--
-- Name: tried; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.tried (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.tried OWNER TO postgres;

--
-- Name: unused; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.unused (
    tenant_id text NOT NULL,
    id text NOT NULL,
    n bigint DEFAULT 0 NOT NULL,
    total bigint DEFAULT 0 NOT NULL,
    last_event_id uuid,
    last_event_version bigint
);


ALTER TABLE public.unused OWNER TO postgres;

--
-- Data for Name: apply_outbox; Type: TABLE DATA; Schema: projector; Owner: postgres
--

COPY projector.apply_outbox (projection_id, log_seq, tenant_id, aggregate_id, sequence_number, event_type, status, held, replay, shadow, attempt_count, next_attempt_at, last_error, updated_at) FROM stdin;
5	49	globex	a	1	Added	pending	t	f	passed	0	2026-11-18 09:24:25.055901+00	\N	2026-11-18 09:24:26.294596+00
5	95	globex	d	11	Added	pending	t	f	passed	0	2026-11-18 09:24:25.237424+00	\N	2026-11-18 09:24:26.294596+00
5	96	globex	d	12	Added	pending	t	f	passed	0	2026-11-18 09:24:25.237424+00	\N	2026-11-18 09:24:26.294596+00
5	1	acme	a	1	Added	pending	t	f	passed	0	2026-11-18 09:24:24.877923+00	\N	2026-11-18 09:24:26.289832+00
5	2	acme	a	2	Added	pending	t	f	passed	0	2026-11-18 09:24:24.877923+00	\N	2026-11-18 09:24:26.289832+00
5	3	acme	a	3	Added	pending	t	f	passed	0	2026-11-18 09:24:24.877923+00	\N	2026-11-18 09:24:26.289832+00
5	4	acme	a	4	Added	pending	t	f	passed	0	2026-11-18 09:24:24.877923+00	\N	2026-11-18 09:24:26.289832+00
5	5	acme	a	5	Added	pending	t	f	passed	0	2026-11-18 09:24:24.877923+00	\N	2026-11-18 09:24:26.289832+00
5	6	acme	a	6	Added	pending	t	f	passed	0	2026-11-18 09:24:24.877923+00	\N	2026-11-18 09:24:26.289832+00
5	7	acme	a	7	Added	pending	t	f	passed	0	2026-11-18 09:24:24.893258+00	\N	2026-11-18 09:24:26.289832+00
5	8	acme	a	8	Added	pending	t	f	passed	0	2026-11-18 09:24:24.909436+00	\N	2026-11-18 09:24:26.289832+00
5	9	acme	a	9	Added	pending	t	f	passed	0	2026-11-18 09:24:24.909436+00	\N	2026-11-18 09:24:26.289832+00
5	10	acme	a	10	Added	pending	t	f	passed	0	2026-11-18 09:24:24.909436+00	\N	2026-11-18 09:24:26.289832+00
5	11	acme	a	11	Added	pending	t	f	passed	0	2026-11-18 09:24:24.909436+00	\N	2026-11-18 09:24:26.289832+00
5	12	acme	a	12	Added	pending	t	f	passed	0	2026-11-18 09:24:24.909436+00	\N	2026-11-18 09:24:26.289832+00
5	13	acme	b	1	Added	pending	t	f	passed	0	2026-11-18 09:24:24.923015+00	\N	2026-11-18 09:24:26.289832+00
5	14	acme	b	2	Added	pending	t	f	passed	0	2026-11-18 09:24:24.923015+00	\N	2026-11-18 09:24:26.289832+00
5	15	acme	b	3	Added	pending	t	f	passed	0	2026-11-18 09:24:24.923015+00	\N	2026-11-18 09:24:26.289832+00
5	16	acme	b	4	Added	pending	t	f	passed	0	2026-11-18 09:24:24.923015+00	\N	2026-11-18 09:24:26.289832+00
5	17	acme	b	5	Added	pending	t	f	passed	0	2026-11-18 09:24:24.923015+00	\N	2026-11-18 09:24:26.289832+00
5	18	acme	b	6	Added	pending	t	f	passed	0	2026-11-18 09:24:24.923015+00	\N	2026-11-18 09:24:26.289832+00
5	19	acme	b	7	Added	pending	t	f	passed	0	2026-11-18 09:24:24.937179+00	\N	2026-11-18 09:24:26.289832+00
5	20	acme	b	8	Added	pending	t	f	passed	0	2026-11-18 09:24:24.950618+00	\N	2026-11-18 09:24:26.289832+00
5	21	acme	b	9	Added	pending	t	f	passed	0	2026-11-18 09:24:24.950618+00	\N	2026-11-18 09:24:26.289832+00
5	22	acme	b	10	Added	pending	t	f	passed	0	2026-11-18 09:24:24.950618+00	\N	2026-11-18 09:24:26.289832+00
5	23	acme	b	11	Added	pending	t	f	passed	0	2026-11-18 09:24:24.950618+00	\N	2026-11-18 09:24:26.289832+00
5	24	acme	b	12	Added	pending	t	f	passed	0	2026-11-18 09:24:24.950618+00	\N	2026-11-18 09:24:26.289832+00
5	25	acme	c	1	Added	pending	t	f	passed	0	2026-11-18 09:24:24.965436+00	\N	2026-11-18 09:24:26.289832+00
5	26	acme	c	2	Added	pending	t	f	passed	0	2026-11-18 09:24:24.965436+00	\N	2026-11-18 09:24:26.289832+00
5	27	acme	c	3	Added	pending	t	f	passed	0	2026-11-18 09:24:24.965436+00	\N	2026-11-18 09:24:26.289832+00
5	28	acme	c	4	Added	pending	t	f	passed	0	2026-11-18 09:24:24.965436+00	\N	2026-11-18 09:24:26.289832+00
5	29	acme	c	5	Added	pending	t	f	passed	0	2026-11-18 09:24:24.965436+00	\N	2026-11-18 09:24:26.289832+00
5	30	acme	c	6	Added	pending	t	f	passed	0	2026-11-18 09:24:24.965436+00	\N	2026-11-18 09:24:26.289832+00
5	31	acme	c	7	Added	pending	t	f	passed	0	2026-11-18 09:24:24.983592+00	\N	2026-11-18 09:24:26.289832+00
5	32	acme	c	8	Added	pending	t	f	passed	0	2026-11-18 09:24:24.998109+00	\N	2026-11-18 09:24:26.289832+00
5	33	acme	c	9	Added	pending	t	f	passed	0	2026-11-18 09:24:24.998109+00	\N	2026-11-18 09:24:26.289832+00
5	34	acme	c	10	Added	pending	t	f	passed	0	2026-11-18 09:24:24.998109+00	\N	2026-11-18 09:24:26.289832+00
5	35	acme	c	11	Added	pending	t	f	passed	0	2026-11-18 09:24:24.998109+00	\N	2026-11-18 09:24:26.289832+00
5	36	acme	c	12	Added	pending	t	f	passed	0	2026-11-18 09:24:24.998109+00	\N	2026-11-18 09:24:26.289832+00
5	37	acme	d	1	Added	pending	t	f	passed	0	2026-11-18 09:24:25.013128+00	\N	2026-11-18 09:24:26.289832+00
5	38	acme	d	2	Added	pending	t	f	passed	0	2026-11-18 09:24:25.013128+00	\N	2026-11-18 09:24:26.289832+00
5	39	acme	d	3	Added	pending	t	f	passed	0	2026-11-18 09:24:25.013128+00	\N	2026-11-18 09:24:26.289832+00
5	40	acme	d	4	Added	pending	t	f	passed	0	2026-11-18 09:24:25.013128+00	\N	2026-11-18 09:24:26.289832+00
5	41	acme	d	5	Added	pending	t	f	passed	0	2026-11-18 09:24:25.013128+00	\N	2026-11-18 09:24:26.289832+00
5	42	acme	d	6	Added	pending	t	f	passed	0	2026-11-18 09:24:25.013128+00	\N	2026-11-18 09:24:26.289832+00
5	43	acme	d	7	Added	pending	t	f	passed	0	2026-11-18 09:24:25.027046+00	\N	2026-11-18 09:24:26.289832+00
5	44	acme	d	8	Added	pending	t	f	passed	0	2026-11-18 09:24:25.040234+00	\N	2026-11-18 09:24:26.289832+00
5	45	acme	d	9	Added	pending	t	f	passed	0	2026-11-18 09:24:25.040234+00	\N	2026-11-18 09:24:26.289832+00
5	46	acme	d	10	Added	pending	t	f	passed	0	2026-11-18 09:24:25.040234+00	\N	2026-11-18 09:24:26.289832+00
5	47	acme	d	11	Added	pending	t	f	passed	0	2026-11-18 09:24:25.040234+00	\N	2026-11-18 09:24:26.289832+00
5	48	acme	d	12	Added	pending	t	f	passed	0	2026-11-18 09:24:25.040234+00	\N	2026-11-18 09:24:26.289832+00
5	97	acme	d	13	Added	pending	t	f	passed	0	2026-11-18 09:24:25.2513+00	\N	2026-11-18 09:24:26.289832+00
5	98	acme	s	1	Checked	pending	t	f	passed	0	2026-11-18 09:24:25.266255+00	\N	2026-11-18 09:24:26.289832+00
5	99	acme	s	2	Checked	pending	t	f	passed	0	2026-11-18 09:24:25.266255+00	\N	2026-11-18 09:24:26.289832+00
5	100	acme	s	3	Checked	pending	t	f	passed	0	2026-11-18 09:24:25.266255+00	\N	2026-11-18 09:24:26.289832+00
5	50	globex	a	2	Added	pending	t	f	passed	0	2026-11-18 09:24:25.055901+00	\N	2026-11-18 09:24:26.294596+00
5	51	globex	a	3	Added	pending	t	f	passed	0	2026-11-18 09:24:25.055901+00	\N	2026-11-18 09:24:26.294596+00
5	52	globex	a	4	Added	pending	t	f	passed	0	2026-11-18 09:24:25.055901+00	\N	2026-11-18 09:24:26.294596+00
5	53	globex	a	5	Added	pending	t	f	passed	0	2026-11-18 09:24:25.055901+00	\N	2026-11-18 09:24:26.294596+00
5	54	globex	a	6	Added	pending	t	f	passed	0	2026-11-18 09:24:25.055901+00	\N	2026-11-18 09:24:26.294596+00
5	55	globex	a	7	Added	pending	t	f	passed	0	2026-11-18 09:24:25.073466+00	\N	2026-11-18 09:24:26.294596+00
5	56	globex	a	8	Added	pending	t	f	passed	0	2026-11-18 09:24:25.088223+00	\N	2026-11-18 09:24:26.294596+00
5	57	globex	a	9	Added	pending	t	f	passed	0	2026-11-18 09:24:25.088223+00	\N	2026-11-18 09:24:26.294596+00
5	58	globex	a	10	Added	pending	t	f	passed	0	2026-11-18 09:24:25.088223+00	\N	2026-11-18 09:24:26.294596+00
5	59	globex	a	11	Added	pending	t	f	passed	0	2026-11-18 09:24:25.088223+00	\N	2026-11-18 09:24:26.294596+00
5	60	globex	a	12	Added	pending	t	f	passed	0	2026-11-18 09:24:25.088223+00	\N	2026-11-18 09:24:26.294596+00
5	61	globex	b	1	Added	pending	t	f	passed	0	2026-11-18 09:24:25.101162+00	\N	2026-11-18 09:24:26.294596+00
5	62	globex	b	2	Added	pending	t	f	passed	0	2026-11-18 09:24:25.101162+00	\N	2026-11-18 09:24:26.294596+00
5	63	globex	b	3	Added	pending	t	f	passed	0	2026-11-18 09:24:25.101162+00	\N	2026-11-18 09:24:26.294596+00
5	64	globex	b	4	Added	pending	t	f	passed	0	2026-11-18 09:24:25.101162+00	\N	2026-11-18 09:24:26.294596+00
5	65	globex	b	5	Added	pending	t	f	passed	0	2026-11-18 09:24:25.101162+00	\N	2026-11-18 09:24:26.294596+00
5	66	globex	b	6	Added	pending	t	f	passed	0	2026-11-18 09:24:25.101162+00	\N	2026-11-18 09:24:26.294596+00
5	67	globex	b	7	Added	pending	t	f	passed	0	2026-11-18 09:24:25.123027+00	\N	2026-11-18 09:24:26.294596+00
5	68	globex	b	8	Added	pending	t	f	passed	0	2026-11-18 09:24:25.138465+00	\N	2026-11-18 09:24:26.294596+00
5	69	globex	b	9	Added	pending	t	f	passed	0	2026-11-18 09:24:25.138465+00	\N	2026-11-18 09:24:26.294596+00
5	70	globex	b	10	Added	pending	t	f	passed	0	2026-11-18 09:24:25.138465+00	\N	2026-11-18 09:24:26.294596+00
5	71	globex	b	11	Added	pending	t	f	passed	0	2026-11-18 09:24:25.138465+00	\N	2026-11-18 09:24:26.294596+00
5	72	globex	b	12	Added	pending	t	f	passed	0	2026-11-18 09:24:25.138465+00	\N	2026-11-18 09:24:26.294596+00
5	73	globex	c	1	Added	pending	t	f	passed	0	2026-11-18 09:24:25.157713+00	\N	2026-11-18 09:24:26.294596+00
5	74	globex	c	2	Added	pending	t	f	passed	0	2026-11-18 09:24:25.157713+00	\N	2026-11-18 09:24:26.294596+00
5	75	globex	c	3	Added	pending	t	f	passed	0	2026-11-18 09:24:25.157713+00	\N	2026-11-18 09:24:26.294596+00
5	76	globex	c	4	Added	pending	t	f	passed	0	2026-11-18 09:24:25.157713+00	\N	2026-11-18 09:24:26.294596+00
5	77	globex	c	5	Added	pending	t	f	passed	0	2026-11-18 09:24:25.157713+00	\N	2026-11-18 09:24:26.294596+00
5	78	globex	c	6	Added	pending	t	f	passed	0	2026-11-18 09:24:25.157713+00	\N	2026-11-18 09:24:26.294596+00
5	79	globex	c	7	Added	pending	t	f	passed	0	2026-11-18 09:24:25.174657+00	\N	2026-11-18 09:24:26.294596+00
5	80	globex	c	8	Added	pending	t	f	passed	0	2026-11-18 09:24:25.191142+00	\N	2026-11-18 09:24:26.294596+00
5	81	globex	c	9	Added	pending	t	f	passed	0	2026-11-18 09:24:25.191142+00	\N	2026-11-18 09:24:26.294596+00
5	82	globex	c	10	Added	pending	t	f	passed	0	2026-11-18 09:24:25.191142+00	\N	2026-11-18 09:24:26.294596+00
5	83	globex	c	11	Added	pending	t	f	passed	0	2026-11-18 09:24:25.191142+00	\N	2026-11-18 09:24:26.294596+00
5	84	globex	c	12	Added	pending	t	f	passed	0	2026-11-18 09:24:25.191142+00	\N	2026-11-18 09:24:26.294596+00
5	85	globex	d	1	Added	pending	t	f	passed	0	2026-11-18 09:24:25.203454+00	\N	2026-11-18 09:24:26.294596+00
5	86	globex	d	2	Added	pending	t	f	passed	0	2026-11-18 09:24:25.203454+00	\N	2026-11-18 09:24:26.294596+00
5	87	globex	d	3	Added	pending	t	f	passed	0	2026-11-18 09:24:25.203454+00	\N	2026-11-18 09:24:26.294596+00
5	88	globex	d	4	Added	pending	t	f	passed	0	2026-11-18 09:24:25.203454+00	\N	2026-11-18 09:24:26.294596+00
5	89	globex	d	5	Added	pending	t	f	passed	0	2026-11-18 09:24:25.203454+00	\N	2026-11-18 09:24:26.294596+00
5	90	globex	d	6	Added	pending	t	f	passed	0	2026-11-18 09:24:25.203454+00	\N	2026-11-18 09:24:26.294596+00
5	91	globex	d	7	Added	pending	t	f	passed	0	2026-11-18 09:24:25.22039+00	\N	2026-11-18 09:24:26.294596+00
5	92	globex	d	8	Added	pending	t	f	passed	0	2026-11-18 09:24:25.237424+00	\N	2026-11-18 09:24:26.294596+00
5	93	globex	d	9	Added	pending	t	f	passed	0	2026-11-18 09:24:25.237424+00	\N	2026-11-18 09:24:26.294596+00
5	94	globex	d	10	Added	pending	t	f	passed	0	2026-11-18 09:24:25.237424+00	\N	2026-11-18 09:24:26.294596+00
5	101	acme	x	1	Added	pending	t	f	passed	0	2026-11-18 09:24:26.458664+00	\N	2026-11-18 09:24:26.465014+00
13	102	acme	x	2	Added	dead	f	f	\N	1	2026-11-18 09:24:27.488506+00	bad event for stopped	2026-11-18 09:24:26.483274+00
14	102	acme	x	2	Added	failed	f	f	\N	1	2026-11-18 10:24:26.489369+00	bad event for retried	2026-11-18 09:24:26.483274+00
15	102	acme	x	2	Added	dead	f	f	\N	1	2026-11-18 09:24:27.490032+00	bad event for dead	2026-11-18 09:24:26.489905+00
5	102	acme	x	2	Added	pending	t	f	failed	0	2026-11-18 09:24:26.478443+00	\N	2026-11-18 09:24:26.489905+00
13	103	acme	x	3	Added	pending	f	f	\N	0	2026-11-18 09:24:26.496604+00	\N	2026-11-18 09:24:26.496604+00
5	103	acme	x	3	Added	pending	t	f	untested	0	2026-11-18 09:24:26.496604+00	\N	2026-11-18 09:24:26.505663+00
13	104	acme	x	4	Added	pending	f	f	\N	0	2026-11-18 09:24:26.496604+00	\N	2026-11-18 09:24:26.496604+00
14	104	acme	x	4	Added	pending	t	f	\N	0	2026-11-18 09:24:26.496604+00	\N	2026-11-18 09:24:26.500798+00
15	104	acme	x	4	Added	pending	t	f	\N	0	2026-11-18 09:24:26.496604+00	\N	2026-11-18 09:24:26.500798+00
5	104	acme	x	4	Added	pending	t	f	untested	0	2026-11-18 09:24:26.496604+00	\N	2026-11-18 09:24:26.505663+00
14	103	acme	x	3	Added	pending	t	f	\N	0	2026-11-18 09:24:26.496604+00	\N	2026-11-18 09:24:26.500798+00
15	103	acme	x	3	Added	pending	t	f	\N	0	2026-11-18 09:24:26.496604+00	\N	2026-11-18 09:24:26.500798+00
13	105	acme	y	1	Added	pending	f	f	\N	0	2026-11-18 09:24:26.512339+00	\N	2026-11-18 09:24:26.512339+00
13	106	acme	y	2	Added	pending	f	f	\N	0	2026-11-18 09:24:26.512339+00	\N	2026-11-18 09:24:26.512339+00
14	105	acme	y	1	Added	failed	f	f	\N	1	2026-11-18 10:24:26.520217+00	bad event for retried	2026-11-18 09:24:26.516865+00
14	106	acme	y	2	Added	pending	t	f	\N	0	2026-11-18 09:24:26.512339+00	\N	2026-11-18 09:24:26.516865+00
15	105	acme	y	1	Added	dead	f	f	\N	1	2026-11-18 09:24:27.520406+00	bad event for dead	2026-11-18 09:24:26.516865+00
15	106	acme	y	2	Added	pending	t	f	\N	0	2026-11-18 09:24:26.512339+00	\N	2026-11-18 09:24:26.516865+00
16	105	acme	y	1	Added	dead	f	f	\N	1	2026-11-18 09:24:27.520596+00	bad event for skipping	2026-11-18 09:24:26.516865+00
16	106	acme	y	2	Added	pending	t	f	\N	0	2026-11-18 09:24:26.512339+00	\N	2026-11-18 09:24:26.516865+00
5	105	acme	y	1	Added	pending	t	f	failed	0	2026-11-18 09:24:26.512339+00	\N	2026-11-18 09:24:26.516865+00
5	106	acme	y	2	Added	pending	t	f	untested	0	2026-11-18 09:24:26.512339+00	\N	2026-11-18 09:24:26.516865+00
1	107	acme	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
5	107	acme	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
9	107	acme	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
10	107	acme	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
11	107	acme	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
12	107	acme	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
13	107	acme	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
14	107	acme	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
15	107	acme	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
16	107	acme	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
17	107	acme	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
18	107	acme	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
1	108	acme	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
5	108	acme	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
9	108	acme	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
10	108	acme	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
11	108	acme	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
12	108	acme	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
13	108	acme	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
14	108	acme	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
15	108	acme	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
16	108	acme	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
17	108	acme	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
18	108	acme	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
1	109	acme	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
5	109	acme	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
9	109	acme	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
10	109	acme	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
11	109	acme	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
12	109	acme	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
13	109	acme	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
14	109	acme	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
15	109	acme	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
16	109	acme	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
17	109	acme	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
18	109	acme	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
1	110	acme	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
5	110	acme	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
9	110	acme	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
10	110	acme	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
11	110	acme	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
12	110	acme	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
13	110	acme	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
14	110	acme	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
15	110	acme	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
16	110	acme	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
17	110	acme	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
18	110	acme	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.491412+00	\N	2026-11-18 09:24:27.491412+00
1	111	acme	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
5	111	acme	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
9	111	acme	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
10	111	acme	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
11	111	acme	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
12	111	acme	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
13	111	acme	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
14	111	acme	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
15	111	acme	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
16	111	acme	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
17	111	acme	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
18	111	acme	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
1	112	acme	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
5	112	acme	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
9	112	acme	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
10	112	acme	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
11	112	acme	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
12	112	acme	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
13	112	acme	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
14	112	acme	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
15	112	acme	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
16	112	acme	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
17	112	acme	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
18	112	acme	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
1	113	acme	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
5	113	acme	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
9	113	acme	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
10	113	acme	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
11	113	acme	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
12	113	acme	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
13	113	acme	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
14	113	acme	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
15	113	acme	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
16	113	acme	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
17	113	acme	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
18	113	acme	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.504749+00	\N	2026-11-18 09:24:27.504749+00
1	114	globex	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
5	114	globex	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
10	114	globex	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
11	114	globex	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
12	114	globex	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
13	114	globex	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
14	114	globex	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
15	114	globex	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
16	114	globex	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
17	114	globex	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
18	114	globex	a	13	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
1	115	globex	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
5	115	globex	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
10	115	globex	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
11	115	globex	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
12	115	globex	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
13	115	globex	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
14	115	globex	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
15	115	globex	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
16	115	globex	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
17	115	globex	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
18	115	globex	a	14	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
1	116	globex	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
5	116	globex	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
10	116	globex	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
11	116	globex	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
12	116	globex	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
13	116	globex	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
14	116	globex	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
15	116	globex	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
16	116	globex	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
17	116	globex	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
18	116	globex	a	15	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
1	117	globex	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
5	117	globex	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
10	117	globex	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
11	117	globex	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
12	117	globex	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
13	117	globex	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
14	117	globex	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
15	117	globex	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
16	117	globex	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
17	117	globex	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
18	117	globex	a	16	Added	pending	f	f	\N	0	2026-11-18 09:24:27.517746+00	\N	2026-11-18 09:24:27.517746+00
1	118	globex	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
5	118	globex	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
10	118	globex	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
11	118	globex	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
12	118	globex	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
13	118	globex	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
14	118	globex	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
15	118	globex	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
16	118	globex	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
17	118	globex	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
18	118	globex	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
1	119	globex	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
5	119	globex	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
10	119	globex	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
11	119	globex	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
12	119	globex	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
13	119	globex	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
14	119	globex	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
15	119	globex	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
16	119	globex	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
17	119	globex	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
18	119	globex	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
1	120	globex	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
5	120	globex	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
10	120	globex	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
11	120	globex	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
12	120	globex	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
13	120	globex	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
14	120	globex	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
15	120	globex	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
16	120	globex	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
17	120	globex	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
18	120	globex	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.532203+00	\N	2026-11-18 09:24:27.532203+00
1	121	initech	a	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
5	121	initech	a	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
9	121	initech	a	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
10	121	initech	a	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
11	121	initech	a	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
12	121	initech	a	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
13	121	initech	a	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
14	121	initech	a	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
15	121	initech	a	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
16	121	initech	a	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
17	121	initech	a	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
18	121	initech	a	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
1	122	initech	a	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
5	122	initech	a	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
9	122	initech	a	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
10	122	initech	a	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
11	122	initech	a	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
12	122	initech	a	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
13	122	initech	a	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
14	122	initech	a	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
15	122	initech	a	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
16	122	initech	a	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
17	122	initech	a	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
18	122	initech	a	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
1	123	initech	a	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
5	123	initech	a	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
9	123	initech	a	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
10	123	initech	a	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
11	123	initech	a	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
12	123	initech	a	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
13	123	initech	a	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
14	123	initech	a	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
15	123	initech	a	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
16	123	initech	a	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
17	123	initech	a	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
18	123	initech	a	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
1	124	initech	a	4	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
5	124	initech	a	4	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
9	124	initech	a	4	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
10	124	initech	a	4	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
11	124	initech	a	4	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
12	124	initech	a	4	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
13	124	initech	a	4	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
14	124	initech	a	4	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
15	124	initech	a	4	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
16	124	initech	a	4	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
17	124	initech	a	4	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
18	124	initech	a	4	Added	pending	f	f	\N	0	2026-11-18 09:24:27.546822+00	\N	2026-11-18 09:24:27.546822+00
1	125	initech	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
5	125	initech	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
9	125	initech	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
10	125	initech	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
11	125	initech	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
12	125	initech	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
13	125	initech	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
14	125	initech	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
15	125	initech	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
16	125	initech	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
17	125	initech	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
18	125	initech	z	1	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
1	126	initech	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
5	126	initech	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
9	126	initech	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
10	126	initech	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
11	126	initech	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
12	126	initech	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
13	126	initech	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
14	126	initech	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
15	126	initech	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
16	126	initech	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
17	126	initech	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
18	126	initech	z	2	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
1	127	initech	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
5	127	initech	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
9	127	initech	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
10	127	initech	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
11	127	initech	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
12	127	initech	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
13	127	initech	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
14	127	initech	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
15	127	initech	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
16	127	initech	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
17	127	initech	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
18	127	initech	z	3	Added	pending	f	f	\N	0	2026-11-18 09:24:27.560072+00	\N	2026-11-18 09:24:27.560072+00
1	128	acme	x	5	Added	pending	f	f	\N	0	2026-11-18 09:24:27.573634+00	\N	2026-11-18 09:24:27.573634+00
5	128	acme	x	5	Added	pending	f	f	\N	0	2026-11-18 09:24:27.573634+00	\N	2026-11-18 09:24:27.573634+00
9	128	acme	x	5	Added	pending	f	f	\N	0	2026-11-18 09:24:27.573634+00	\N	2026-11-18 09:24:27.573634+00
10	128	acme	x	5	Added	pending	f	f	\N	0	2026-11-18 09:24:27.573634+00	\N	2026-11-18 09:24:27.573634+00
11	128	acme	x	5	Added	pending	f	f	\N	0	2026-11-18 09:24:27.573634+00	\N	2026-11-18 09:24:27.573634+00
12	128	acme	x	5	Added	pending	f	f	\N	0	2026-11-18 09:24:27.573634+00	\N	2026-11-18 09:24:27.573634+00
13	128	acme	x	5	Added	pending	f	f	\N	0	2026-11-18 09:24:27.573634+00	\N	2026-11-18 09:24:27.573634+00
14	128	acme	x	5	Added	pending	f	f	\N	0	2026-11-18 09:24:27.573634+00	\N	2026-11-18 09:24:27.573634+00
15	128	acme	x	5	Added	pending	f	f	\N	0	2026-11-18 09:24:27.573634+00	\N	2026-11-18 09:24:27.573634+00
16	128	acme	x	5	Added	pending	f	f	\N	0	2026-11-18 09:24:27.573634+00	\N	2026-11-18 09:24:27.573634+00
17	128	acme	x	5	Added	pending	f	f	\N	0	2026-11-18 09:24:27.573634+00	\N	2026-11-18 09:24:27.573634+00
18	128	acme	x	5	Added	pending	f	f	\N	0	2026-11-18 09:24:27.573634+00	\N	2026-11-18 09:24:27.573634+00
\.


--
-- Data for Name: events; Type: TABLE DATA; Schema: projector; Owner: postgres
--

COPY projector.events (log_seq, tenant_id, aggregate_id, sequence_number, event_id, event_type, payload, metadata, payload_hash, recorded_at) FROM stdin;
1	acme	a	1	ec3ae16c-00e1-419a-bd1d-6d1b472e46b5	Added	{"amount": 1}	{}	\\x8c37069c637bad186ef9d155641606edfec0f1336759fe8ecee8bbeadac07ad7	2026-11-18 09:24:24.879008+00
2	acme	a	2	26a59720-12c5-4025-ac0c-1fab8b043fb7	Added	{"amount": 2}	{}	\\x7af26f9b6f1c0ab2105eb36361461744ee56c33ef6858ba3d20e2a1c5a40a68c	2026-11-18 09:24:24.882534+00
3	acme	a	3	c93153c0-7232-4135-8c8c-0babe4acaf48	Added	{"amount": 3}	{}	\\x357b4fa72cc0672e4ab027afed93b118670275710a6eec54d97b3c82bdceabd3	2026-11-18 09:24:24.882715+00
4	acme	a	4	029a5572-16eb-4102-b664-41b501ee7775	Added	{"amount": 4}	{}	\\xe7e59a0ccd1dfee8a305fd7c41d2dc8efac5e516ac905ea9564a8e19fffab650	2026-11-18 09:24:24.882862+00
5	acme	a	5	e389a1b3-e350-45f6-9dbe-57595baeb52f	Added	{"amount": 5}	{}	\\xba0045583c6e765a5ba6d529a963e2fda41f894a79277f5f94b51f8184a3936a	2026-11-18 09:24:24.882985+00
6	acme	a	6	bd01cc44-bb28-4fce-a932-b39a3c5a3598	Added	{"amount": 6}	{}	\\x9f6b51caa07fa1df0ce7e31a86843062d16a30f5bf9231d3fe2c08bcb44f0681	2026-11-18 09:24:24.883105+00
7	acme	a	7	60b22e36-d1f7-43f0-a099-908a81bc74d4	Added	{"gate": 1, "amount": 7}	{}	\\xaf5c132094bb33aa876b7e13ad23c951f6bc4a988f6cba68f4c7f2fd6434d9bf	2026-11-18 09:24:24.89411+00
8	acme	a	8	d4a64b8a-eabe-4504-b1b1-dc4135ec2a7d	Added	{"amount": 8}	{}	\\x7ee2646ea7eda7ea61ba96673fac99fd8f5b51a994321af7948a10c6ba351078	2026-11-18 09:24:24.910272+00
9	acme	a	9	57798060-a30e-4912-aaa4-c391b9e864a2	Added	{"amount": 9}	{}	\\x996989582fc20c265711547939a0bebc10336e6ee92648047348c123ac1567a5	2026-11-18 09:24:24.913198+00
10	acme	a	10	f3bc5cd8-7860-417c-a7b9-7849c9fc79e0	Added	{"amount": 10}	{}	\\x7f8b279ef4be0909382db4442750f8eb84f2874cf43c826a86acffb6dc28c84d	2026-11-18 09:24:24.913334+00
11	acme	a	11	e0b6bb18-6a7f-4698-98e9-230d72717911	Added	{"amount": 11}	{}	\\x10d7ef51d013d0207dba835137cd740c4bd3c4150c26743d53768a4a16c0e3cd	2026-11-18 09:24:24.913445+00
12	acme	a	12	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	Added	{"amount": 12}	{}	\\xac29f98d4fba45cfc0f4d72255b374e19b04869efd0dda23cd616f6d2102f295	2026-11-18 09:24:24.913569+00
13	acme	b	1	0bece734-942d-4190-876b-97ec57b903bb	Added	{"amount": 1}	{}	\\x8c37069c637bad186ef9d155641606edfec0f1336759fe8ecee8bbeadac07ad7	2026-11-18 09:24:24.923739+00
14	acme	b	2	c358132b-8405-427f-971b-26f60b538dc2	Added	{"amount": 2}	{}	\\x7af26f9b6f1c0ab2105eb36361461744ee56c33ef6858ba3d20e2a1c5a40a68c	2026-11-18 09:24:24.926531+00
15	acme	b	3	23340a8e-9c9a-4362-957e-55c085564afe	Added	{"amount": 3}	{}	\\x357b4fa72cc0672e4ab027afed93b118670275710a6eec54d97b3c82bdceabd3	2026-11-18 09:24:24.926679+00
16	acme	b	4	6bbeb28e-53d4-4123-b630-7ce92afbbb0f	Added	{"amount": 4}	{}	\\xe7e59a0ccd1dfee8a305fd7c41d2dc8efac5e516ac905ea9564a8e19fffab650	2026-11-18 09:24:24.926801+00
17	acme	b	5	9a0da660-010d-448e-acc4-7a142f6e57ce	Added	{"amount": 5}	{}	\\xba0045583c6e765a5ba6d529a963e2fda41f894a79277f5f94b51f8184a3936a	2026-11-18 09:24:24.926896+00
18	acme	b	6	f4897aac-20a3-4318-bb97-e205f6d009df	Added	{"amount": 6}	{}	\\x9f6b51caa07fa1df0ce7e31a86843062d16a30f5bf9231d3fe2c08bcb44f0681	2026-11-18 09:24:24.927089+00
19	acme	b	7	8d5269e7-f135-49de-8fbb-01af1d0d23fc	Added	{"gate": 1, "amount": 7}	{}	\\xaf5c132094bb33aa876b7e13ad23c951f6bc4a988f6cba68f4c7f2fd6434d9bf	2026-11-18 09:24:24.93843+00
20	acme	b	8	b28d49f3-31a4-4a7e-a81b-370eb14a623c	Added	{"amount": 8}	{}	\\x7ee2646ea7eda7ea61ba96673fac99fd8f5b51a994321af7948a10c6ba351078	2026-11-18 09:24:24.951371+00
21	acme	b	9	5ed7f461-9b64-4cb9-8924-5002d9793807	Added	{"amount": 9}	{}	\\x996989582fc20c265711547939a0bebc10336e6ee92648047348c123ac1567a5	2026-11-18 09:24:24.953877+00
22	acme	b	10	04752c94-3175-46df-b7dd-f009fcbe9ddd	Added	{"amount": 10}	{}	\\x7f8b279ef4be0909382db4442750f8eb84f2874cf43c826a86acffb6dc28c84d	2026-11-18 09:24:24.954192+00
23	acme	b	11	d6c10f77-163f-410c-bd66-22f0ad8d6e3a	Added	{"amount": 11}	{}	\\x10d7ef51d013d0207dba835137cd740c4bd3c4150c26743d53768a4a16c0e3cd	2026-11-18 09:24:24.954335+00
24	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	Added	{"amount": 12}	{}	\\xac29f98d4fba45cfc0f4d72255b374e19b04869efd0dda23cd616f6d2102f295	2026-11-18 09:24:24.954425+00
25	acme	c	1	80641ef1-8f07-40ff-8a50-573a9660822f	Added	{"amount": 1}	{}	\\x8c37069c637bad186ef9d155641606edfec0f1336759fe8ecee8bbeadac07ad7	2026-11-18 09:24:24.966504+00
26	acme	c	2	c0c69def-3748-4dac-878e-b01dfc196253	Added	{"amount": 2}	{}	\\x7af26f9b6f1c0ab2105eb36361461744ee56c33ef6858ba3d20e2a1c5a40a68c	2026-11-18 09:24:24.969958+00
27	acme	c	3	273294f0-5edb-490f-93f3-318fcd4a4ebd	Added	{"amount": 3}	{}	\\x357b4fa72cc0672e4ab027afed93b118670275710a6eec54d97b3c82bdceabd3	2026-11-18 09:24:24.97027+00
28	acme	c	4	1ad25bb1-ee35-4a05-a9b4-766ed99b6b61	Added	{"amount": 4}	{}	\\xe7e59a0ccd1dfee8a305fd7c41d2dc8efac5e516ac905ea9564a8e19fffab650	2026-11-18 09:24:24.970443+00
29	acme	c	5	2a8c609b-1612-46b5-af7e-57b3b691fa1e	Added	{"amount": 5}	{}	\\xba0045583c6e765a5ba6d529a963e2fda41f894a79277f5f94b51f8184a3936a	2026-11-18 09:24:24.97057+00
30	acme	c	6	fe89adf4-e535-468d-934d-cf84ba082f60	Added	{"amount": 6}	{}	\\x9f6b51caa07fa1df0ce7e31a86843062d16a30f5bf9231d3fe2c08bcb44f0681	2026-11-18 09:24:24.970662+00
31	acme	c	7	7aa61f9d-aa4d-4af7-8651-5317255c8bfe	Added	{"gate": 1, "amount": 7}	{}	\\xaf5c132094bb33aa876b7e13ad23c951f6bc4a988f6cba68f4c7f2fd6434d9bf	2026-11-18 09:24:24.984435+00
32	acme	c	8	01da4894-7a98-4213-be0b-65588f8b94bc	Added	{"amount": 8}	{}	\\x7ee2646ea7eda7ea61ba96673fac99fd8f5b51a994321af7948a10c6ba351078	2026-11-18 09:24:24.998904+00
33	acme	c	9	d5ff53f7-41b1-4b01-96a6-05a68eaef14d	Added	{"amount": 9}	{}	\\x996989582fc20c265711547939a0bebc10336e6ee92648047348c123ac1567a5	2026-11-18 09:24:25.001647+00
34	acme	c	10	77a026ab-867e-451a-8ef7-7b645c19fbd5	Added	{"amount": 10}	{}	\\x7f8b279ef4be0909382db4442750f8eb84f2874cf43c826a86acffb6dc28c84d	2026-11-18 09:24:25.001999+00
35	acme	c	11	cfd7bb91-a005-4aa4-937b-a0b249d1c33d	Added	{"amount": 11}	{}	\\x10d7ef51d013d0207dba835137cd740c4bd3c4150c26743d53768a4a16c0e3cd	2026-11-18 09:24:25.002128+00
36	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	Added	{"amount": 12}	{}	\\xac29f98d4fba45cfc0f4d72255b374e19b04869efd0dda23cd616f6d2102f295	2026-11-18 09:24:25.002213+00
37	acme	d	1	c95ae1c2-a0b2-4608-b929-c673245f7b4f	Added	{"amount": 1}	{}	\\x8c37069c637bad186ef9d155641606edfec0f1336759fe8ecee8bbeadac07ad7	2026-11-18 09:24:25.014013+00
38	acme	d	2	06673c49-92e4-4ecb-a340-46290390aa32	Added	{"amount": 2}	{}	\\x7af26f9b6f1c0ab2105eb36361461744ee56c33ef6858ba3d20e2a1c5a40a68c	2026-11-18 09:24:25.017256+00
39	acme	d	3	37a9f06b-9139-4fd3-b245-4861d2339fda	Added	{"amount": 3}	{}	\\x357b4fa72cc0672e4ab027afed93b118670275710a6eec54d97b3c82bdceabd3	2026-11-18 09:24:25.017575+00
40	acme	d	4	2a31bb4a-ea56-49d8-9e70-d799e0f8bc3a	Added	{"amount": 4}	{}	\\xe7e59a0ccd1dfee8a305fd7c41d2dc8efac5e516ac905ea9564a8e19fffab650	2026-11-18 09:24:25.017695+00
41	acme	d	5	e4ae39c7-d945-4bdf-b5ca-9489fdd0fad2	Added	{"amount": 5}	{}	\\xba0045583c6e765a5ba6d529a963e2fda41f894a79277f5f94b51f8184a3936a	2026-11-18 09:24:25.017876+00
42	acme	d	6	5d05a96d-c0bc-481e-8973-697aa20fe5b8	Added	{"amount": 6}	{}	\\x9f6b51caa07fa1df0ce7e31a86843062d16a30f5bf9231d3fe2c08bcb44f0681	2026-11-18 09:24:25.018042+00
43	acme	d	7	ef56e5ed-f1ab-4a18-9672-077a6ec0998b	Added	{"gate": 1, "amount": 7}	{}	\\xaf5c132094bb33aa876b7e13ad23c951f6bc4a988f6cba68f4c7f2fd6434d9bf	2026-11-18 09:24:25.028024+00
44	acme	d	8	108821eb-f38e-40fe-857b-2d958b70baa6	Added	{"amount": 8}	{}	\\x7ee2646ea7eda7ea61ba96673fac99fd8f5b51a994321af7948a10c6ba351078	2026-11-18 09:24:25.041215+00
45	acme	d	9	8cc64281-3953-435f-82f9-d6c9e6dffb80	Added	{"amount": 9}	{}	\\x996989582fc20c265711547939a0bebc10336e6ee92648047348c123ac1567a5	2026-11-18 09:24:25.04461+00
46	acme	d	10	29cf41f5-cb8f-44fd-b70a-b42c5b5abc66	Added	{"amount": 10}	{}	\\x7f8b279ef4be0909382db4442750f8eb84f2874cf43c826a86acffb6dc28c84d	2026-11-18 09:24:25.044823+00
47	acme	d	11	ab1905b8-4192-42da-bdeb-c8650348c492	Added	{"amount": 11}	{}	\\x10d7ef51d013d0207dba835137cd740c4bd3c4150c26743d53768a4a16c0e3cd	2026-11-18 09:24:25.044963+00
48	acme	d	12	2ff61bd6-ea85-42c2-a00b-05c225425ed9	Added	{"amount": 12}	{}	\\xac29f98d4fba45cfc0f4d72255b374e19b04869efd0dda23cd616f6d2102f295	2026-11-18 09:24:25.045051+00
49	globex	a	1	bcdb76d2-7fc7-4396-a45e-967aff41118c	Added	{"amount": 1}	{}	\\x8c37069c637bad186ef9d155641606edfec0f1336759fe8ecee8bbeadac07ad7	2026-11-18 09:24:25.056728+00
50	globex	a	2	2873cb2b-483c-4f99-abe1-25d659c421e3	Added	{"amount": 2}	{}	\\x7af26f9b6f1c0ab2105eb36361461744ee56c33ef6858ba3d20e2a1c5a40a68c	2026-11-18 09:24:25.059815+00
51	globex	a	3	e82912f4-bfcb-46ee-ad5d-904996e9914e	Added	{"amount": 3}	{}	\\x357b4fa72cc0672e4ab027afed93b118670275710a6eec54d97b3c82bdceabd3	2026-11-18 09:24:25.06001+00
52	globex	a	4	39d62b16-d086-40c0-af5e-6b8ec5411850	Added	{"amount": 4}	{}	\\xe7e59a0ccd1dfee8a305fd7c41d2dc8efac5e516ac905ea9564a8e19fffab650	2026-11-18 09:24:25.060121+00
53	globex	a	5	267503d2-bd82-416b-adfd-44462fc6a0b1	Added	{"amount": 5}	{}	\\xba0045583c6e765a5ba6d529a963e2fda41f894a79277f5f94b51f8184a3936a	2026-11-18 09:24:25.060352+00
54	globex	a	6	560691d4-40b5-47bb-82b8-6b6818de5691	Added	{"amount": 6}	{}	\\x9f6b51caa07fa1df0ce7e31a86843062d16a30f5bf9231d3fe2c08bcb44f0681	2026-11-18 09:24:25.060581+00
55	globex	a	7	377e313c-513c-4e63-aaed-f0f7016e9032	Added	{"gate": 1, "amount": 7}	{}	\\xaf5c132094bb33aa876b7e13ad23c951f6bc4a988f6cba68f4c7f2fd6434d9bf	2026-11-18 09:24:25.074479+00
56	globex	a	8	5cb731dd-7e1a-45c1-ba3e-4b9f64c96e2b	Added	{"amount": 8}	{}	\\x7ee2646ea7eda7ea61ba96673fac99fd8f5b51a994321af7948a10c6ba351078	2026-11-18 09:24:25.089147+00
57	globex	a	9	7754cd36-63a7-42aa-8f5e-cd8885688262	Added	{"amount": 9}	{}	\\x996989582fc20c265711547939a0bebc10336e6ee92648047348c123ac1567a5	2026-11-18 09:24:25.091834+00
58	globex	a	10	3c793d40-5b6a-4b83-990e-6363f98478c7	Added	{"amount": 10}	{}	\\x7f8b279ef4be0909382db4442750f8eb84f2874cf43c826a86acffb6dc28c84d	2026-11-18 09:24:25.091997+00
59	globex	a	11	481e78ae-0a8a-4a33-be77-ad6bba0eefc6	Added	{"amount": 11}	{}	\\x10d7ef51d013d0207dba835137cd740c4bd3c4150c26743d53768a4a16c0e3cd	2026-11-18 09:24:25.092093+00
60	globex	a	12	f89e6397-d44c-489f-9d89-c8b9b3ae6511	Added	{"amount": 12}	{}	\\xac29f98d4fba45cfc0f4d72255b374e19b04869efd0dda23cd616f6d2102f295	2026-11-18 09:24:25.092288+00
61	globex	b	1	87662383-9344-4578-8761-aa4a8cfaf0cb	Added	{"amount": 1}	{}	\\x8c37069c637bad186ef9d155641606edfec0f1336759fe8ecee8bbeadac07ad7	2026-11-18 09:24:25.101939+00
62	globex	b	2	8fe9792c-3b67-4340-8017-234336b4d758	Added	{"amount": 2}	{}	\\x7af26f9b6f1c0ab2105eb36361461744ee56c33ef6858ba3d20e2a1c5a40a68c	2026-11-18 09:24:25.106087+00
63	globex	b	3	48b71a6b-d2d2-40d6-b605-1a3de8d13b20	Added	{"amount": 3}	{}	\\x357b4fa72cc0672e4ab027afed93b118670275710a6eec54d97b3c82bdceabd3	2026-11-18 09:24:25.106258+00
64	globex	b	4	ea7d1a49-6a49-46b0-a3e6-b27395aaee0e	Added	{"amount": 4}	{}	\\xe7e59a0ccd1dfee8a305fd7c41d2dc8efac5e516ac905ea9564a8e19fffab650	2026-11-18 09:24:25.106427+00
65	globex	b	5	f50c2076-1786-4af3-bed5-009097791cce	Added	{"amount": 5}	{}	\\xba0045583c6e765a5ba6d529a963e2fda41f894a79277f5f94b51f8184a3936a	2026-11-18 09:24:25.106635+00
66	globex	b	6	513449be-b220-4399-b7ad-fb3efbcd3e6c	Added	{"amount": 6}	{}	\\x9f6b51caa07fa1df0ce7e31a86843062d16a30f5bf9231d3fe2c08bcb44f0681	2026-11-18 09:24:25.106805+00
67	globex	b	7	7c2fa95e-e4ca-45bb-a7da-55cad0b28e15	Added	{"gate": 1, "amount": 7}	{}	\\xaf5c132094bb33aa876b7e13ad23c951f6bc4a988f6cba68f4c7f2fd6434d9bf	2026-11-18 09:24:25.123984+00
68	globex	b	8	75c0b651-b2e8-422b-b38f-5a91aede64ab	Added	{"amount": 8}	{}	\\x7ee2646ea7eda7ea61ba96673fac99fd8f5b51a994321af7948a10c6ba351078	2026-11-18 09:24:25.139643+00
69	globex	b	9	67b5dbf4-7efa-409e-8fea-e400e9577a54	Added	{"amount": 9}	{}	\\x996989582fc20c265711547939a0bebc10336e6ee92648047348c123ac1567a5	2026-11-18 09:24:25.143516+00
70	globex	b	10	cbbf0375-be1e-41dd-a9b7-ae442e54c569	Added	{"amount": 10}	{}	\\x7f8b279ef4be0909382db4442750f8eb84f2874cf43c826a86acffb6dc28c84d	2026-11-18 09:24:25.143864+00
71	globex	b	11	386f7e94-1227-4b93-8ea6-0cabb67278f3	Added	{"amount": 11}	{}	\\x10d7ef51d013d0207dba835137cd740c4bd3c4150c26743d53768a4a16c0e3cd	2026-11-18 09:24:25.143995+00
72	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	Added	{"amount": 12}	{}	\\xac29f98d4fba45cfc0f4d72255b374e19b04869efd0dda23cd616f6d2102f295	2026-11-18 09:24:25.144146+00
73	globex	c	1	f4a8d086-0e7a-4b93-af99-f872580ffa10	Added	{"amount": 1}	{}	\\x8c37069c637bad186ef9d155641606edfec0f1336759fe8ecee8bbeadac07ad7	2026-11-18 09:24:25.159328+00
74	globex	c	2	2c8cf67c-2406-4cd3-ac68-1ab8f7039f63	Added	{"amount": 2}	{}	\\x7af26f9b6f1c0ab2105eb36361461744ee56c33ef6858ba3d20e2a1c5a40a68c	2026-11-18 09:24:25.162476+00
75	globex	c	3	9e0cdfa9-0f97-47d9-a953-e10ffd338b2f	Added	{"amount": 3}	{}	\\x357b4fa72cc0672e4ab027afed93b118670275710a6eec54d97b3c82bdceabd3	2026-11-18 09:24:25.16274+00
76	globex	c	4	b7212ec1-7b3b-482e-9493-58369789768e	Added	{"amount": 4}	{}	\\xe7e59a0ccd1dfee8a305fd7c41d2dc8efac5e516ac905ea9564a8e19fffab650	2026-11-18 09:24:25.162953+00
77	globex	c	5	d02f6818-f338-48a5-9746-e862dbce3726	Added	{"amount": 5}	{}	\\xba0045583c6e765a5ba6d529a963e2fda41f894a79277f5f94b51f8184a3936a	2026-11-18 09:24:25.163293+00
78	globex	c	6	d151ceea-d8a7-45c5-bc22-4b3ce43cb04d	Added	{"amount": 6}	{}	\\x9f6b51caa07fa1df0ce7e31a86843062d16a30f5bf9231d3fe2c08bcb44f0681	2026-11-18 09:24:25.163409+00
79	globex	c	7	f8c2b9f8-b51a-4cb4-acb2-ff7ab445549e	Added	{"gate": 1, "amount": 7}	{}	\\xaf5c132094bb33aa876b7e13ad23c951f6bc4a988f6cba68f4c7f2fd6434d9bf	2026-11-18 09:24:25.175637+00
80	globex	c	8	711f2f3a-b7c3-40a0-b925-f2ed9c7c1655	Added	{"amount": 8}	{}	\\x7ee2646ea7eda7ea61ba96673fac99fd8f5b51a994321af7948a10c6ba351078	2026-11-18 09:24:25.192074+00
81	globex	c	9	a2f06040-6ed8-4e3c-b61d-1414cf94571b	Added	{"amount": 9}	{}	\\x996989582fc20c265711547939a0bebc10336e6ee92648047348c123ac1567a5	2026-11-18 09:24:25.19473+00
82	globex	c	10	7a711d46-f48e-44d3-bbec-44af19822447	Added	{"amount": 10}	{}	\\x7f8b279ef4be0909382db4442750f8eb84f2874cf43c826a86acffb6dc28c84d	2026-11-18 09:24:25.194916+00
83	globex	c	11	4eb813dd-0108-4417-bab5-f6ab7828b1a3	Added	{"amount": 11}	{}	\\x10d7ef51d013d0207dba835137cd740c4bd3c4150c26743d53768a4a16c0e3cd	2026-11-18 09:24:25.195011+00
84	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	Added	{"amount": 12}	{}	\\xac29f98d4fba45cfc0f4d72255b374e19b04869efd0dda23cd616f6d2102f295	2026-11-18 09:24:25.195103+00
85	globex	d	1	9ef1798a-3bc5-48cd-801a-4618ec0b8fd3	Added	{"amount": 1}	{}	\\x8c37069c637bad186ef9d155641606edfec0f1336759fe8ecee8bbeadac07ad7	2026-11-18 09:24:25.204238+00
86	globex	d	2	58854871-10d4-4b21-bd04-7cbb4f1bf25e	Added	{"amount": 2}	{}	\\x7af26f9b6f1c0ab2105eb36361461744ee56c33ef6858ba3d20e2a1c5a40a68c	2026-11-18 09:24:25.208086+00
87	globex	d	3	ea5c8d5d-b08d-44dd-9fd2-92181f53f641	Added	{"amount": 3}	{}	\\x357b4fa72cc0672e4ab027afed93b118670275710a6eec54d97b3c82bdceabd3	2026-11-18 09:24:25.208265+00
88	globex	d	4	059a6cf1-102b-46bf-8ef9-2383426fb5c8	Added	{"amount": 4}	{}	\\xe7e59a0ccd1dfee8a305fd7c41d2dc8efac5e516ac905ea9564a8e19fffab650	2026-11-18 09:24:25.208612+00
89	globex	d	5	8ae24548-e2c7-44cd-95e8-b28220048e67	Added	{"amount": 5}	{}	\\xba0045583c6e765a5ba6d529a963e2fda41f894a79277f5f94b51f8184a3936a	2026-11-18 09:24:25.208778+00
90	globex	d	6	986036e5-f48c-46d7-898d-2a961d1b23b3	Added	{"amount": 6}	{}	\\x9f6b51caa07fa1df0ce7e31a86843062d16a30f5bf9231d3fe2c08bcb44f0681	2026-11-18 09:24:25.209064+00
91	globex	d	7	49b28d0d-fcf0-46c7-a3c5-abf39a285126	Added	{"gate": 1, "amount": 7}	{}	\\xaf5c132094bb33aa876b7e13ad23c951f6bc4a988f6cba68f4c7f2fd6434d9bf	2026-11-18 09:24:25.22196+00
92	globex	d	8	91ad3a5c-ca55-48c8-953c-99aa5aca5246	Added	{"amount": 8}	{}	\\x7ee2646ea7eda7ea61ba96673fac99fd8f5b51a994321af7948a10c6ba351078	2026-11-18 09:24:25.238372+00
93	globex	d	9	2dfb3761-b9c9-4e5a-8e54-0940a05fddcd	Added	{"amount": 9}	{}	\\x996989582fc20c265711547939a0bebc10336e6ee92648047348c123ac1567a5	2026-11-18 09:24:25.24119+00
94	globex	d	10	d806ddd0-33b7-451a-a229-e0044d01caef	Added	{"amount": 10}	{}	\\x7f8b279ef4be0909382db4442750f8eb84f2874cf43c826a86acffb6dc28c84d	2026-11-18 09:24:25.241346+00
95	globex	d	11	c2b067ae-f7d8-4bc3-89cb-ed42243b1ead	Added	{"amount": 11}	{}	\\x10d7ef51d013d0207dba835137cd740c4bd3c4150c26743d53768a4a16c0e3cd	2026-11-18 09:24:25.24151+00
96	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	Added	{"amount": 12}	{}	\\xac29f98d4fba45cfc0f4d72255b374e19b04869efd0dda23cd616f6d2102f295	2026-11-18 09:24:25.241609+00
97	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	Added	{"gate": 2, "amount": 13}	{}	\\x7507caebdcb0275b03cfddc20fd3a8452c0f68a5c6e26fcf8793d373381757ff	2026-11-18 09:24:25.252191+00
98	acme	s	1	f6973c52-c63e-41de-a2ea-7521bbacbca4	Checked	{"amount": 1}	{}	\\x8c37069c637bad186ef9d155641606edfec0f1336759fe8ecee8bbeadac07ad7	2026-11-18 09:24:25.267357+00
99	acme	s	2	c9395e7c-68ff-44f7-981f-4edcd7d40af4	Checked	{"amount": 2}	{}	\\x7af26f9b6f1c0ab2105eb36361461744ee56c33ef6858ba3d20e2a1c5a40a68c	2026-11-18 09:24:25.271066+00
100	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	Checked	{"amount": 3}	{}	\\x357b4fa72cc0672e4ab027afed93b118670275710a6eec54d97b3c82bdceabd3	2026-11-18 09:24:25.271348+00
101	acme	x	1	53315fd6-6037-4b31-8be2-c85a3e911ae8	Added	{"amount": 1}	{}	\\x8c37069c637bad186ef9d155641606edfec0f1336759fe8ecee8bbeadac07ad7	2026-11-18 09:24:26.459807+00
102	acme	x	2	fceed301-3659-472e-8bb4-bd72653b2579	Added	{"bad": 1, "amount": 2}	{}	\\xa23f6c3ac72b76725dfe9636ec787fb75cb7c4b9533afb7fd41e5d7bbb6d54cc	2026-11-18 09:24:26.479306+00
103	acme	x	3	27010e5f-1f5f-482b-aa3f-bff809f8f878	Added	{"amount": 3}	{}	\\x357b4fa72cc0672e4ab027afed93b118670275710a6eec54d97b3c82bdceabd3	2026-11-18 09:24:26.497427+00
104	acme	x	4	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	Added	{"amount": 4}	{}	\\xe7e59a0ccd1dfee8a305fd7c41d2dc8efac5e516ac905ea9564a8e19fffab650	2026-11-18 09:24:26.500248+00
105	acme	y	1	6f664f44-6c86-4dc5-9ebe-aef43e77e0ee	Added	{"bad": 1, "amount": 1}	{}	\\xf888c05aa63d06b4d1f2a28016fabd5ae97ee995195688b10001d672aee976ec	2026-11-18 09:24:26.513238+00
106	acme	y	2	11528e6b-11ca-4cf7-a332-5deeab0544d7	Added	{"bad": 1, "amount": 2}	{}	\\xa23f6c3ac72b76725dfe9636ec787fb75cb7c4b9533afb7fd41e5d7bbb6d54cc	2026-11-18 09:24:26.516306+00
107	acme	a	13	d998c87d-b2a9-4ce3-b1af-a0ff64f0ddb7	Added	{"amount": 13}	{}	\\xcedc67a1481e4e8d4a1749b29debbb22f9211b4c08021535d479a6e61446cf15	2026-11-18 09:24:27.49239+00
108	acme	a	14	6d6047b1-f748-41c2-832e-bc40a7753efe	Added	{"amount": 14}	{}	\\xa6f409134456969d7bbf6c5395dbfc97930c614988ac5f42116a89224505202b	2026-11-18 09:24:27.495327+00
109	acme	a	15	dde02cff-f838-40fb-bb73-d9dff37a6515	Added	{"amount": 15}	{}	\\x3d9df36e90c01d5f9ca72c131fb2e74861d845d1913ee140e28b29729b5cecae	2026-11-18 09:24:27.495508+00
110	acme	a	16	0d31a048-f524-41d6-b852-e6156338537b	Added	{"amount": 16}	{}	\\x394cc27e889d8e2e9f2dc957b656092b75f08c7744670d2e90c3de19ed4447fc	2026-11-18 09:24:27.495671+00
111	acme	z	1	cd5e6aa2-189a-46b1-bf55-bd3fbc35c6e2	Added	{"amount": 1}	{}	\\x8c37069c637bad186ef9d155641606edfec0f1336759fe8ecee8bbeadac07ad7	2026-11-18 09:24:27.505648+00
112	acme	z	2	656e5ec3-5874-4c7e-ae51-e6b78ef9de72	Added	{"amount": 2}	{}	\\x7af26f9b6f1c0ab2105eb36361461744ee56c33ef6858ba3d20e2a1c5a40a68c	2026-11-18 09:24:27.508398+00
113	acme	z	3	b99acf4f-c6c9-4880-8bac-3007c7e8e5a1	Added	{"amount": 3}	{}	\\x357b4fa72cc0672e4ab027afed93b118670275710a6eec54d97b3c82bdceabd3	2026-11-18 09:24:27.508627+00
114	globex	a	13	6de0d578-7315-4392-bf7c-7ff20ab4d1c4	Added	{"amount": 13}	{}	\\xcedc67a1481e4e8d4a1749b29debbb22f9211b4c08021535d479a6e61446cf15	2026-11-18 09:24:27.518487+00
115	globex	a	14	30235081-a878-4e4c-83a8-b34282fbd8d3	Added	{"amount": 14}	{}	\\xa6f409134456969d7bbf6c5395dbfc97930c614988ac5f42116a89224505202b	2026-11-18 09:24:27.521198+00
116	globex	a	15	93c90a06-96cd-4192-899a-54ac8f94b934	Added	{"amount": 15}	{}	\\x3d9df36e90c01d5f9ca72c131fb2e74861d845d1913ee140e28b29729b5cecae	2026-11-18 09:24:27.521419+00
117	globex	a	16	4bded16a-98a6-40c6-b74a-9bda92d44dbe	Added	{"amount": 16}	{}	\\x394cc27e889d8e2e9f2dc957b656092b75f08c7744670d2e90c3de19ed4447fc	2026-11-18 09:24:27.521714+00
118	globex	z	1	76eb9f4f-0e9d-4b65-a862-e708d38d7362	Added	{"amount": 1}	{}	\\x8c37069c637bad186ef9d155641606edfec0f1336759fe8ecee8bbeadac07ad7	2026-11-18 09:24:27.532949+00
119	globex	z	2	163ba743-d774-4ea9-8e94-b3795eec4982	Added	{"amount": 2}	{}	\\x7af26f9b6f1c0ab2105eb36361461744ee56c33ef6858ba3d20e2a1c5a40a68c	2026-11-18 09:24:27.535773+00
120	globex	z	3	b444d4f1-205f-43bc-b6e1-5c3eea556053	Added	{"amount": 3}	{}	\\x357b4fa72cc0672e4ab027afed93b118670275710a6eec54d97b3c82bdceabd3	2026-11-18 09:24:27.535992+00
121	initech	a	1	32e0455b-246c-477b-837d-d9a9e441157e	Added	{"amount": 13}	{}	\\xcedc67a1481e4e8d4a1749b29debbb22f9211b4c08021535d479a6e61446cf15	2026-11-18 09:24:27.547514+00
122	initech	a	2	39015c30-a2c3-4c58-981b-6413194e4d38	Added	{"amount": 14}	{}	\\xa6f409134456969d7bbf6c5395dbfc97930c614988ac5f42116a89224505202b	2026-11-18 09:24:27.550059+00
123	initech	a	3	2a05d8c0-7a1d-420b-8b81-5b46355c6b42	Added	{"amount": 15}	{}	\\x3d9df36e90c01d5f9ca72c131fb2e74861d845d1913ee140e28b29729b5cecae	2026-11-18 09:24:27.550223+00
124	initech	a	4	cba464ab-9a96-4109-860d-1ef6ab36a9bb	Added	{"amount": 16}	{}	\\x394cc27e889d8e2e9f2dc957b656092b75f08c7744670d2e90c3de19ed4447fc	2026-11-18 09:24:27.550332+00
125	initech	z	1	a4b17c19-5ca6-4686-9515-ec33299dd91b	Added	{"amount": 1}	{}	\\x8c37069c637bad186ef9d155641606edfec0f1336759fe8ecee8bbeadac07ad7	2026-11-18 09:24:27.560833+00
126	initech	z	2	cc551a4c-eedd-42d8-8d50-49a8c2ba60df	Added	{"amount": 2}	{}	\\x7af26f9b6f1c0ab2105eb36361461744ee56c33ef6858ba3d20e2a1c5a40a68c	2026-11-18 09:24:27.563372+00
127	initech	z	3	7169199b-9224-4e57-8086-01640ccdd1c4	Added	{"amount": 3}	{}	\\x357b4fa72cc0672e4ab027afed93b118670275710a6eec54d97b3c82bdceabd3	2026-11-18 09:24:27.563744+00
128	acme	x	5	ccdf0a76-23e8-4f9b-bb9e-a82608fd6a7f	Added	{"bad": 1, "amount": 5}	{}	\\x833574dfd324e10796ac0ac46a341a19608902f7457c66797713cdacc4567907	2026-11-18 09:24:27.574505+00
\.


--
-- Data for Name: projection_cursors; Type: TABLE DATA; Schema: projector; Owner: postgres
--

COPY projector.projection_cursors (projection_id, tenant_id, last_log_seq, state, mode, paused_by, pause_reason, run_id, applied_count, failed_count, updated_at, handover_log_seq, paused_at, dead_count, batch_count, apply_time, last_applied_at, definition_hash) FROM stdin;
5	acme	0	replaying	\N	\N	\N	\N	0	0	2026-11-18 09:24:26.277534+00	\N	\N	0	0	00:00:00	\N	\N
5	globex	0	replaying	\N	\N	\N	\N	0	0	2026-11-18 09:24:26.277534+00	\N	\N	0	0	00:00:00	\N	\N
2	acme	100	live	\N	\N	\N	\N	0	0	2026-11-18 09:24:26.296689+00	\N	\N	0	0	00:00:00.000239	\N	\N
2	globex	100	live	\N	\N	\N	\N	0	0	2026-11-18 09:24:26.297018+00	\N	\N	0	0	00:00:00.000012	\N	\N
3	acme	100	live	\N	\N	\N	\N	0	0	2026-11-18 09:24:26.297068+00	\N	\N	0	0	00:00:00.000014	\N	\N
3	globex	100	live	\N	\N	\N	\N	0	0	2026-11-18 09:24:26.29711+00	\N	\N	0	0	00:00:00	\N	\N
4	globex	100	live	\N	\N	\N	\N	48	0	2026-11-18 09:24:26.298584+00	\N	\N	0	1	00:00:00.000293	2026-11-18 09:24:26.298584+00	\N
10	globex	100	live	\N	\N	\N	\N	48	0	2026-11-18 09:24:26.30484+00	\N	\N	0	1	00:00:00.00052	2026-11-18 09:24:26.30484+00	\N
7	acme	100	switching	\N	\N	\N	\N	58	0	2026-11-18 09:24:27.585617+00	\N	\N	0	5	00:00:00.002283	2026-11-18 09:24:26.521643+00	\N
11	globex	100	live	\N	\N	\N	\N	48	0	2026-11-18 09:24:26.327454+00	\N	\N	0	10	00:00:00.001227	2026-11-18 09:24:26.327454+00	\N
13	globex	100	live	\N	\N	\N	\N	48	0	2026-11-18 09:24:26.307372+00	\N	\N	0	1	00:00:00.000812	2026-11-18 09:24:26.307372+00	\N
14	globex	100	live	\N	\N	\N	\N	48	0	2026-11-18 09:24:26.311368+00	\N	\N	0	1	00:00:00.000828	2026-11-18 09:24:26.311368+00	\N
15	globex	100	live	\N	\N	\N	\N	48	0	2026-11-18 09:24:26.313849+00	\N	\N	0	1	00:00:00.000861	2026-11-18 09:24:26.313849+00	\N
16	globex	100	live	\N	\N	\N	\N	48	0	2026-11-18 09:24:26.316158+00	\N	\N	0	1	00:00:00.00084	2026-11-18 09:24:26.316158+00	\N
16	acme	100	live	\N	\N	\N	\N	55	2	2026-11-18 09:24:26.582898+00	\N	\N	2	3	00:00:00.002455	2026-11-18 09:24:26.582898+00	\N
11	acme	100	live	\N	\N	\N	4	58	0	2026-11-18 09:24:27.28351+00	\N	\N	0	15	00:00:00.001905	2026-11-18 09:24:26.516865+00	\N
1	globex	100	live	\N	postgres	this tenant only	\N	48	0	2026-11-18 09:24:27.456286+00	\N	2026-11-18 09:24:27.457306+00	0	1	00:00:00.000437	2026-11-18 09:24:26.320295+00	\N
12	acme	100	live	\N	\N	\N	\N	94	2	2026-11-18 09:24:26.841514+00	\N	\N	0	4	00:00:00.003398	2026-11-18 09:24:26.841514+00	\N
9	acme	100	live	\N	\N	\N	\N	58	0	2026-11-18 09:24:26.521643+00	\N	\N	0	5	00:00:00.000993	2026-11-18 09:24:26.521643+00	\N
10	acme	100	live	\N	\N	\N	\N	58	0	2026-11-18 09:24:26.521643+00	\N	\N	0	5	00:00:00.001003	2026-11-18 09:24:26.521643+00	\N
9	globex	100	live	inline	\N	\N	\N	48	0	2026-11-18 09:24:27.468836+00	\N	\N	0	1	00:00:00.000491	2026-11-18 09:24:26.303411+00	\N
14	acme	100	live	\N	\N	\N	\N	53	2	2026-11-18 09:24:26.516865+00	\N	\N	0	2	00:00:00.001653	2026-11-18 09:24:26.473596+00	\N
15	acme	100	live	\N	\N	\N	\N	53	2	2026-11-18 09:24:26.516865+00	\N	\N	2	2	00:00:00.001941	2026-11-18 09:24:26.473596+00	\N
12	globex	106	live	\N	\N	\N	\N	96	0	2026-11-18 09:24:26.674054+00	\N	\N	0	3	00:00:00.001028	2026-11-18 09:24:26.674054+00	\\x632ee98da80cdfde741f48892d3ece1fb0ba12922302c1a774b4fb3ec9805a8b
1	acme	100	live	\N	\N	\N	\N	58	0	2026-11-18 09:24:26.516865+00	\N	\N	0	5	00:00:00.001013	2026-11-18 09:24:26.516865+00	\N
4	acme	106	live	\N	\N	\N	\N	58	0	2026-11-18 09:24:26.516865+00	\N	\N	0	5	00:00:00.001429	2026-11-18 09:24:26.516865+00	\N
7	globex	100	switching	\N	\N	\N	\N	48	0	2026-11-18 09:24:27.585617+00	\N	\N	0	1	00:00:00.000601	2026-11-18 09:24:26.300361+00	\N
8	acme	0	replaying	\N	\N	\N	\N	58	0	2026-11-18 09:24:27.608038+00	\N	\N	0	5	00:00:00.001077	2026-11-18 09:24:26.521643+00	\N
13	acme	101	stopped	\N	\N	\N	\N	53	1	2026-11-18 09:24:26.483274+00	\N	\N	1	2	00:00:00.001957	2026-11-18 09:24:26.473596+00	\N
8	globex	0	replaying	\N	\N	\N	\N	48	0	2026-11-18 09:24:27.608038+00	\N	\N	0	1	00:00:00.000445	2026-11-18 09:24:26.302028+00	\N
18	globex	100	live	\N	\N	\N	\N	48	0	2026-11-18 09:24:26.318932+00	\N	\N	0	1	00:00:00.000432	2026-11-18 09:24:26.318932+00	\N
18	acme	100	live	\N	\N	\N	\N	58	0	2026-11-18 09:24:26.516865+00	\N	\N	0	5	00:00:00.00135	2026-11-18 09:24:26.516865+00	\N
17	acme	0	replaying	\N	\N	\N	3	68	0	2026-11-18 09:24:26.991459+00	106	\N	0	17	00:00:00.391213	2026-11-18 09:24:26.991459+00	\\x7a96d99384c99b94177be892034807ecafe9b84ea947829ed6f9984163887c28
17	globex	100	live	\N	\N	\N	\N	48	0	2026-11-18 09:24:26.327837+00	\N	\N	0	10	00:00:00.001579	2026-11-18 09:24:26.327837+00	\N
\.


--
-- Data for Name: projection_deltas; Type: TABLE DATA; Schema: projector; Owner: postgres
--

COPY projector.projection_deltas (projection_id, tenant_id, applied_count, failed_count, dead_count, apply_time, last_applied_at, digest, row_count, layout, last_log_seq) FROM stdin;
2	acme	1	0	0	00:00:00.002268	2026-11-18 09:24:24.877923+00	7e03b406748d1772454e216a05a459d2	1	-4780772567123174291	1
2	acme	1	0	0	00:00:00.000126	2026-11-18 09:24:24.877923+00	c3556b9f349575e794051592980b9b47	0	-4780772567123174291	2
2	acme	1	0	0	00:00:00.000101	2026-11-18 09:24:24.877923+00	45b7bb42cf21f044ef81539a8f67986c	0	-4780772567123174291	3
2	acme	1	0	0	00:00:00.000061	2026-11-18 09:24:24.877923+00	3afeff23940982536d3bae944d2f078e	0	-4780772567123174291	4
2	acme	1	0	0	00:00:00.00006	2026-11-18 09:24:24.877923+00	be53d525c0cd40a2f167e9e5c57a33ec	0	-4780772567123174291	5
2	acme	1	0	0	00:00:00.000223	2026-11-18 09:24:24.877923+00	3dd83735763ebd0f1373d2e233ce2cfd	0	-4780772567123174291	6
2	acme	1	0	0	00:00:00.001697	2026-11-18 09:24:24.893258+00	42191aed7560d91c41c6d89ae0dff49b	0	-4780772567123174291	7
2	acme	1	0	0	00:00:00.002029	2026-11-18 09:24:24.909436+00	77b76f6168bee1874ac71bb55fee5854	0	-4780772567123174291	8
2	acme	1	0	0	00:00:00.000081	2026-11-18 09:24:24.909436+00	6b74596a996c46441c1ec2a6a8fcb53c	0	-4780772567123174291	9
2	acme	1	0	0	00:00:00.000058	2026-11-18 09:24:24.909436+00	b04f589d43dd9b13a045dbee295a2cda	0	-4780772567123174291	10
2	acme	1	0	0	00:00:00.000042	2026-11-18 09:24:24.909436+00	cd9a1a94afb9bd17daa70ba01f63be4c	0	-4780772567123174291	11
2	acme	1	0	0	00:00:00.000042	2026-11-18 09:24:24.909436+00	965f7abde20fce153822d71795ebd7d2	0	-4780772567123174291	12
2	acme	1	0	0	00:00:00.001937	2026-11-18 09:24:24.923015+00	124a61b52ab564c98758522b86141d7b	1	-4780772567123174291	13
2	acme	1	0	0	00:00:00.000089	2026-11-18 09:24:24.923015+00	57446b47c119d4bc4d4d828b8f05a656	0	-4780772567123174291	14
2	acme	1	0	0	00:00:00.000051	2026-11-18 09:24:24.923015+00	6c8a23352c4a25c9fb8b7396fe9276e4	0	-4780772567123174291	15
2	acme	1	0	0	00:00:00.000055	2026-11-18 09:24:24.923015+00	9384413303b58004ca49a03111f624c7	0	-4780772567123174291	16
2	acme	1	0	0	00:00:00.000036	2026-11-18 09:24:24.923015+00	4acbd59286fef80b94b0e426998e0978	0	-4780772567123174291	17
2	acme	1	0	0	00:00:00.000155	2026-11-18 09:24:24.923015+00	eac9701735ad536193c39febce66eca1	0	-4780772567123174291	18
2	acme	1	0	0	00:00:00.001658	2026-11-18 09:24:24.937179+00	b6e4c494c6d4db8c1425f5c1fbe15551	0	-4780772567123174291	19
2	acme	1	0	0	00:00:00.001562	2026-11-18 09:24:24.950618+00	36f7377feecf67c80c33c858f9cd7448	0	-4780772567123174291	20
2	acme	1	0	0	00:00:00.00009	2026-11-18 09:24:24.950618+00	7b8ec215b3f215a6eb6e2dd2edceedb7	0	-4780772567123174291	21
2	acme	1	0	0	00:00:00.000062	2026-11-18 09:24:24.950618+00	dc9e3004f117c39c321f8e0e8477f64d	0	-4780772567123174291	22
2	acme	1	0	0	00:00:00.000046	2026-11-18 09:24:24.950618+00	2cba8c6bfaea8b85f76b466f68d9593e	0	-4780772567123174291	23
2	acme	1	0	0	00:00:00.000038	2026-11-18 09:24:24.950618+00	6b6c5692866d4afbda2c4a2143b224d9	0	-4780772567123174291	24
2	acme	1	0	0	00:00:00.002094	2026-11-18 09:24:24.965436+00	5c4bc1a4969c99840a5ebe47ca900862	1	-4780772567123174291	25
2	acme	1	0	0	00:00:00.000219	2026-11-18 09:24:24.965436+00	2a858df236d9870be97307fa9e41e8fa	0	-4780772567123174291	26
2	acme	1	0	0	00:00:00.000079	2026-11-18 09:24:24.965436+00	b30b99ab891436cf069f52046e26c328	0	-4780772567123174291	27
2	acme	1	0	0	00:00:00.000065	2026-11-18 09:24:24.965436+00	c80688c16ab927c85e261e83c4c13520	0	-4780772567123174291	28
2	acme	1	0	0	00:00:00.00004	2026-11-18 09:24:24.965436+00	3fa15ce719eba63400975c2af8063610	0	-4780772567123174291	29
2	acme	1	0	0	00:00:00.000214	2026-11-18 09:24:24.965436+00	d56edd847f4cfa995d7f67e670f11780	0	-4780772567123174291	30
2	acme	1	0	0	00:00:00.001944	2026-11-18 09:24:24.983592+00	18dbbfc31a822755a01e904cf4ad08c3	0	-4780772567123174291	31
2	acme	1	0	0	00:00:00.0018	2026-11-18 09:24:24.998109+00	d35fb9ef15dce556975ac9429dbc7019	0	-4780772567123174291	32
2	acme	1	0	0	00:00:00.000122	2026-11-18 09:24:24.998109+00	b5d76a304d171349481e6f510cea4840	0	-4780772567123174291	33
2	acme	1	0	0	00:00:00.000069	2026-11-18 09:24:24.998109+00	0715d650a838b19b2fc6c7e991d299ea	0	-4780772567123174291	34
2	acme	1	0	0	00:00:00.000041	2026-11-18 09:24:24.998109+00	7d1dfe03113c2c551e9a4c7cd7697344	0	-4780772567123174291	35
2	acme	1	0	0	00:00:00.000035	2026-11-18 09:24:24.998109+00	8ad2061000bfe023fdd35ddf6e836c57	0	-4780772567123174291	36
2	acme	1	0	0	00:00:00.002334	2026-11-18 09:24:25.013128+00	912602265c01577d15f3905f5306cf83	1	-4780772567123174291	37
2	acme	1	0	0	00:00:00.0001	2026-11-18 09:24:25.013128+00	090f3ab1adb8cf0c1e58915c7633a332	0	-4780772567123174291	38
2	acme	1	0	0	00:00:00.000067	2026-11-18 09:24:25.013128+00	5ec902032f70acb749983c3ff46f4dab	0	-4780772567123174291	39
2	acme	1	0	0	00:00:00.000044	2026-11-18 09:24:25.013128+00	7b60f5998322a70d9d18ccf74bbd91c9	0	-4780772567123174291	40
2	acme	1	0	0	00:00:00.000112	2026-11-18 09:24:25.013128+00	dfcb6a29dff1ba8c576cc034f2cc6b49	0	-4780772567123174291	41
2	acme	1	0	0	00:00:00.000169	2026-11-18 09:24:25.013128+00	ba511875849fc0b0196cfdb82343d0e8	0	-4780772567123174291	42
2	acme	1	0	0	00:00:00.001962	2026-11-18 09:24:25.027046+00	abc7f4600196e27c679aae553a2974e4	0	-4780772567123174291	43
2	acme	1	0	0	00:00:00.002291	2026-11-18 09:24:25.040234+00	a682e0e0814f3abbd636099ef3066b78	0	-4780772567123174291	44
2	acme	1	0	0	00:00:00.000091	2026-11-18 09:24:25.040234+00	0cb8d9720eb753bf8ec2c3e417f2b423	0	-4780772567123174291	45
2	acme	1	0	0	00:00:00.000073	2026-11-18 09:24:25.040234+00	de6176a44625540dab94ed3bd223c45d	0	-4780772567123174291	46
2	acme	1	0	0	00:00:00.000042	2026-11-18 09:24:25.040234+00	6bc4f470a66307cc008dab9e0202dac1	0	-4780772567123174291	47
2	acme	1	0	0	00:00:00.000041	2026-11-18 09:24:25.040234+00	ee1c87b498fba10531b2e7d095383af0	0	-4780772567123174291	48
2	globex	1	0	0	00:00:00.001971	2026-11-18 09:24:25.055901+00	01b27d8221b1e8bca5b9baff3ae518d0	1	-4780772567123174291	49
2	globex	1	0	0	00:00:00.000128	2026-11-18 09:24:25.055901+00	9adc5d458abd93aabf68f9a9cfb0947a	0	-4780772567123174291	50
2	globex	1	0	0	00:00:00.000056	2026-11-18 09:24:25.055901+00	d029f8665e665c37343988b372b45709	0	-4780772567123174291	51
2	globex	1	0	0	00:00:00.000059	2026-11-18 09:24:25.055901+00	366811e404b9dd23e09ce8611d5b3810	0	-4780772567123174291	52
2	globex	1	0	0	00:00:00.000037	2026-11-18 09:24:25.055901+00	18f2084e1ef7c5162bae466be48106aa	0	-4780772567123174291	53
2	globex	1	0	0	00:00:00.000247	2026-11-18 09:24:25.055901+00	5a6690cad64ff2c3331a3b2b797fc975	0	-4780772567123174291	54
2	globex	1	0	0	00:00:00.002023	2026-11-18 09:24:25.073466+00	7b8c35d25484e63ca62179cc124f9315	0	-4780772567123174291	55
2	globex	1	0	0	00:00:00.001643	2026-11-18 09:24:25.088223+00	e73be39b21d93e0e9d23d555bd1ac791	0	-4780772567123174291	56
2	globex	1	0	0	00:00:00.000099	2026-11-18 09:24:25.088223+00	c17995cbca7c1feabb4e8e64a19585ce	0	-4780772567123174291	57
2	globex	1	0	0	00:00:00.000044	2026-11-18 09:24:25.088223+00	39582b0adf4460d3b6c193ea2a12c7a8	0	-4780772567123174291	58
2	globex	1	0	0	00:00:00.000038	2026-11-18 09:24:25.088223+00	940fff7161511eef9e7300a7062e71ca	0	-4780772567123174291	59
2	globex	1	0	0	00:00:00.000049	2026-11-18 09:24:25.088223+00	efa32fa18a6d95db47c362d0ce9fb494	0	-4780772567123174291	60
2	globex	1	0	0	00:00:00.003115	2026-11-18 09:24:25.101162+00	56561518d2923beade386f7a0bfd7f0b	1	-4780772567123174291	61
2	globex	1	0	0	00:00:00.000108	2026-11-18 09:24:25.101162+00	476d7e732d2a63d9266062a3da01ae44	0	-4780772567123174291	62
2	globex	1	0	0	00:00:00.000086	2026-11-18 09:24:25.101162+00	c08995640252462e3c31e7493bc8e5e6	0	-4780772567123174291	63
2	globex	1	0	0	00:00:00.000079	2026-11-18 09:24:25.101162+00	260347a7b4c2bf3560c6987be7403c97	0	-4780772567123174291	64
2	globex	1	0	0	00:00:00.000065	2026-11-18 09:24:25.101162+00	b9b862f9f37a011af50ddcc144b4bcdc	0	-4780772567123174291	65
2	globex	1	0	0	00:00:00.000236	2026-11-18 09:24:25.101162+00	cfa5c7ca0b3ef4941fbdb6ba28082066	0	-4780772567123174291	66
2	globex	1	0	0	00:00:00.002861	2026-11-18 09:24:25.123027+00	d9702bd484dd8be46e8a39cd475d5b3a	0	-4780772567123174291	67
2	globex	1	0	0	00:00:00.002756	2026-11-18 09:24:25.138465+00	ab8068eb813a51ea2696590b3cd36885	0	-4780772567123174291	68
2	globex	1	0	0	00:00:00.000144	2026-11-18 09:24:25.138465+00	df9f2d94ed8d9c51786799f9a20297f2	0	-4780772567123174291	69
2	globex	1	0	0	00:00:00.000068	2026-11-18 09:24:25.138465+00	ef9c2b0d57852f36796916205c931c4f	0	-4780772567123174291	70
2	globex	1	0	0	00:00:00.000059	2026-11-18 09:24:25.138465+00	8b83b95df81c38b7771070de7dffb24d	0	-4780772567123174291	71
2	globex	1	0	0	00:00:00.000077	2026-11-18 09:24:25.138465+00	3ece7aa5cddc50ff7acf0aab6ff41729	0	-4780772567123174291	72
2	globex	1	0	0	00:00:00.00198	2026-11-18 09:24:25.157713+00	ab284121dfa419bf58b1e35b0af911e5	1	-4780772567123174291	73
2	globex	1	0	0	00:00:00.000139	2026-11-18 09:24:25.157713+00	daa750eea8e7b860c8f92deee52edc4a	0	-4780772567123174291	74
2	globex	1	0	0	00:00:00.000087	2026-11-18 09:24:25.157713+00	418c18cddd4594005da03a9be9447a6e	0	-4780772567123174291	75
2	globex	1	0	0	00:00:00.000064	2026-11-18 09:24:25.157713+00	a6c401ff5e09f2c9204166643b8dd74b	0	-4780772567123174291	76
2	globex	1	0	0	00:00:00.000061	2026-11-18 09:24:25.157713+00	0811501c072c825e2c1eb03e33a8dbdd	0	-4780772567123174291	77
2	globex	1	0	0	00:00:00.000163	2026-11-18 09:24:25.157713+00	cf5f7e7202ecb20a445d29530e33af69	0	-4780772567123174291	78
2	globex	1	0	0	00:00:00.002115	2026-11-18 09:24:25.174657+00	df97c00272871ee8a909e3b0faca9119	0	-4780772567123174291	79
2	globex	1	0	0	00:00:00.001731	2026-11-18 09:24:25.191142+00	447d1b56fd37f53086b5a4ac0d9194b4	0	-4780772567123174291	80
2	globex	1	0	0	00:00:00.000087	2026-11-18 09:24:25.191142+00	79c861be5ffaf3e7754efcfa8c65d4c8	0	-4780772567123174291	81
2	globex	1	0	0	00:00:00.000045	2026-11-18 09:24:25.191142+00	b51501a1e67ceca2813beedd1b4cbcfa	0	-4780772567123174291	82
2	globex	1	0	0	00:00:00.000039	2026-11-18 09:24:25.191142+00	cfc320510c25a22370a63227fd5543be	0	-4780772567123174291	83
2	globex	1	0	0	00:00:00.000035	2026-11-18 09:24:25.191142+00	d1f706a59bfd80bb6e650459a0b6b4e8	0	-4780772567123174291	84
2	globex	1	0	0	00:00:00.002581	2026-11-18 09:24:25.203454+00	15c1009557f10b3427cc2bb8496f7bcd	1	-4780772567123174291	85
2	globex	1	0	0	00:00:00.000109	2026-11-18 09:24:25.203454+00	636cd3ae3d624922ca00c7c47bb2dea0	0	-4780772567123174291	86
2	globex	1	0	0	00:00:00.000241	2026-11-18 09:24:25.203454+00	12ef088bad6fc14b4f217ca1f8ed6229	0	-4780772567123174291	87
2	globex	1	0	0	00:00:00.000072	2026-11-18 09:24:25.203454+00	cb23490dc13e49577a54bc94f61cd323	0	-4780772567123174291	88
2	globex	1	0	0	00:00:00.000057	2026-11-18 09:24:25.203454+00	175727fb96df05caf360cf223dcf8f2c	0	-4780772567123174291	89
2	globex	1	0	0	00:00:00.000187	2026-11-18 09:24:25.203454+00	5bc3299ac6e319b70866d9712893d9f9	0	-4780772567123174291	90
2	globex	1	0	0	00:00:00.002471	2026-11-18 09:24:25.22039+00	9bec647cc8fe5469008c774191dde765	0	-4780772567123174291	91
2	globex	1	0	0	00:00:00.001789	2026-11-18 09:24:25.237424+00	a1f1ae1a776bdebd72039f8fe0dae01a	0	-4780772567123174291	92
2	globex	1	0	0	00:00:00.000086	2026-11-18 09:24:25.237424+00	e296fcb29897abfa42c9f2c15387529e	0	-4780772567123174291	93
2	globex	1	0	0	00:00:00.000065	2026-11-18 09:24:25.237424+00	0bffc013a8ab1c2b1c59d0dd14f788b9	0	-4780772567123174291	94
2	globex	1	0	0	00:00:00.000047	2026-11-18 09:24:25.237424+00	62d9de9f8644ae68ac48a0edc37179cb	0	-4780772567123174291	95
2	globex	1	0	0	00:00:00.000044	2026-11-18 09:24:25.237424+00	e32d2df3629ccd086c5fdff23c769775	0	-4780772567123174291	96
2	acme	1	0	0	00:00:00.002044	2026-11-18 09:24:25.2513+00	2d4a90e62276d1d17406d6a75207b659	0	-4780772567123174291	97
2	acme	1	0	0	00:00:00.001938	2026-11-18 09:24:25.266255+00	003a667d2d3de8e0067b8c5c853b6bca	1	-4780772567123174291	98
3	acme	1	0	0	00:00:00.000368	2026-11-18 09:24:25.266255+00	003a667d2d3de8e0067b8c5c853b6bca	1	8857523258706680853	98
2	acme	1	0	0	00:00:00.000115	2026-11-18 09:24:25.266255+00	25b42e3f66ca0bb0b28b3144769090bd	0	-4780772567123174291	99
3	acme	1	0	0	00:00:00.000047	2026-11-18 09:24:25.266255+00	25b42e3f66ca0bb0b28b3144769090bd	0	8857523258706680853	99
2	acme	1	0	0	00:00:00.000057	2026-11-18 09:24:25.266255+00	9c55e8c09ef018717f3f3187596c8d79	0	-4780772567123174291	100
3	acme	1	0	0	00:00:00.000343	2026-11-18 09:24:25.266255+00	9c55e8c09ef018717f3f3187596c8d79	0	8857523258706680853	100
2	acme	1	0	0	00:00:00.002534	2026-11-18 09:24:26.458664+00	d306b5b89d09d3fc49b52f6e86c3cd84	1	-4780772567123174291	101
2	acme	1	0	0	00:00:00.00256	2026-11-18 09:24:26.478443+00	8b0444d45dc4dd09f7140c24447a5134	0	-4780772567123174291	102
2	acme	1	0	0	00:00:00.001737	2026-11-18 09:24:26.496604+00	9073abae1bc2a878570b045d569c6df2	0	-4780772567123174291	103
2	acme	1	0	0	00:00:00.000104	2026-11-18 09:24:26.496604+00	48dfef445054d0815123e4f45d9188c4	0	-4780772567123174291	104
2	acme	1	0	0	00:00:00.002027	2026-11-18 09:24:26.512339+00	aba1e11e87fcee03f4c946bf1a63dcc2	1	-4780772567123174291	105
2	acme	1	0	0	00:00:00.000125	2026-11-18 09:24:26.512339+00	8b7399fab87a86187592e0956b85e4e1	0	-4780772567123174291	106
2	acme	1	0	0	00:00:00.001864	2026-11-18 09:24:27.491412+00	57a51362108f5a1c0ad9647916036454	0	-4780772567123174291	107
2	acme	1	0	0	00:00:00.0001	2026-11-18 09:24:27.491412+00	526bfd5b92c532f2986825d25a433087	0	-4780772567123174291	108
2	acme	1	0	0	00:00:00.000057	2026-11-18 09:24:27.491412+00	24aec6c678334c20cf3ef2c049508729	0	-4780772567123174291	109
2	acme	1	0	0	00:00:00.000053	2026-11-18 09:24:27.491412+00	24a1fb1ab2119b0fa2fd91c3c2a63648	0	-4780772567123174291	110
2	acme	1	0	0	00:00:00.001717	2026-11-18 09:24:27.504749+00	d1dc6dd94ef9f1ef18f1fbd293827a75	1	-4780772567123174291	111
2	acme	1	0	0	00:00:00.000088	2026-11-18 09:24:27.504749+00	f95992f6c3d4aadd1cffca2b74bc2514	0	-4780772567123174291	112
2	acme	1	0	0	00:00:00.000101	2026-11-18 09:24:27.504749+00	113620eb2566027399e9cfb6672458bf	0	-4780772567123174291	113
2	globex	1	0	0	00:00:00.001443	2026-11-18 09:24:27.517746+00	6855037d9ce310dc5bde02a5104b0c36	0	-4780772567123174291	114
9	globex	1	0	0	00:00:00.000247	2026-11-18 09:24:27.517746+00	6855037d9ce310dc5bde02a5104b0c36	0	7158902229826067499	114
2	globex	1	0	0	00:00:00.000068	2026-11-18 09:24:27.517746+00	53fe366f097a7d644060c3894f804037	0	-4780772567123174291	115
9	globex	1	0	0	00:00:00.000037	2026-11-18 09:24:27.517746+00	53fe366f097a7d644060c3894f804037	0	7158902229826067499	115
2	globex	1	0	0	00:00:00.000052	2026-11-18 09:24:27.517746+00	ed082a5fbac934aa84ba333d0d7f0bfe	0	-4780772567123174291	116
9	globex	1	0	0	00:00:00.000138	2026-11-18 09:24:27.517746+00	ed082a5fbac934aa84ba333d0d7f0bfe	0	7158902229826067499	116
2	globex	1	0	0	00:00:00.000051	2026-11-18 09:24:27.517746+00	c35fe74d4913975b186ddbdd57e2a2cf	0	-4780772567123174291	117
9	globex	1	0	0	00:00:00.000058	2026-11-18 09:24:27.517746+00	c35fe74d4913975b186ddbdd57e2a2cf	0	7158902229826067499	117
2	globex	1	0	0	00:00:00.001661	2026-11-18 09:24:27.532203+00	e2224c8ba8179b407fa64253bd3d8e20	1	-4780772567123174291	118
9	globex	1	0	0	00:00:00.000204	2026-11-18 09:24:27.532203+00	e2224c8ba8179b407fa64253bd3d8e20	1	7158902229826067499	118
2	globex	1	0	0	00:00:00.000091	2026-11-18 09:24:27.532203+00	dc2b26aac627e289a6701ae71b5c0a37	0	-4780772567123174291	119
9	globex	1	0	0	00:00:00.000042	2026-11-18 09:24:27.532203+00	dc2b26aac627e289a6701ae71b5c0a37	0	7158902229826067499	119
2	globex	1	0	0	00:00:00.000048	2026-11-18 09:24:27.532203+00	94a811472a9887568a119c143f37436c	0	-4780772567123174291	120
9	globex	1	0	0	00:00:00.000136	2026-11-18 09:24:27.532203+00	94a811472a9887568a119c143f37436c	0	7158902229826067499	120
2	initech	1	0	0	00:00:00.001564	2026-11-18 09:24:27.546822+00	f85a731f24c2800d0a9247ce923b6c3e	1	-4780772567123174291	121
2	initech	1	0	0	00:00:00.000093	2026-11-18 09:24:27.546822+00	e0e53e8d16f9163f0584f9c0ccb1f77b	0	-4780772567123174291	122
2	initech	1	0	0	00:00:00.000053	2026-11-18 09:24:27.546822+00	034a18f4ab59014e8ce719b204ae6bfe	0	-4780772567123174291	123
2	initech	1	0	0	00:00:00.000043	2026-11-18 09:24:27.546822+00	f1a5d30e794fdc1182cd796418b55ead	0	-4780772567123174291	124
2	initech	1	0	0	00:00:00.001684	2026-11-18 09:24:27.560072+00	5eb7aa2487d4f5a4150c6bb951773be1	1	-4780772567123174291	125
2	initech	1	0	0	00:00:00.000148	2026-11-18 09:24:27.560072+00	dcb6f46d75f9776fa00f0febdc0a2d7b	0	-4780772567123174291	126
2	initech	1	0	0	00:00:00.000071	2026-11-18 09:24:27.560072+00	44f569d4c82cae2124bcfb39d2811fec	0	-4780772567123174291	127
2	acme	1	0	0	00:00:00.001663	2026-11-18 09:24:27.573634+00	38b919f1d2b0fb3ccc1f697a9874616e	0	-4780772567123174291	128
\.


--
-- Data for Name: projection_digests; Type: TABLE DATA; Schema: projector; Owner: postgres
--

COPY projector.projection_digests (projection_id, tenant_id, digest, row_count, last_log_seq, refreshed_at, layout) FROM stdin;
4	globex	9b0678c3d0032f615a408740e9a771d7	4	96	2026-11-18 09:24:26.298584+00	8163503226568629279
7	globex	9b0678c3d0032f615a408740e9a771d7	4	96	2026-11-18 09:24:26.300361+00	7882264121295035449
8	globex	9b0678c3d0032f615a408740e9a771d7	4	96	2026-11-18 09:24:26.302028+00	7740253044834622499
9	globex	9b0678c3d0032f615a408740e9a771d7	4	96	2026-11-18 09:24:26.303411+00	7158902229826067499
10	globex	9b0678c3d0032f615a408740e9a771d7	4	96	2026-11-18 09:24:26.30484+00	-6865969833646695195
1	globex	9b0678c3d0032f615a408740e9a771d7	4	96	2026-11-18 09:24:26.320295+00	-6504043985054933917
11	acme	40fde28f0c0220f72172101cd46fc28e	7	106	2026-11-18 09:24:26.516865+00	8029990501945498861
1	acme	40fde28f0c0220f72172101cd46fc28e	7	106	2026-11-18 09:24:26.516865+00	-6504043985054933917
4	acme	40fde28f0c0220f72172101cd46fc28e	7	106	2026-11-18 09:24:26.516865+00	8163503226568629279
7	acme	40fde28f0c0220f72172101cd46fc28e	7	106	2026-11-18 09:24:26.521643+00	7882264121295035449
8	acme	40fde28f0c0220f72172101cd46fc28e	7	106	2026-11-18 09:24:26.521643+00	7740253044834622499
9	acme	40fde28f0c0220f72172101cd46fc28e	7	106	2026-11-18 09:24:26.521643+00	7158902229826067499
10	acme	40fde28f0c0220f72172101cd46fc28e	7	106	2026-11-18 09:24:26.521643+00	-6865969833646695195
12	acme	40fde28f0c0220f72172101cd46fc28e	7	106	2026-11-18 09:24:26.633254+00	8568583605861801207
12	globex	9b0678c3d0032f615a408740e9a771d7	4	96	2026-11-18 09:24:26.674054+00	8568583605861801207
11	globex	9b0678c3d0032f615a408740e9a771d7	4	96	2026-11-18 09:24:26.327454+00	8029990501945498861
\.


--
-- Data for Name: projection_failures; Type: TABLE DATA; Schema: projector; Owner: postgres
--

COPY projector.projection_failures (id, projection_id, tenant_id, aggregate_id, sequence_number, log_seq, event_id, event_type, error_code, error_message, error_detail, error_hint, error_context, retry_count, recoverable, metadata, first_failed_at, last_failed_at, resolved_at, resolution) FROM stdin;
2	13	acme	x	2	102	fceed301-3659-472e-8bb4-bd72653b2579	Added	P0001	bad event for stopped	\N	\N	PL/pgSQL function amount(projector.event,text) line 7 at RAISE\nSQL statement "INSERT INTO public.stopped AS t VALUES (e.tenant_id, e.aggregate_id, 1, public.amount(e, 'stopped'), e.event_id, e.sequence_number)\n        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, total = t.total + excluded.total,\n            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version"\nPL/pgSQL function apply_stopped(projector.event) line 2 at SQL statement\nprojection "stopped", event 2 (Added) of aggregate "x" of tenant "acme"	0	f	{}	2026-11-18 09:24:26.48862+00	2026-11-18 09:24:26.48862+00	\N	\N
3	14	acme	x	2	102	fceed301-3659-472e-8bb4-bd72653b2579	Added	P0001	bad event for retried	\N	\N	PL/pgSQL function amount(projector.event,text) line 7 at RAISE\nSQL statement "INSERT INTO public.retried AS t VALUES (e.tenant_id, e.aggregate_id, 1, public.amount(e, 'retried'), e.event_id, e.sequence_number)\n        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, total = t.total + excluded.total,\n            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version"\nPL/pgSQL function apply_retried(projector.event) line 2 at SQL statement\nprojection "retried", event 2 (Added) of aggregate "x" of tenant "acme"	0	t	{}	2026-11-18 09:24:26.489453+00	2026-11-18 09:24:26.489453+00	\N	\N
4	15	acme	x	2	102	fceed301-3659-472e-8bb4-bd72653b2579	Added	P0001	bad event for dead	\N	\N	PL/pgSQL function amount(projector.event,text) line 7 at RAISE\nSQL statement "INSERT INTO public.dead AS t VALUES (e.tenant_id, e.aggregate_id, 1, public.amount(e, 'dead'), e.event_id, e.sequence_number)\n        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, total = t.total + excluded.total,\n            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version"\nPL/pgSQL function apply_dead(projector.event) line 2 at SQL statement\nprojection "dead", event 2 (Added) of aggregate "x" of tenant "acme"	0	f	{}	2026-11-18 09:24:26.490105+00	2026-11-18 09:24:26.490105+00	\N	\N
6	5	acme	x	2	102	fceed301-3659-472e-8bb4-bd72653b2579	Added	P0001	bad event for tried	\N	\N	PL/pgSQL function amount(projector.event,text) line 7 at RAISE\nexpression for column "total"\nprojection "tried", event 2 (Added) of aggregate "x" of tenant "acme"	0	t	{"shadow": true}	2026-11-18 09:24:26.490928+00	2026-11-18 09:24:26.490928+00	\N	\N
8	14	acme	y	1	105	6f664f44-6c86-4dc5-9ebe-aef43e77e0ee	Added	P0001	bad event for retried	\N	\N	PL/pgSQL function amount(projector.event,text) line 7 at RAISE\nSQL statement "INSERT INTO public.retried AS t VALUES (e.tenant_id, e.aggregate_id, 1, public.amount(e, 'retried'), e.event_id, e.sequence_number)\n        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, total = t.total + excluded.total,\n            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version"\nPL/pgSQL function apply_retried(projector.event) line 2 at SQL statement\nprojection "retried", event 1 (Added) of aggregate "y" of tenant "acme"	0	t	{}	2026-11-18 09:24:26.520278+00	2026-11-18 09:24:26.520278+00	\N	\N
10	16	acme	y	1	105	6f664f44-6c86-4dc5-9ebe-aef43e77e0ee	Added	P0001	bad event for skipping	\N	\N	PL/pgSQL function amount(projector.event,text) line 7 at RAISE\nSQL statement "INSERT INTO public.skipping AS t VALUES (e.tenant_id, e.aggregate_id, 1, public.amount(e, 'skipping'), e.event_id, e.sequence_number)\n        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, total = t.total + excluded.total,\n            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version"\nPL/pgSQL function apply_skipping(projector.event) line 2 at SQL statement\nprojection "skipping", event 1 (Added) of aggregate "y" of tenant "acme"	0	f	{}	2026-11-18 09:24:26.520647+00	2026-11-18 09:24:26.520647+00	\N	\N
11	5	acme	y	1	105	6f664f44-6c86-4dc5-9ebe-aef43e77e0ee	Added	P0001	bad event for tried	\N	\N	PL/pgSQL function amount(projector.event,text) line 7 at RAISE\nexpression for column "total"\nprojection "tried", event 1 (Added) of aggregate "y" of tenant "acme"	0	t	{"shadow": true}	2026-11-18 09:24:26.521265+00	2026-11-18 09:24:26.521265+00	\N	\N
5	16	acme	x	2	102	fceed301-3659-472e-8bb4-bd72653b2579	Added	P0001	bad event for skipping	\N	\N	PL/pgSQL function amount(projector.event,text) line 7 at RAISE\nSQL statement "INSERT INTO public.skipping AS t VALUES (e.tenant_id, e.aggregate_id, 1, public.amount(e, 'skipping'), e.event_id, e.sequence_number)\n        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, total = t.total + excluded.total,\n            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version"\nPL/pgSQL function apply_skipping(projector.event) line 2 at SQL statement\nprojection "skipping", event 2 (Added) of aggregate "x" of tenant "acme"	0	f	{"skipped_by": "postgres", "skip_reason": "a known mistake"}	2026-11-18 09:24:26.490287+00	2026-11-18 09:24:26.490287+00	2026-11-18 09:24:26.580264+00	skipped
9	15	acme	y	1	105	6f664f44-6c86-4dc5-9ebe-aef43e77e0ee	Added	P0001	bad event for dead	\N	\N	PL/pgSQL function amount(projector.event,text) line 7 at RAISE\nSQL statement "INSERT INTO public.dead AS t VALUES (e.tenant_id, e.aggregate_id, 1, public.amount(e, 'dead'), e.event_id, e.sequence_number)\n        ON CONFLICT (tenant_id, id) DO UPDATE SET n = t.n + 1, total = t.total + excluded.total,\n            last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version"\nPL/pgSQL function apply_dead(projector.event) line 2 at SQL statement\nprojection "dead", event 1 (Added) of aggregate "y" of tenant "acme"	0	f	{"ticket": 7}	2026-11-18 09:24:26.520468+00	2026-11-18 09:24:26.520468+00	\N	\N
1	12	acme	x	2	102	fceed301-3659-472e-8bb4-bd72653b2579	Added	P0001	bad event for run_often	\N	\N	PL/pgSQL function amount(projector.event,text) line 7 at RAISE\nexpression for column "total"\nprojection "run_often", event 2 (Added) of aggregate "x" of tenant "acme"	0	t	{}	2026-11-18 09:24:26.488057+00	2026-11-18 09:24:26.488057+00	2026-11-18 09:24:26.634175+00	applied
7	12	acme	y	1	105	6f664f44-6c86-4dc5-9ebe-aef43e77e0ee	Added	P0001	bad event for run_often	\N	\N	PL/pgSQL function amount(projector.event,text) line 7 at RAISE\nexpression for column "total"\nprojection "run_often", event 1 (Added) of aggregate "y" of tenant "acme"	0	t	{}	2026-11-18 09:24:26.520047+00	2026-11-18 09:24:26.520047+00	2026-11-18 09:24:26.634217+00	applied
\.


--
-- Data for Name: projection_offsets; Type: TABLE DATA; Schema: projector; Owner: postgres
--

COPY projector.projection_offsets (projection_id, tenant_id, aggregate_id, last_sequence_number, last_event_id, error_count, last_error, updated_at) FROM stdin;
2	acme	a	16	0d31a048-f524-41d6-b852-e6156338537b	0	\N	2026-11-18 09:24:27.491412+00
2	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:25.138465+00
2	globex	a	16	4bded16a-98a6-40c6-b74a-9bda92d44dbe	0	\N	2026-11-18 09:24:27.517746+00
2	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:25.191142+00
2	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	0	\N	2026-11-18 09:24:24.950618+00
2	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:25.237424+00
2	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	0	\N	2026-11-18 09:24:25.2513+00
2	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	0	\N	2026-11-18 09:24:24.998109+00
2	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:25.266255+00
3	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:25.266255+00
4	acme	a	12	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	0	\N	2026-11-18 09:24:26.297133+00
4	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	0	\N	2026-11-18 09:24:26.297133+00
4	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	0	\N	2026-11-18 09:24:26.297133+00
4	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	0	\N	2026-11-18 09:24:26.297133+00
4	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:26.297133+00
4	globex	a	12	f89e6397-d44c-489f-9d89-c8b9b3ae6511	0	\N	2026-11-18 09:24:26.298584+00
4	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:26.298584+00
4	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:26.298584+00
4	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:26.298584+00
7	acme	a	12	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	0	\N	2026-11-18 09:24:26.298997+00
7	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	0	\N	2026-11-18 09:24:26.298997+00
7	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	0	\N	2026-11-18 09:24:26.298997+00
7	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	0	\N	2026-11-18 09:24:26.298997+00
7	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:26.298997+00
7	globex	a	12	f89e6397-d44c-489f-9d89-c8b9b3ae6511	0	\N	2026-11-18 09:24:26.300361+00
7	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:26.300361+00
7	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:26.300361+00
7	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:26.300361+00
9	acme	a	12	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	0	\N	2026-11-18 09:24:26.302573+00
9	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	0	\N	2026-11-18 09:24:26.302573+00
9	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	0	\N	2026-11-18 09:24:26.302573+00
9	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	0	\N	2026-11-18 09:24:26.302573+00
9	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:26.302573+00
9	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:26.303411+00
9	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:26.303411+00
9	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:26.303411+00
10	acme	a	12	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	0	\N	2026-11-18 09:24:26.304001+00
10	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	0	\N	2026-11-18 09:24:26.304001+00
10	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	0	\N	2026-11-18 09:24:26.304001+00
10	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	0	\N	2026-11-18 09:24:26.304001+00
10	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:26.304001+00
10	globex	a	12	f89e6397-d44c-489f-9d89-c8b9b3ae6511	0	\N	2026-11-18 09:24:26.30484+00
10	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:26.30484+00
10	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:26.30484+00
10	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:26.30484+00
12	acme	a	12	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	0	\N	2026-11-18 09:24:26.306152+00
12	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	0	\N	2026-11-18 09:24:26.306152+00
12	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	0	\N	2026-11-18 09:24:26.306152+00
12	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	0	\N	2026-11-18 09:24:26.306152+00
12	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:26.306152+00
12	globex	a	12	f89e6397-d44c-489f-9d89-c8b9b3ae6511	0	\N	2026-11-18 09:24:26.306893+00
12	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:26.306893+00
12	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:26.306893+00
12	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:26.306893+00
13	acme	a	12	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	0	\N	2026-11-18 09:24:26.307372+00
13	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	0	\N	2026-11-18 09:24:26.307372+00
13	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	0	\N	2026-11-18 09:24:26.307372+00
13	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	0	\N	2026-11-18 09:24:26.307372+00
13	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:26.307372+00
13	globex	a	12	f89e6397-d44c-489f-9d89-c8b9b3ae6511	0	\N	2026-11-18 09:24:26.307372+00
13	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:26.307372+00
13	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:26.307372+00
13	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:26.307372+00
14	acme	a	12	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	0	\N	2026-11-18 09:24:26.307372+00
14	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	0	\N	2026-11-18 09:24:26.307372+00
14	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	0	\N	2026-11-18 09:24:26.307372+00
14	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	0	\N	2026-11-18 09:24:26.307372+00
14	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:26.307372+00
14	globex	a	12	f89e6397-d44c-489f-9d89-c8b9b3ae6511	0	\N	2026-11-18 09:24:26.311368+00
14	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:26.311368+00
14	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:26.311368+00
14	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:26.311368+00
15	acme	a	12	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	0	\N	2026-11-18 09:24:26.31227+00
15	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	0	\N	2026-11-18 09:24:26.31227+00
15	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	0	\N	2026-11-18 09:24:26.31227+00
15	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	0	\N	2026-11-18 09:24:26.31227+00
15	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:26.31227+00
15	globex	a	12	f89e6397-d44c-489f-9d89-c8b9b3ae6511	0	\N	2026-11-18 09:24:26.313849+00
15	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:26.313849+00
15	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:26.313849+00
15	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:26.313849+00
11	globex	a	12	f89e6397-d44c-489f-9d89-c8b9b3ae6511	0	\N	2026-11-18 09:24:26.322123+00
8	acme	a	0	\N	0	\N	2026-11-18 09:24:27.608038+00
11	acme	a	12	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	0	\N	2026-11-18 09:24:26.321892+00
8	acme	b	0	\N	0	\N	2026-11-18 09:24:27.608038+00
8	acme	c	0	\N	0	\N	2026-11-18 09:24:27.608038+00
9	globex	a	16	4bded16a-98a6-40c6-b74a-9bda92d44dbe	0	\N	2026-11-18 09:24:27.517746+00
8	acme	d	0	\N	0	\N	2026-11-18 09:24:27.608038+00
8	acme	s	0	\N	0	\N	2026-11-18 09:24:27.608038+00
8	globex	a	0	\N	0	\N	2026-11-18 09:24:27.608038+00
8	globex	b	0	\N	0	\N	2026-11-18 09:24:27.608038+00
8	globex	c	0	\N	0	\N	2026-11-18 09:24:27.608038+00
8	globex	d	0	\N	0	\N	2026-11-18 09:24:27.608038+00
16	acme	a	12	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	0	\N	2026-11-18 09:24:26.314772+00
16	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	0	\N	2026-11-18 09:24:26.314772+00
16	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	0	\N	2026-11-18 09:24:26.314772+00
16	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	0	\N	2026-11-18 09:24:26.314772+00
16	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:26.314772+00
16	globex	a	12	f89e6397-d44c-489f-9d89-c8b9b3ae6511	0	\N	2026-11-18 09:24:26.316158+00
16	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:26.316158+00
16	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:26.316158+00
16	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:26.316158+00
18	acme	a	12	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	0	\N	2026-11-18 09:24:26.317909+00
18	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	0	\N	2026-11-18 09:24:26.317909+00
18	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	0	\N	2026-11-18 09:24:26.317909+00
18	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	0	\N	2026-11-18 09:24:26.317909+00
18	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:26.317909+00
18	globex	a	12	f89e6397-d44c-489f-9d89-c8b9b3ae6511	0	\N	2026-11-18 09:24:26.318932+00
18	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:26.318932+00
18	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:26.318932+00
18	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:26.318932+00
1	acme	a	12	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	0	\N	2026-11-18 09:24:26.319461+00
1	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	0	\N	2026-11-18 09:24:26.319461+00
1	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	0	\N	2026-11-18 09:24:26.319461+00
1	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	0	\N	2026-11-18 09:24:26.319461+00
1	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:26.319461+00
1	globex	a	12	f89e6397-d44c-489f-9d89-c8b9b3ae6511	0	\N	2026-11-18 09:24:26.320295+00
1	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:26.320295+00
1	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:26.320295+00
1	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:26.320295+00
11	acme	d	13	4f1677a1-50e3-4231-8be2-e5feee935782	0	\N	2026-11-18 09:24:26.327258+00
17	globex	a	12	f89e6397-d44c-489f-9d89-c8b9b3ae6511	0	\N	2026-11-18 09:24:26.322526+00
11	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:26.327454+00
11	acme	b	12	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	0	\N	2026-11-18 09:24:26.323466+00
11	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:26.323635+00
17	globex	b	12	eddc51c5-a4c7-420a-86f3-6b0fda715d49	0	\N	2026-11-18 09:24:26.324033+00
17	globex	d	12	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	0	\N	2026-11-18 09:24:26.327837+00
11	acme	s	3	47dc90b5-760f-4e5a-bb1e-3f9192726404	0	\N	2026-11-18 09:24:26.327968+00
11	acme	c	12	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	0	\N	2026-11-18 09:24:26.325616+00
11	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:26.32584+00
17	globex	c	12	7964e797-bb45-43a0-bf00-ad335f5b114b	0	\N	2026-11-18 09:24:26.3263+00
4	acme	x	4	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	0	\N	2026-11-18 09:24:26.505663+00
7	acme	x	4	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	0	\N	2026-11-18 09:24:26.506534+00
16	acme	x	4	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	0	\N	2026-11-18 09:24:26.582898+00
12	acme	x	4	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	0	\N	2026-11-18 09:24:26.633254+00
15	acme	x	1	53315fd6-6037-4b31-8be2-c85a3e911ae8	1	bad event for dead	2026-11-18 09:24:26.489905+00
13	acme	x	1	53315fd6-6037-4b31-8be2-c85a3e911ae8	1	bad event for stopped	2026-11-18 09:24:26.483274+00
14	acme	x	1	53315fd6-6037-4b31-8be2-c85a3e911ae8	1	bad event for retried	2026-11-18 09:24:26.483274+00
2	acme	x	5	ccdf0a76-23e8-4f9b-bb9e-a82608fd6a7f	0	\N	2026-11-18 09:24:27.573634+00
8	acme	x	0	\N	0	\N	2026-11-18 09:24:27.608038+00
9	acme	x	4	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	0	\N	2026-11-18 09:24:26.500798+00
10	acme	x	4	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	0	\N	2026-11-18 09:24:26.500798+00
11	acme	x	4	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	0	\N	2026-11-18 09:24:26.500798+00
18	acme	x	4	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	0	\N	2026-11-18 09:24:26.500798+00
1	acme	x	4	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	0	\N	2026-11-18 09:24:26.505663+00
2	acme	y	2	11528e6b-11ca-4cf7-a332-5deeab0544d7	0	\N	2026-11-18 09:24:26.512339+00
11	acme	y	2	11528e6b-11ca-4cf7-a332-5deeab0544d7	0	\N	2026-11-18 09:24:26.516865+00
14	acme	y	0	\N	1	bad event for retried	2026-11-18 09:24:26.516865+00
15	acme	y	0	\N	1	bad event for dead	2026-11-18 09:24:26.516865+00
16	acme	y	0	\N	1	bad event for skipping	2026-11-18 09:24:26.516865+00
18	acme	y	2	11528e6b-11ca-4cf7-a332-5deeab0544d7	0	\N	2026-11-18 09:24:26.516865+00
1	acme	y	2	11528e6b-11ca-4cf7-a332-5deeab0544d7	0	\N	2026-11-18 09:24:26.516865+00
4	acme	y	2	11528e6b-11ca-4cf7-a332-5deeab0544d7	0	\N	2026-11-18 09:24:26.516865+00
7	acme	y	2	11528e6b-11ca-4cf7-a332-5deeab0544d7	0	\N	2026-11-18 09:24:26.521643+00
9	acme	y	2	11528e6b-11ca-4cf7-a332-5deeab0544d7	0	\N	2026-11-18 09:24:26.521643+00
10	acme	y	2	11528e6b-11ca-4cf7-a332-5deeab0544d7	0	\N	2026-11-18 09:24:26.521643+00
12	acme	y	2	11528e6b-11ca-4cf7-a332-5deeab0544d7	0	\N	2026-11-18 09:24:26.633254+00
17	acme	a	10	f3bc5cd8-7860-417c-a7b9-7849c9fc79e0	0	\N	2026-11-18 09:24:26.991459+00
-11	acme	a	10	f3bc5cd8-7860-417c-a7b9-7849c9fc79e0	0	\N	2026-11-18 09:24:27.298612+00
2	acme	z	3	b99acf4f-c6c9-4880-8bac-3007c7e8e5a1	0	\N	2026-11-18 09:24:27.504749+00
2	globex	z	3	b444d4f1-205f-43bc-b6e1-5c3eea556053	0	\N	2026-11-18 09:24:27.532203+00
9	globex	z	3	b444d4f1-205f-43bc-b6e1-5c3eea556053	0	\N	2026-11-18 09:24:27.532203+00
2	initech	a	4	cba464ab-9a96-4109-860d-1ef6ab36a9bb	0	\N	2026-11-18 09:24:27.546822+00
2	initech	z	3	7169199b-9224-4e57-8086-01640ccdd1c4	0	\N	2026-11-18 09:24:27.560072+00
8	acme	y	0	\N	0	\N	2026-11-18 09:24:27.608038+00
\.


--
-- Data for Name: projection_run_slices; Type: TABLE DATA; Schema: projector; Owner: postgres
--

COPY projector.projection_run_slices (run_id, slice, projection_id, after_aggregate_id, upto_aggregate_id, done, last_aggregate_id, last_sequence_number, last_log_seq, processed_events, applied_count, failed_count, dead_count, batch_count, apply_us, digest, row_count, layout, redefined, attempt_count, error_code, error_message, error_context) FROM stdin;
4	2	11	c	\N	f	\N	\N	0	0	0	0	0	0	0	00000000000000000000000000000000	0	0	f	0	\N	\N	\N
4	1	11	\N	c	f	a	10	10	10	10	0	0	2	83728	93d022bdfec3999f83de88d886b42501	1	8029990501945498861	f	0	\N	\N	\N
\.


--
-- Data for Name: projection_runs; Type: TABLE DATA; Schema: projector; Owner: postgres
--

COPY projector.projection_runs (id, projection_id, tenant_id, mode, state, since_log_seq, until_log_seq, total_events, processed_events, last_log_seq, error_code, error_message, error_context, requested_by, queued_at, started_at, finished_at, prepared, settled_log_seq, last_aggregate_id, last_sequence_number, attempt_count, built_aside, definition_hash, slice_count) FROM stdin;
1	12	globex	rebuild	completed	0	106	48	48	96	\N	\N	\N	postgres	2026-11-18 09:24:26.657296+00	2026-11-18 09:24:26.66044+00	2026-11-18 09:24:26.678124+00	t	106	\N	\N	0	t	\\x632ee98da80cdfde741f48892d3ece1fb0ba12922302c1a774b4fb3ec9805a8b	2
2	12	acme	rebuild	failed	0	106	1	36	36	P0001	bad event for run_often	PL/pgSQL function amount(projector.event,text) line 7 at RAISE\nexpression for column "total"\nprojection "run_often", event 2 (Added) of aggregate "x" of tenant "acme"	postgres	2026-11-18 09:24:26.814929+00	2026-11-18 09:24:26.823191+00	2026-11-18 09:24:26.842253+00	t	106	\N	\N	0	t	\\x632ee98da80cdfde741f48892d3ece1fb0ba12922302c1a774b4fb3ec9805a8b	2
4	11	acme	rebuild	running	0	106	1	0	0	\N	\N	\N	postgres	2026-11-18 09:24:26.994757+00	2026-11-18 09:24:27.288865+00	\N	t	106	\N	\N	0	t	\\x501b78b4602aadb6fbb99ead73db79f2dbdce425377a4a52bf1c1645f2dcc0d8	2
3	17	acme	rebuild	running	0	106	1	10	10	\N	\N	\N	postgres	2026-11-18 09:24:26.98081+00	2026-11-18 09:24:26.984788+00	\N	t	106	a	10	0	f	\\x7a96d99384c99b94177be892034807ecafe9b84ea947829ed6f9984163887c28	0
5	12	globex	rebuild	queued	\N	\N	\N	0	0	\N	\N	\N	postgres	2026-11-18 09:24:27.417527+00	\N	\N	f	\N	\N	\N	0	f	\N	0
6	1	globex	rebuild	cancelled	\N	\N	\N	0	0	57014	cancelled by postgres	\N	postgres	2026-11-18 09:24:27.430861+00	\N	2026-11-18 09:24:27.433418+00	f	\N	\N	\N	0	f	\N	0
\.


--
-- Data for Name: projections; Type: TABLE DATA; Schema: projector; Owner: postgres
--

COPY projector.projections (projection_id, name, owner, source, kind, handler, fold, fold_columns, statement, targets, key, event_types, mode, ordering, options, paused, paused_by, pause_reason, overrides, skips, handover_log_seq, started, home, definition_hash, search_path, created_at, paused_at, owner_oid, target_oids, resolved_in, redefinitions, settings) FROM stdin;
6	unused	postgres	events	fold_columns	\N	\N	{"n": "s.n + 1", "total": "s.total + amount(e, 'unused')"}	\N	{public.unused}	aggregate_id	\N	off	aggregate	{}	f	\N	\N	f	f	\N	f	7709439942596930206/5	\\x8471dc12092d690deca5a6b3afb0b76096c22cac475757e949b7be7a962447b7	public, pg_temp	2026-11-18 09:24:24.834531+00	\N	10	{16736}	16420	0	{}
2	at_once	postgres	events	fold_columns	\N	\N	{"n": "s.n + 1", "total": "s.total + amount(e, 'at_once')"}	\N	{public.at_once}	aggregate_id	\N	inline	aggregate	{}	f	\N	\N	f	f	100	t	7709439942596930206/5	\\x14115e0367cf43217bbc732283558b881d410a1979bad434d10e1a44dfb4cc28	public, pg_temp	2026-11-18 09:24:24.822333+00	\N	10	{16700}	16420	0	{}
3	strictly	postgres	events	fold_columns	\N	\N	{"n": "s.n + 1", "total": "s.total + amount(e, 'strictly')"}	\N	{public.strictly}	aggregate_id	{Checked}	strict	aggregate	{}	f	\N	\N	f	f	100	t	7709439942596930206/5	\\x07b1bcff9bd1f31129161ee87778d7e368f0dc28075a88ae0a8ebc813530538d	public, pg_temp	2026-11-18 09:24:24.825226+00	\N	10	{16709}	16420	0	{}
4	followed	postgres	events	fold_columns	\N	\N	{"n": "s.n + 1", "total": "s.total + amount(e, 'followed')"}	\N	{public.followed}	aggregate_id	\N	follow	aggregate	{}	f	\N	\N	f	f	100	t	7709439942596930206/5	\\xfd894159dd8321e187de270cad4b3ce7f1e03262fa8ce6cfd0f1edcd9384b63c	public, pg_temp	2026-11-18 09:24:24.828418+00	\N	10	{16718}	16420	0	{}
1	queued	postgres	events	fold_columns	\N	\N	{"n": "s.n + 1", "total": "s.total + amount(e, 'queued')"}	\N	{public.queued}	aggregate_id	\N	async	aggregate	{}	f	\N	\N	t	f	100	t	7709439942596930206/5	\\xe22ce70d98bc271e22ce91f76182b76426bf98677ca89f702e43bf2ee1797ebf	public, pg_temp	2026-11-18 09:24:24.820294+00	\N	10	{16691}	16420	0	{}
5	tried	postgres	events	fold_columns	\N	\N	{"n": "s.n + 1", "total": "s.total + amount(e, 'tried')"}	\N	{public.tried}	aggregate_id	\N	shadow	aggregate	{}	f	\N	\N	f	f	100	t	7709439942596930206/5	\\x833ba8f80eff72920d8b2d07674a1e2d8e899895c8de500d4f9c514bdfc5372b	public, pg_temp	2026-11-18 09:24:24.831794+00	\N	10	{16727}	16420	0	{}
13	stopped	postgres	events	handler	public.apply_stopped	\N	\N	\N	{public.stopped}	aggregate_id	\N	async	log	{"max_attempts": 1}	f	\N	\N	f	f	100	t	7709439942596930206/5	\\x70f314e25928335264adb98e6550ffd4b0951deaa5730209e277ec14d0c4bbdb	public, pg_temp	2026-11-18 09:24:24.853924+00	\N	10	{16799}	16420	0	{}
14	retried	postgres	events	handler	public.apply_retried	\N	\N	\N	{public.retried}	aggregate_id	\N	async	aggregate	{"retry_max": "1 h", "retry_base": "1 h"}	f	\N	\N	f	f	100	t	7709439942596930206/5	\\x5f0179b72d767e2cd616432a99b8f5032ef9ec00a5f07fa00aa13fa4d50135f0	public, pg_temp	2026-11-18 09:24:24.856299+00	\N	10	{16810}	16420	0	{}
15	dead	postgres	events	handler	public.apply_dead	\N	\N	\N	{public.dead}	aggregate_id	\N	async	aggregate	{"max_attempts": 1}	f	\N	\N	f	f	100	t	7709439942596930206/5	\\xdff5126bcdcd56b388190b3184d0180191962310ed1169e2e8c919983d06dfe7	public, pg_temp	2026-11-18 09:24:24.85863+00	\N	10	{16821}	16420	0	{}
18	totals	postgres	events	statement	\N	\N	\N	INSERT INTO totals AS t SELECT tenant_id, count(*), sum(amount(batch, 'totals')) FROM batch GROUP BY tenant_id\n     ON CONFLICT (tenant_id) DO UPDATE SET n = t.n + excluded.n, total = t.total + excluded.total	{public.totals}	aggregate_id	\N	async	aggregate	{"digest": false}	f	\N	\N	f	f	100	t	7709439942596930206/5	\\xd2b10e5c6b0d34ad10100ab0e0655a0a9ab857b6acb0b2b620b75e0475bce485	public, pg_temp	2026-11-18 09:24:24.865338+00	\N	10	{16854}	16420	0	{}
16	skipping	postgres	events	handler	public.apply_skipping	\N	\N	\N	{public.skipping}	aggregate_id	\N	async	aggregate	{"max_attempts": 1}	f	\N	\N	f	t	100	t	7709439942596930206/5	\\x34fc07563ae3cb639c3309320044d31c7e0c1dda54971d12bb32d52d3b66d834	public, pg_temp	2026-11-18 09:24:24.860675+00	\N	10	{16832}	16420	0	{}
7	switched	postgres	events	fold_columns	\N	\N	{"n": "s.n + 1", "total": "s.total + amount(e, 'switched')"}	\N	{public.switched}	aggregate_id	\N	async	aggregate	{}	f	\N	\N	f	f	\N	t	7709439942596930206/5	\\xe884e944519eecfb12caeb7ff16209d6ec04a28fd11db38cb6b8a42a0f0adff3	public, pg_temp	2026-11-18 09:24:24.836496+00	\N	10	{16745}	16420	0	{}
17	in_place	postgres	events	handler	public.apply_in_place	\N	\N	\N	{public.in_place}	aggregate_id	\N	async	aggregate	{"batch_size": 5}	f	\N	\N	t	f	100	t	7709439942596930206/5	\\x7a96d99384c99b94177be892034807ecafe9b84ea947829ed6f9984163887c28	public, pg_temp	2026-11-18 09:24:24.862902+00	\N	10	{16843}	16420	0	{}
11	built	postgres	events	fold_columns	\N	\N	{"n": "s.n + 1", "total": "s.total + amount(e, 'built')"}	\N	{public.built}	aggregate_id	\N	async	aggregate	{"batch_size": 5}	f	\N	\N	t	f	100	t	7709439942596930206/5	\\x501b78b4602aadb6fbb99ead73db79f2dbdce425377a4a52bf1c1645f2dcc0d8	public, pg_temp	2026-11-18 09:24:24.848534+00	\N	10	{16781}	16420	0	{}
12	run_often	postgres	events	fold_columns	\N	\N	{"n": "s.n + 1", "total": "s.total + amount(e, 'run_often')"}	\N	{public.run_often}	aggregate_id	\N	async	aggregate	{}	f	\N	\N	t	f	100	t	7709439942596930206/5	\\x632ee98da80cdfde741f48892d3ece1fb0ba12922302c1a774b4fb3ec9805a8b	public, pg_temp	2026-11-18 09:24:24.850333+00	\N	10	{16790}	16420	0	{}
10	paused	postgres	events	fold_columns	\N	\N	{"n": "s.n + 1", "total": "s.total + amount(e, 'paused')"}	\N	{public.paused}	aggregate_id	\N	async	aggregate	{}	t	postgres	for the dump	f	f	100	t	7709439942596930206/5	\\x513155331e29d7aed0d4d8c98652f20df157492092c231e77f0f287b78f4e693	public, pg_temp	2026-11-18 09:24:24.84656+00	2026-11-18 09:24:27.446193+00	10	{16772}	16420	0	{}
9	canary	postgres	events	fold_columns	\N	\N	{"n": "s.n + 1", "total": "s.total + amount(e, 'canary')"}	\N	{public.canary}	aggregate_id	\N	async	aggregate	{}	f	\N	\N	t	f	100	t	7709439942596930206/5	\\xf17ea20ac55c5b9f84ce67d632d5ef1673c584de0fc12c4722f94cda26bf0815	public, pg_temp	2026-11-18 09:24:24.844087+00	\N	10	{16763}	16420	0	{}
8	fresh	postgres	events	fold_columns	\N	\N	{"n": "s.n + 1", "total": "s.total + amount(e, 'fresh')"}	\N	{public.fresh}	aggregate_id	\N	async	aggregate	{}	f	\N	\N	f	f	\N	t	7709439942596930206/5	\\xa75910c6a0bbb1bdf7aac572954b5594354a55b75bdc635ade68567563b12d91	public, pg_temp	2026-11-18 09:24:24.838313+00	\N	10	{16754}	16420	0	{}
\.


--
-- Data for Name: at_once; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.at_once (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
acme	d	13	91	4f1677a1-50e3-4231-8be2-e5feee935782	13
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
acme	y	2	3	11528e6b-11ca-4cf7-a332-5deeab0544d7	2
acme	a	16	136	0d31a048-f524-41d6-b852-e6156338537b	16
acme	z	3	6	b99acf4f-c6c9-4880-8bac-3007c7e8e5a1	3
acme	b	12	78	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	12
globex	a	16	136	4bded16a-98a6-40c6-b74a-9bda92d44dbe	16
globex	z	3	6	b444d4f1-205f-43bc-b6e1-5c3eea556053	3
acme	c	12	78	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	12
initech	a	4	58	cba464ab-9a96-4109-860d-1ef6ab36a9bb	4
initech	z	3	6	7169199b-9224-4e57-8086-01640ccdd1c4	3
acme	x	5	15	ccdf0a76-23e8-4f9b-bb9e-a82608fd6a7f	5
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
\.


--
-- Data for Name: broken; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.broken (name) FROM stdin;
stopped
retried
dead
skipping
tried
run_often
\.


--
-- Data for Name: built; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.built (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
acme	a	12	78	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	12
globex	a	12	78	f89e6397-d44c-489f-9d89-c8b9b3ae6511	12
acme	b	12	78	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	12
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
acme	c	12	78	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
acme	d	13	91	4f1677a1-50e3-4231-8be2-e5feee935782	13
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
acme	x	4	10	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	4
acme	y	2	3	11528e6b-11ca-4cf7-a332-5deeab0544d7	2
\.


--
-- Data for Name: canary; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.canary (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
acme	a	12	78	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	12
acme	b	12	78	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	12
acme	c	12	78	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	12
acme	d	13	91	4f1677a1-50e3-4231-8be2-e5feee935782	13
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
acme	x	4	10	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	4
acme	y	2	3	11528e6b-11ca-4cf7-a332-5deeab0544d7	2
globex	a	16	136	4bded16a-98a6-40c6-b74a-9bda92d44dbe	16
globex	z	3	6	b444d4f1-205f-43bc-b6e1-5c3eea556053	3
\.


--
-- Data for Name: dead; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.dead (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
acme	x	1	1	53315fd6-6037-4b31-8be2-c85a3e911ae8	1
acme	a	12	78	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	12
acme	b	12	78	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	12
acme	c	12	78	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	12
acme	d	13	91	4f1677a1-50e3-4231-8be2-e5feee935782	13
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
globex	a	12	78	f89e6397-d44c-489f-9d89-c8b9b3ae6511	12
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
\.


--
-- Data for Name: followed; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.followed (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
acme	a	12	78	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	12
acme	b	12	78	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	12
acme	c	12	78	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	12
acme	d	13	91	4f1677a1-50e3-4231-8be2-e5feee935782	13
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
globex	a	12	78	f89e6397-d44c-489f-9d89-c8b9b3ae6511	12
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
acme	x	4	10	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	4
acme	y	2	3	11528e6b-11ca-4cf7-a332-5deeab0544d7	2
\.


--
-- Data for Name: fresh; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.fresh (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
acme	a	12	78	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	12
acme	b	12	78	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	12
acme	c	12	78	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	12
acme	d	13	91	4f1677a1-50e3-4231-8be2-e5feee935782	13
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
globex	a	12	78	f89e6397-d44c-489f-9d89-c8b9b3ae6511	12
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
acme	x	4	10	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	4
acme	y	2	3	11528e6b-11ca-4cf7-a332-5deeab0544d7	2
\.


--
-- Data for Name: in_place; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.in_place (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
globex	a	12	78	f89e6397-d44c-489f-9d89-c8b9b3ae6511	12
acme	a	10	55	f3bc5cd8-7860-417c-a7b9-7849c9fc79e0	10
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
\.


--
-- Data for Name: paused; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.paused (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
acme	a	12	78	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	12
acme	b	12	78	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	12
acme	c	12	78	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	12
acme	d	13	91	4f1677a1-50e3-4231-8be2-e5feee935782	13
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
globex	a	12	78	f89e6397-d44c-489f-9d89-c8b9b3ae6511	12
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
acme	x	4	10	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	4
acme	y	2	3	11528e6b-11ca-4cf7-a332-5deeab0544d7	2
\.


--
-- Data for Name: queued; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.queued (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
acme	a	12	78	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	12
acme	b	12	78	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	12
acme	c	12	78	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	12
acme	d	13	91	4f1677a1-50e3-4231-8be2-e5feee935782	13
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
globex	a	12	78	f89e6397-d44c-489f-9d89-c8b9b3ae6511	12
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
acme	x	4	10	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	4
acme	y	2	3	11528e6b-11ca-4cf7-a332-5deeab0544d7	2
\.


--
-- Data for Name: retried; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.retried (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
acme	x	1	1	53315fd6-6037-4b31-8be2-c85a3e911ae8	1
acme	a	12	78	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	12
acme	b	12	78	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	12
acme	c	12	78	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	12
acme	d	13	91	4f1677a1-50e3-4231-8be2-e5feee935782	13
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
globex	a	12	78	f89e6397-d44c-489f-9d89-c8b9b3ae6511	12
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
\.


--
-- Data for Name: run_often; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.run_often (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
acme	a	12	78	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	12
acme	b	12	78	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	12
acme	c	12	78	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	12
acme	d	13	91	4f1677a1-50e3-4231-8be2-e5feee935782	13
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
globex	a	12	78	f89e6397-d44c-489f-9d89-c8b9b3ae6511	12
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
acme	x	4	10	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	4
acme	y	2	3	11528e6b-11ca-4cf7-a332-5deeab0544d7	2
\.


--
-- Data for Name: skipping; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.skipping (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
acme	x	3	8	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	4
acme	a	12	78	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	12
acme	b	12	78	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	12
acme	c	12	78	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	12
acme	d	13	91	4f1677a1-50e3-4231-8be2-e5feee935782	13
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
globex	a	12	78	f89e6397-d44c-489f-9d89-c8b9b3ae6511	12
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
\.


--
-- Data for Name: stopped; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.stopped (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
acme	a	12	78	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	12
acme	b	12	78	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	12
acme	c	12	78	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	12
acme	d	13	91	4f1677a1-50e3-4231-8be2-e5feee935782	13
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
globex	a	12	78	f89e6397-d44c-489f-9d89-c8b9b3ae6511	12
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
acme	x	1	1	53315fd6-6037-4b31-8be2-c85a3e911ae8	1
\.


--
-- Data for Name: strictly; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.strictly (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
\.


--
-- Data for Name: switched; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.switched (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
acme	a	12	78	4ae3e1ca-1553-4de6-bf92-4ea1cdc51f05	12
acme	b	12	78	be41dc23-96d7-4d7f-a7ca-d4633a71e1b1	12
acme	c	12	78	54cbc00c-0e5f-41a0-8362-79ef3be1b60e	12
acme	d	13	91	4f1677a1-50e3-4231-8be2-e5feee935782	13
acme	s	3	6	47dc90b5-760f-4e5a-bb1e-3f9192726404	3
globex	a	12	78	f89e6397-d44c-489f-9d89-c8b9b3ae6511	12
globex	b	12	78	eddc51c5-a4c7-420a-86f3-6b0fda715d49	12
globex	c	12	78	7964e797-bb45-43a0-bf00-ad335f5b114b	12
globex	d	12	78	f79d85ed-fda5-46ab-9341-d4161aeb1f2d	12
acme	x	4	10	ff4f4a3e-05d3-4c8b-8beb-75fb54feb8a4	4
acme	y	2	3	11528e6b-11ca-4cf7-a332-5deeab0544d7	2
\.


--
-- Data for Name: totals; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.totals (tenant_id, n, total) FROM stdin;
globex	48	312
acme	58	344
\.


--
-- Data for Name: tried; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.tried (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
\.


--
-- Data for Name: unused; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.unused (tenant_id, id, n, total, last_event_id, last_event_version) FROM stdin;
\.


--
-- Name: events_log_seq_seq; Type: SEQUENCE SET; Schema: projector; Owner: postgres
--

SELECT pg_catalog.setval('projector.events_log_seq_seq', 128, true);


--
-- Name: projection_failures_id_seq; Type: SEQUENCE SET; Schema: projector; Owner: postgres
--

SELECT pg_catalog.setval('projector.projection_failures_id_seq', 11, true);


--
-- Name: projection_runs_id_seq; Type: SEQUENCE SET; Schema: projector; Owner: postgres
--

SELECT pg_catalog.setval('projector.projection_runs_id_seq', 6, true);


--
-- Name: projections_projection_id_seq; Type: SEQUENCE SET; Schema: projector; Owner: postgres
--

SELECT pg_catalog.setval('projector.projections_projection_id_seq', 18, true);


--
-- Name: at_once at_once_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.at_once
    ADD CONSTRAINT at_once_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: built built_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.built
    ADD CONSTRAINT built_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: canary canary_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.canary
    ADD CONSTRAINT canary_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: dead dead_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.dead
    ADD CONSTRAINT dead_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: followed followed_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.followed
    ADD CONSTRAINT followed_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: fresh fresh_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.fresh
    ADD CONSTRAINT fresh_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: in_place in_place_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.in_place
    ADD CONSTRAINT in_place_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: paused paused_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.paused
    ADD CONSTRAINT paused_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: queued queued_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.queued
    ADD CONSTRAINT queued_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: retried retried_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.retried
    ADD CONSTRAINT retried_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: run_often run_often_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.run_often
    ADD CONSTRAINT run_often_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: skipping skipping_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.skipping
    ADD CONSTRAINT skipping_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: stopped stopped_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.stopped
    ADD CONSTRAINT stopped_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: strictly strictly_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.strictly
    ADD CONSTRAINT strictly_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: switched switched_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.switched
    ADD CONSTRAINT switched_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: totals totals_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.totals
    ADD CONSTRAINT totals_pkey PRIMARY KEY (tenant_id);


--
-- Name: tried tried_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.tried
    ADD CONSTRAINT tried_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: unused unused_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.unused
    ADD CONSTRAINT unused_pkey PRIMARY KEY (tenant_id, id);


--
-- Name: dead projector_guard; Type: TRIGGER; Schema: public; Owner: postgres
--

CREATE TRIGGER projector_guard AFTER INSERT OR DELETE OR UPDATE ON public.dead FOR EACH ROW WHEN (projector.in_projection()) EXECUTE FUNCTION projector.guard_tenant();
ALTER TRIGGER projector_guard ON public.dead DEPENDS ON EXTENSION projector;

ALTER TABLE public.dead ENABLE ALWAYS TRIGGER projector_guard;


--
-- Name: in_place projector_guard; Type: TRIGGER; Schema: public; Owner: postgres
--

CREATE TRIGGER projector_guard AFTER INSERT OR DELETE OR UPDATE ON public.in_place FOR EACH ROW WHEN (projector.in_projection()) EXECUTE FUNCTION projector.guard_tenant();
ALTER TRIGGER projector_guard ON public.in_place DEPENDS ON EXTENSION projector;

ALTER TABLE public.in_place ENABLE ALWAYS TRIGGER projector_guard;


--
-- Name: retried projector_guard; Type: TRIGGER; Schema: public; Owner: postgres
--

CREATE TRIGGER projector_guard AFTER INSERT OR DELETE OR UPDATE ON public.retried FOR EACH ROW WHEN (projector.in_projection()) EXECUTE FUNCTION projector.guard_tenant();
ALTER TRIGGER projector_guard ON public.retried DEPENDS ON EXTENSION projector;

ALTER TABLE public.retried ENABLE ALWAYS TRIGGER projector_guard;


--
-- Name: skipping projector_guard; Type: TRIGGER; Schema: public; Owner: postgres
--

CREATE TRIGGER projector_guard AFTER INSERT OR DELETE OR UPDATE ON public.skipping FOR EACH ROW WHEN (projector.in_projection()) EXECUTE FUNCTION projector.guard_tenant();
ALTER TRIGGER projector_guard ON public.skipping DEPENDS ON EXTENSION projector;

ALTER TABLE public.skipping ENABLE ALWAYS TRIGGER projector_guard;


--
-- Name: stopped projector_guard; Type: TRIGGER; Schema: public; Owner: postgres
--

CREATE TRIGGER projector_guard AFTER INSERT OR DELETE OR UPDATE ON public.stopped FOR EACH ROW WHEN (projector.in_projection()) EXECUTE FUNCTION projector.guard_tenant();
ALTER TRIGGER projector_guard ON public.stopped DEPENDS ON EXTENSION projector;

ALTER TABLE public.stopped ENABLE ALWAYS TRIGGER projector_guard;


--
-- Name: totals projector_guard; Type: TRIGGER; Schema: public; Owner: postgres
--

CREATE TRIGGER projector_guard AFTER INSERT OR DELETE OR UPDATE ON public.totals FOR EACH ROW WHEN (projector.in_projection()) EXECUTE FUNCTION projector.guard_tenant();
ALTER TRIGGER projector_guard ON public.totals DEPENDS ON EXTENSION projector;

ALTER TABLE public.totals ENABLE ALWAYS TRIGGER projector_guard;


--
-- PostgreSQL database dump complete
--


