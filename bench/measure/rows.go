package measure

import (
	"encoding/json"
	"fmt"

	"github.com/dronefleet/dronefleet/internal/cli"
)

// WriteRows lets work write rows as JSON lines to the file that a flag names; with an
// empty name they are discarded. Rows written before work fails or is interrupted are
// kept. Errors name the flag.
func WriteRows(flag, name string, work func(write func(row any) error) error) error {
	told := func(err error) error {
		if err != nil {
			err = fmt.Errorf("%s: %w", flag, err)
		}
		return err
	}
	file, err := cli.Create(name)
	if err != nil {
		return told(err)
	}
	rows := json.NewEncoder(file)
	err = work(func(row any) error { return told(rows.Encode(row)) })
	if unwritten := file.Close(); err == nil {
		err = told(unwritten)
	}
	return err
}
