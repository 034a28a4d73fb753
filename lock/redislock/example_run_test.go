package redislock_test

import (
	"testing"

	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// The examples print what they say.
func TestExamples(t *testing.T) {
	t.Setenv("REDIS_URL", storeserver.Redis(t).URL)
	storeserver.RunExamples(t, "example_test.go", map[string]func(){
		"Example": Example, "Example_waiting": Example_waiting, "Example_fencedWrite": Example_fencedWrite, "Example_leader": Example_leader,
	})
}
