package dispatch

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/simclock"
)

// F-OWN-01: a member whose document is malformed is named in the log, because it gets no areas.
func TestTeam_LogsMalformedMembers(t *testing.T) {
	var logged bytes.Buffer
	team := newTeam(&Runner{clock: simclock.Real(), log: slog.New(slog.NewTextHandler(&logged, nil))})
	team.saw(domain.MemberNews{Whole: true, Malformed: []error{errors.New("members/M1: field share")}})
	if text := logged.String(); !strings.Contains(text, "members/M1: field share") || strings.Count(text, "\n") != 1 {
		t.Errorf("log %q", text)
	}
}
