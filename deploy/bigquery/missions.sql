SELECT id, start_time, revision, status, failure_reason, end_time, drone_id, order_ids, estimated_battery_percent, estimated_minutes, stops, reached_stops, decision_id, cycle_id
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id, start_time ORDER BY revision DESC) AS nth
  FROM `fleet.missions_raw`
) AS numbered
WHERE nth = 1
