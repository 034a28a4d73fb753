package policy

import (
	"strings"

	"github.com/dronefleet/dronefleet/domain"
)

// ReasonInUse refuses to delete or move a depot or a warehouse that the fleet needs.
const ReasonInUse Reason = "IN_USE"

// MaxUsersNamed bounds the users of a place that a refusal names.
const MaxUsersNamed = 10

// CheckUnused decides whether an operator may delete or move a place. users are the entities that
// refer to it, as in "drone D1". The refusal names at most MaxUsersNamed of them.
func CheckUnused(kind domain.PlaceKind, id string, users []string) error {
	if len(users) == 0 {
		return nil
	}
	named := strings.Join(users[:min(len(users), MaxUsersNamed)], ", ")
	if len(users) > MaxUsersNamed {
		named += " and others"
	}
	return reject(ReasonInUse, id, "this %s is used by %s; end or move what uses it first", kind, named)
}
