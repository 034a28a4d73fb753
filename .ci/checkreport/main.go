// Command checkreport fails unless the report of a dev run shows deliveries and
// intact invariants.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

type report struct {
	Orders     struct{ Created, Delivered int }
	Telemetry  struct{ Applied int64 }
	Decisions  struct{ Applied int }
	Invariants struct {
		Checked    int
		Violations []string
	}
}

func main() {
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "checkreport:", err)
		os.Exit(1)
	}
}

func check(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	var errs []error
	require := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	require(r.Orders.Delivered > 0, "no order was delivered")
	require(r.Telemetry.Applied > 0, "no telemetry was applied")
	require(r.Decisions.Applied > 0, "no decision was applied")
	require(r.Invariants.Checked > 0, "no invariant was checked")
	require(len(r.Invariants.Violations) == 0, fmt.Sprintf("invariants violated: %q", r.Invariants.Violations))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fmt.Printf("%d of %d orders delivered, %d invariant checks hold\n", r.Orders.Delivered, r.Orders.Created, r.Invariants.Checked)
	return nil
}
