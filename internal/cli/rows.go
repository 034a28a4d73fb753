package cli

import (
	"encoding/json"
	"fmt"
)

// WriteRows has work write rows, as JSON, one on a line, into the file that a flag
// names; without a name they go nowhere. The rows of work that fails or is
// interrupted are as good, and stay.
func WriteRows(flag, name string, work func(write func(row any) error) error) error {
	told := func(err error) error {
		if err != nil {
			err = fmt.Errorf("%s: %w", flag, err)
		}
		return err
	}
	file, err := Create(name)
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
