package pubsubemu

import (
	"strconv"
	"strings"
)

// An ack id is "instance-lease", both in base 36: the instance of the subscription
// and the number of the delivery. Clients must treat it as opaque.
const ackIDBase = 36

func ackIDPrefix(instance uint64) string { return strconv.FormatUint(instance, ackIDBase) + "-" }

func formatAckID(prefix string, lease uint64) string {
	var room [32]byte
	return string(strconv.AppendUint(append(room[:0], prefix...), lease, ackIDBase))
}

// parseAckID splits an ack id; ok is false when no embedded server can have issued
// it.
func parseAckID(id string) (instance, lease uint64, ok bool) {
	first, second, found := strings.Cut(id, "-")
	if !found {
		return 0, 0, false
	}
	instance, err := strconv.ParseUint(first, ackIDBase, 64)
	if err != nil {
		return 0, 0, false
	}
	lease, err = strconv.ParseUint(second, ackIDBase, 64)
	return instance, lease, err == nil && lease > 0
}
