package main

import (
	"testing"

	"github.com/dronefleet/dronefleet/internal/clitest"
)

func TestMain(m *testing.M) { clitest.MainOf(m, main) }

func TestCommand_RefusesInvalidFlags(t *testing.T) {
	clitest.RefusesLines(t, map[string]string{
		"--iterations=0":               "iterations (flag --iterations)",
		"--seeds=":                     "seeds (flag --seeds): is empty",
		"--drones=9223372036854775807": "drones (flag --drones)",
		"--orders-per-minute=Inf":      "orders-per-minute (flag --orders-per-minute)",
		"--simulated=1ns":              "simulated (flag --simulated)",
	})
}
