package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/dronefleet/dronefleet/internal/cli"
)

// compare checks rows made elsewhere and prints them in one table: one line per
// instance, one column per file, the best known last.
func compare(f flags) error {
	columns := make([]map[string]row, len(f.Rows))
	sums := make([]summary, len(f.Rows))
	best := map[string]row{}
	for k, path := range f.Rows {
		var err error
		if columns[k], err = f.read(path); err != nil {
			return err
		}
		for name, r := range columns[k] {
			best[name] = r
			sums[k].add(r, false)
		}
	}
	names := make([]string, 0, len(best))
	for name := range best {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(cli.Stdout, "%-10s", "instance")
	for _, path := range f.Rows {
		fmt.Fprintf(cli.Stdout, " %18s", filepath.Base(path))
	}
	fmt.Fprintf(cli.Stdout, " %18s\n", "best known")
	for _, name := range names {
		fmt.Fprintf(cli.Stdout, "%-10s", name)
		for k := range columns {
			r, ok := columns[k][name]
			switch {
			case !ok:
				fmt.Fprintf(cli.Stdout, " %18s", "-")
			case r.Error != "":
				fmt.Fprintf(cli.Stdout, " %18s", "violation")
			default:
				fmt.Fprintf(cli.Stdout, " %5d / %10.2f", r.Vehicles, r.Distance)
			}
		}
		fmt.Fprintf(cli.Stdout, " %5d / %10.2f\n", best[name].BestVehicles, best[name].BestDistance)
	}
	for k, path := range f.Rows {
		fmt.Fprintf(cli.Stdout, "%s, ", filepath.Base(path))
		sums[k].print(f.Seed)
	}
	return nil
}

// read reads and checks the rows of a file and keeps the last of each instance.
func (f flags) read(path string) (map[string]row, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	out := map[string]row{}
	for rows := json.NewDecoder(file); rows.More(); {
		var r row
		if err := rows.Decode(&r); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		in, err := load(filepath.Join(f.Dir, r.Instance+".txt"), r.Instance)
		if err != nil {
			return nil, err
		}
		if err := r.readBest(in, filepath.Join(f.Dir, r.Instance+".sol")); err != nil {
			return nil, err
		}
		r.check(in)
		out[r.Instance] = r
	}
	return out, nil
}
