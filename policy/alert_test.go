package policy

import (
	"testing"

	"github.com/dronefleet/dronefleet/domain"
)

// F-OPR-04
func TestAcknowledgeAlert_TheFirstStays(t *testing.T) {
	ann := domain.AlertAck{ID: "GHOST:D1", By: "ann", Reason: "seen"}
	first, err := AcknowledgeAlert(nil, ann, start)
	if want := (domain.AlertAck{ID: "GHOST:D1", By: "ann", Reason: "seen", At: start}); err != nil || first != want {
		t.Errorf("%+v, %v; want %+v", first, err, want)
	}
	again, err := AcknowledgeAlert(&first, domain.AlertAck{ID: "GHOST:D1", By: "bob", Reason: "me too"}, at(5))
	if again != first || answer(err) != string(ReasonAlreadyAcknowledged) {
		t.Errorf("%+v, %v; want the first acknowledgement", again, err)
	}
}
