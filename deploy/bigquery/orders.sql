SELECT id, created_at, revision, status, priority, product_type, requester_id, pickup, delivery, weight_kg, cold_chain, deadline, delivered_at, late, attempts, drone_id, mission_id, planning_depot_id
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id, created_at ORDER BY revision DESC) AS nth
  FROM `fleet.orders_raw`
) AS numbered
WHERE nth = 1
