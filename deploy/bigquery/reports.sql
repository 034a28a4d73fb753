SELECT publish_time, message_id, report.drone_id, report.timestamp, report.position, report.battery_percentage, report.speed_kmh, report.status, report.current_mission_id, report.completed_stops, report.mission_revision, report.supports_amendments, report.supports_standby, report.battery_health_percent, report.flight_seconds, report.serial_number
FROM (SELECT publish_time, message_id, `fleet.report`(data) AS report FROM `fleet.reports_raw`)
WHERE report IS NOT NULL
