SELECT id, time, entity, entity_id, revision, status_before, status_after, cause, reason, person, drone_id, order_id, mission_id, decision_id, cycle_id, state
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id, time ORDER BY revision DESC) AS nth
  FROM `fleet.events_raw`
) AS numbered
WHERE nth = 1
