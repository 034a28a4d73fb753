package main

import (
	"testing"

	"github.com/dronefleet/dronefleet/testkit/clitest"
)

func TestMain(m *testing.M) { clitest.MainOf(m, main) }

func TestCommand_RefusesInvalidFlags(t *testing.T) {
	clitest.RefusesLines(t, map[string]string{
		"--iterations=0":                "iterations (flag --iterations)",
		"--seeds=":                      "seeds (flag --seeds): is empty",
		"--drones=9223372036854775807":  "drones (flag --drones)",
		"--orders-per-minute=Inf":       "orders-per-minute (flag --orders-per-minute)",
		"--set=both":                    "--set",
		"--set=judging --cities=lyon":   "cities (flag --cities): has \"lyon\"; the cities of this set are paris",
		"--set=judging --load=-1":       "load (flag --load): has -1",
		"--set=judging --rivals=nobody": "rivals (flag --rivals): has \"nobody\"",
		"--load=1":                      "set (flag --set): is missing",
		"--simulated=1ns":               "simulated (flag --simulated)",
	})
}
