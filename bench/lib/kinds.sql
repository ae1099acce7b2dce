-- For part "kinds" of bench/drain: the read model of the contenders, in a table for
-- each kind of projection.  All are paused; one at a time is resumed.
SELECT projector_drop('stock');
CREATE TABLE stock_expressions (LIKE stock INCLUDING ALL) WITH (fillfactor = 70);
ALTER TABLE stock_expressions ALTER on_hand SET DEFAULT 0;
CREATE TABLE stock_statement (LIKE stock INCLUDING ALL) WITH (fillfactor = 70);
CREATE TABLE stock_fold (LIKE stock INCLUDING ALL) WITH (fillfactor = 70);
CREATE TABLE stock_follow (LIKE stock_expressions INCLUDING ALL) WITH (fillfactor = 70);

SELECT projector_create(name, targets => ARRAY['stock_' || name], mode => mode, options => '{"batch_size": 5000}',
    fold_columns => jsonb_build_object('on_hand',
        's.on_hand + CASE e.event_type WHEN ''ItemReceived'' THEN (e.payload->>''qty'')::bigint ELSE -(e.payload->>''qty'')::bigint END'))
FROM (VALUES ('expressions', 'async'), ('follow', 'follow')) v (name, mode);

SELECT projector_create('statement', targets => '{stock_statement}', options => '{"batch_size": 5000}', statement => $$
    INSERT INTO stock_statement AS s
    SELECT tenant_id, aggregate_id, sum(CASE event_type WHEN 'ItemReceived' THEN 1 ELSE -1 END * (payload->>'qty')::bigint),
        (array_agg(event_id ORDER BY sequence_number DESC))[1], max(sequence_number)
    FROM batch GROUP BY 1, 2
    ON CONFLICT (tenant_id, item_id) DO UPDATE SET on_hand = s.on_hand + excluded.on_hand,
        last_event_id = excluded.last_event_id, last_event_version = excluded.last_event_version$$);

CREATE FUNCTION fold(s stock_fold, e projector.event) RETURNS stock_fold LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF s.item_id IS NULL THEN
        s.tenant_id := e.tenant_id;
        s.item_id := e.aggregate_id;
        s.on_hand := 0;
    END IF;
    IF e.event_type = 'ItemReceived' THEN
        s.on_hand := s.on_hand + (e.payload->>'qty')::bigint;
    ELSE
        s.on_hand := s.on_hand - (e.payload->>'qty')::bigint;
    END IF;
    RETURN s;
END $$;
SELECT projector_create('fold', fold => 'fold', targets => '{stock_fold}', options => '{"batch_size": 5000}');
SELECT projector_drain();
SELECT projector_pause(name) FROM projector.projections;
