package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/domain"
)

// The drone table says what every report does to a drone in every situation.
// A situation is a drone D1 as the fleet knows it when a report comes in; see
// droneSituations. A report is its claim, the mission it names and when it was
// measured:
//
//	none, M, failed, other   the mission named: none; the drone's current one
//	                         (or its last, completed one); the drone's own that
//	                         failed at second 0; another drone's
//	early                    measured at second 20: before M's freeAfter (25)
//	                         and within 30 s of the failure
//	late                     measured at second 40, after both
//	old                      measured at second 40, delivered a minute later
//
// A cell lists what changes besides position, battery and times; "." means nothing:
//
//	→S            the drone's status becomes S, if it was another
//	acked, moved  missionAcked, missionMoved are set
//	COMPLETED     the mission completes and releases the drone
//	a reason      the mission fails with it and releases the drone
//	free          the drone is released; its mission had already ended
//	parked        the grace begins in which late reports may prove its last stops
//	flies on      that grace ends without effect
//	faulty, well  its fault's grace begins, ends
//	latched       the emergency stays until an operator clears it
//	ghost         the drone is flagged as a ghost and the revocation is sent again
//	no ghost      the drone is no longer flagged
type situation struct {
	name  string
	prose string
	build func(w *world)
	// statuses are the statuses of D1 that the grid holds for; nil for the one that
	// build sets.
	statuses []domain.DroneStatus
	// grid has a row per claim and a column per mission named and time. A column
	// without a time holds for the times that have no column of their own.
	grid string
}

var (
	claims = []string{
		"no claim", "IDLE", "RESERVED", "MOVING", "DELIVERING", "CHARGING", "MAINTENANCE", "PROBLEM", "EMERGENCY", "UNKNOWN",
		"IDLE 4 %", // the battery almost empty
	}
	named = []string{"none", "M", "failed", "other"}
	times = []string{"early", "late", "old"}
)

const failedMission, otherMission = domain.MissionID("M-F"), domain.MissionID("M-Z")

func claimed(claim string, mission domain.MissionID, when string) (t domain.Telemetry, deliveredAt float64) {
	measured := map[string]float64{"early": 20, "late": 40, "old": 40}[when]
	t = report("D1", domain.DroneStatus(claim), mission, at(measured))
	switch claim {
	case "no claim":
		t.Status = ""
	case "IDLE 4 %":
		t.Status, t.Battery = domain.DroneIdle, 4
	}
	if when == "old" {
		return t, measured + 60
	}
	return t, measured
}

// missionNamed returns the id of a mission of the table.
func missionNamed(name string) domain.MissionID {
	return map[string]domain.MissionID{"none": "", "M": "M-X", "failed": failedMission, "other": otherMission}[name]
}

func TestDroneTable(t *testing.T) {
	if err := checkDroneTable(contract()); err != nil {
		t.Error(err)
	}
}

// maxFailures bounds the output of a broken rule.
const maxFailures = 20

// checkDroneTable compares the rules with every cell.
func checkDroneTable(r rules) error {
	var all []error
	for _, s := range droneSituations {
		g, err := parseGrid(s.grid)
		if err != nil {
			all = append(all, fmt.Errorf("%s: %w", s.name, err))
			continue
		}
		for _, status := range s.before() {
			for _, claim := range claims {
				if len(all) > maxFailures {
					return errors.Join(all...)
				}
				for _, name := range named {
					for _, when := range times {
						report := fmt.Sprintf("%s, %s: %s naming %s, %s", s.name, status, claim, name, when)
						got, err := react(r, s, status, claim, name, when)
						if err != nil {
							all = append(all, fmt.Errorf("%s: %w", report, err))
						}
						want, ok := g.cell(claim, name+" "+when, name)
						if !ok {
							all = append(all, fmt.Errorf("%s: the table has no cell", report))
						} else if want = without(want, status); got != want {
							all = append(all, fmt.Errorf("%s: %q, want %q", report, got, want))
						}
					}
				}
			}
		}
	}
	return errors.Join(all...)
}

// before returns the statuses that D1 may have in the situation.
func (s situation) before() []domain.DroneStatus {
	if s.statuses != nil {
		return s.statuses
	}
	w := newWorld(contract())
	s.build(w)
	return []domain.DroneStatus{w.drones["D1"].Status}
}

// without removes from a cell the change to the status that the drone already has.
func without(cell string, status domain.DroneStatus) string {
	cell = strings.TrimSpace(strings.ReplaceAll(" "+cell+" ", " →"+string(status)+" ", " "))
	if cell == "" {
		return "."
	}
	return cell
}

// react puts D1 in a situation, delivers a report and returns what changed.
func react(r rules, s situation, status domain.DroneStatus, claim, name, when string) (string, error) {
	w := newWorld(r)
	s.build(w)
	if d, ok := w.drones["D1"]; ok {
		d.Status = status
		w.with(d)
	}
	w.broken = nil
	before, mission := w.drones["D1"], w.binding("D1").Mission
	t, delivered := claimed(claim, missionNamed(name), when)
	w.clock(delivered)
	if err := w.report(t); err != nil {
		return "", err
	}
	after := w.drones["D1"]
	var ended domain.Mission
	if mission != nil && mission.Status == domain.MissionActive {
		ended = w.missions[mission.ID]
	}
	return difference(before, after, ended, w.revokes), w.err()
}

func difference(before, after domain.Drone, mission domain.Mission, revokes []domain.MissionID) string {
	var parts []string
	say := func(when bool, what string) {
		if when {
			parts = append(parts, what)
		}
	}
	freed := before.Bound() && !after.Bound()
	say(after.MissionAcked && !before.MissionAcked, "acked")
	say(after.MissionMoved && !before.MissionMoved, "moved")
	say(mission.Status == domain.MissionCompleted, "COMPLETED")
	say(mission.Status == domain.MissionFailed, string(mission.FailureReason))
	say(freed && mission.Status == "", "free")
	say(!freed && mission.Status != "" && mission.Status != domain.MissionActive, "still bound")
	say(freed && mission.Status == domain.MissionActive, "freed in flight")
	say(!freed && before.ParkedSince.IsZero() && !after.ParkedSince.IsZero(), "parked")
	say(!freed && !before.ParkedSince.IsZero() && after.ParkedSince.IsZero(), "flies on")
	say(after.Status != before.Status, "→"+string(after.Status))
	say(before.FaultSince.IsZero() && !after.FaultSince.IsZero(), "faulty")
	say(!freed && !before.FaultSince.IsZero() && after.FaultSince.IsZero(), "well")
	say(after.EmergencyLatched && !before.EmergencyLatched, "latched")
	say(after.GhostMissionID != "" && len(revokes) == 1, "ghost")
	say(after.GhostMissionID != "" && len(revokes) != 1, fmt.Sprintf("ghost told %d times", len(revokes)))
	say(after.GhostMissionID == "" && before.GhostMissionID != "", "no ghost")
	if len(parts) == 0 {
		return "."
	}
	return strings.Join(parts, " ")
}

// grid is a table of cells. A heading may list several rows or columns.
type grid struct {
	columns, rows []string
	cells         map[string]string // by row and column, each as "row|column"
}

func parseGrid(text string) (grid, error) {
	g := grid{cells: map[string]string{}}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		fields := strings.Split(line, "|")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		if g.columns == nil {
			g.columns = fields[1:]
			continue
		}
		if len(fields) != len(g.columns)+1 {
			return g, fmt.Errorf("line %q has %d cells, not %d", line, len(fields)-1, len(g.columns))
		}
		g.rows = append(g.rows, fields[0])
		for i, cell := range fields[1:] {
			for _, row := range heads(fields[0]) {
				for _, column := range heads(g.columns[i]) {
					k := row + "|" + column
					if _, twice := g.cells[k]; twice {
						return g, fmt.Errorf("two cells for %s", k)
					}
					g.cells[k] = cell
				}
			}
		}
	}
	return g, nil
}

func heads(field string) []string {
	all := strings.Split(field, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// cell returns the row's cell in the first of the columns that has one.
func (g grid) cell(row string, columns ...string) (string, bool) {
	for _, c := range columns {
		if cell, ok := g.cells[row+"|"+c]; ok {
			return cell, true
		}
	}
	return "", false
}
