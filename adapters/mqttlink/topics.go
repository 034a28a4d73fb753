package mqttlink

import (
	"fmt"
	"strings"

	"github.com/dronefleet/dronefleet/domain"
)

// The topics of a drone are fleet/{drone}/ and one of these. Drones publish the first three, the
// third by their will, too.
const (
	telemetryTopic = "telemetry"
	helloTopic     = "hello"
	linkTopic      = "link"
	missionsTopic  = "missions"
	answersTopic   = "answers"
)

const topicRoot = "fleet"

// topicOf is a topic of a drone. A few ids that the fleet allows cannot be part of a topic.
func topicOf(drone domain.DroneID, kind string) (string, error) {
	if strings.ContainsAny(string(drone), "+#/") {
		return "", fmt.Errorf("drone id %q contains a character of MQTT's wildcards; give the drone an id without + and #", drone)
	}
	return topicRoot + "/" + string(drone) + "/" + kind, nil
}

// readTopic finds whose topic it is, and which.
func readTopic(topic string) (drone domain.DroneID, kind string, ok bool) {
	parts := strings.Split(topic, "/")
	if len(parts) != 3 || parts[0] != topicRoot || parts[1] == "" {
		return "", "", false
	}
	return domain.DroneID(parts[1]), parts[2], true
}

// filters are the subscriptions of a gateway; the last can be done without.
func (l *Link) filters() []string {
	return []string{shared(l.cfg.Group, telemetryTopic), shared(l.cfg.Group, helloTopic), shared(l.cfg.Group, linkTopic)}
}

// shared is the filter of a topic of all drones that the gateways of a group share.
func shared(group, kind string) string {
	return "$share/" + group + "/" + topicRoot + "/+/" + kind
}
