SELECT id, refused_at, topic, reason, messages, order_id, requester_id
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id, refused_at ORDER BY refused_at DESC) AS nth
  FROM `fleet.refusals_raw`
) AS numbered
WHERE nth = 1
