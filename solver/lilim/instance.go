package lilim

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Task is one line of an instance; task 0 is the depot.
type Task struct {
	X, Y, Demand float64
	Early, Late  float64
	Service      float64
	Pickup, Drop int // index of the task's pickup or delivery; 0 in the field of its own kind
}

// Instance is one benchmark problem.
type Instance struct {
	Name     string
	Vehicles int
	Capacity float64
	Tasks    []Task
}

// maxNumber bounds the numbers of an instance, so that no sum of them overflows.
const maxNumber = 1e9

// Parse reads an instance in the published text form.
func Parse(name string, r io.Reader) (*Instance, error) {
	in := &Instance{Name: name}
	scan := bufio.NewScanner(r)
	for line := 1; scan.Scan(); line++ {
		fields := strings.Fields(scan.Text())
		if len(fields) == 0 {
			continue
		}
		values := make([]float64, len(fields))
		for i, f := range fields {
			v, err := strconv.ParseFloat(f, 64)
			if err != nil || math.IsNaN(v) || math.Abs(v) > maxNumber {
				return nil, fmt.Errorf("%s line %d: %q is not a number between -%g and %[4]g", name, line, f, maxNumber)
			}
			values[i] = v
		}
		if in.Vehicles == 0 {
			if len(values) < 2 || values[0] < 1 {
				return nil, fmt.Errorf("%s line %d: want the vehicles (at least 1), the capacity and the speed", name, line)
			}
			in.Vehicles, in.Capacity = int(values[0]), values[1]
			continue
		}
		if len(values) != 9 || int(values[0]) != len(in.Tasks) {
			return nil, fmt.Errorf("%s line %d: want 9 numbers for task %d", name, line, len(in.Tasks))
		}
		in.Tasks = append(in.Tasks, Task{
			X: values[1], Y: values[2], Demand: values[3], Early: values[4], Late: values[5],
			Service: values[6], Pickup: int(values[7]), Drop: int(values[8]),
		})
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return in, in.validate()
}

// validate checks that pickups and deliveries are paired.
func (in *Instance) validate() error {
	if len(in.Tasks) == 0 {
		return fmt.Errorf("%s: no tasks; the first one is the depot", in.Name)
	}
	for i, t := range in.Tasks[1:] {
		id := i + 1
		if t.Pickup != 0 && t.Drop != 0 {
			return fmt.Errorf("%s: task %d names both a pickup and a delivery", in.Name, id)
		}
		if t.Pickup != 0 {
			if t.Pickup < 0 || t.Pickup >= len(in.Tasks) || in.Tasks[t.Pickup].Drop != id {
				return fmt.Errorf("%s: task %d is not the delivery of its pickup %d", in.Name, id, t.Pickup)
			}
		} else if t.Drop <= 0 || t.Drop >= len(in.Tasks) || in.Tasks[t.Drop].Pickup != id {
			return fmt.Errorf("%s: task %d is not the pickup of its delivery %d", in.Name, id, t.Drop)
		}
	}
	return nil
}

// Distance returns the distance between two tasks; travel time is the same number.
func (in *Instance) Distance(a, b int) float64 {
	dx, dy := in.Tasks[a].X-in.Tasks[b].X, in.Tasks[a].Y-in.Tasks[b].Y
	return math.Sqrt(dx*dx + dy*dy)
}

// ParseSolution reads the routes of a published solution, task ids per route.
func ParseSolution(name string, r io.Reader) ([][]int, error) {
	var routes [][]int
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		head, tail, ok := strings.Cut(scan.Text(), ":")
		if !ok || !strings.HasPrefix(strings.TrimSpace(head), "Route") {
			continue
		}
		var route []int
		for _, f := range strings.Fields(tail) {
			id, err := strconv.Atoi(f)
			if err != nil {
				return nil, fmt.Errorf("%s: %q is not a task id", name, f)
			}
			route = append(route, id)
		}
		routes = append(routes, route)
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return routes, nil
}
