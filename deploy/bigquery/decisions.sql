SELECT id, applied_at, outcome, reason, detail, drone_id, mission_id, order_ids, cycle_id, depot_id
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id, applied_at ORDER BY applied_at DESC) AS nth
  FROM `fleet.decisions_raw`
) AS numbered
WHERE nth = 1
