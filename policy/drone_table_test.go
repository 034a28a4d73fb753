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
//	none, M, failed, other   the mission named: none; the one that holds the
//	                         drone (or held it last, and was completed); the
//	                         drone's own that failed at second 0; somebody's
//	early                    measured at second 20: before M's freeAfter (25)
//	                         and within 30 s of the failure
//	late                     measured at second 40, after both
//	old                      measured at second 40, delivered a minute later
//
// A cell says what changes, "." for nothing but position, battery and times:
//
//	→S            the drone's status becomes S, unless it is so already
//	acked, moved  missionAcked, missionMoved are set
//	COMPLETED     the mission completes and releases the drone
//	a reason      the mission fails with it and releases the drone
//	free          the drone is released; its mission had already ended
//	parked        the grace begins in which late reports may prove its last stops
//	flies on      that grace ends without effect
//	faulty, well  its fault's grace begins, ends
//	latched       the emergency stays until an operator clears it
//	ghost         it is flagged, and the revocation sent again
//	no ghost      it is no longer flagged
type situation struct {
	name  string
	prose string
	build func(w *world)
	// statuses are D1's, one after the other, if they make no difference but in
	// the status itself.
	statuses []domain.DroneStatus
	// grid has a line per claim and a column per mission named and time; a
	// column without a time stands for the times not named elsewhere.
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

// missionNamed is the id behind a mission of the table.
func missionNamed(name string) domain.MissionID {
	return map[string]domain.MissionID{"none": "", "M": "M-X", "failed": failedMission, "other": otherMission}[name]
}

func TestDroneTable(t *testing.T) {
	if err := checkDroneTable(contract()); err != nil {
		t.Error(err)
	}
}

// enough complaints make the point.
const enough = 20

// checkDroneTable holds the rules against every cell.
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
				if len(all) > enough {
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

// before is D1's statuses in the situation.
func (s situation) before() []domain.DroneStatus {
	if s.statuses != nil {
		return s.statuses
	}
	w := newWorld(contract())
	s.build(w)
	return []domain.DroneStatus{w.drones["D1"].Status}
}

// without is a cell less the status that is there already.
func without(cell string, status domain.DroneStatus) string {
	cell = strings.TrimSpace(strings.ReplaceAll(" "+cell+" ", " →"+string(status)+" ", " "))
	if cell == "" {
		return "."
	}
	return cell
}

// react puts D1 in a situation, delivers a report and says what came of it.
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

// grid is a table of cells, each of which may stand under several heads.
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

// cell is the cell of a row under the first of the columns that has one.
func (g grid) cell(row string, columns ...string) (string, bool) {
	for _, c := range columns {
		if cell, ok := g.cells[row+"|"+c]; ok {
			return cell, true
		}
	}
	return "", false
}
