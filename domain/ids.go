package domain

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Identifiers. Each is 1 to MaxIDBytes bytes and usable as a document id.
type (
	DroneID     string
	OrderID     string
	MissionID   string
	DecisionID  string
	CycleID     string
	DepotID     string
	WarehouseID string
	DroneTypeID string
	DiscardID   string
	RefusalID   string
	ReplayID    string
	MemberID    string
)

// MaxIDBytes bounds every identifier that enters the system.
const MaxIDBytes = 128

var reservedID = regexp.MustCompile(`(?s)^__.*__$`) // line breaks included

// CheckID reports why id cannot name an entity: it must be 1 to 128 bytes of UTF-8 in
// normal form without control characters and a legal Firestore document id (no slash, not
// "." or "..", not of the form __x__).
func CheckID(id string) error {
	if err := checkID(id, MaxIDBytes); err != nil {
		return err
	}
	if i := strings.IndexFunc(id, unicode.IsControl); i >= 0 {
		return fmt.Errorf("contains the control character %U; leave it out", []rune(id[i:])[0])
	}
	return CheckForm(id)
}

// CheckForm reports why a name is not in Unicode's normal form NFC. Names are compared by
// their bytes, and two forms of the same one look alike.
func CheckForm(name string) error {
	if norm.NFC.IsNormalString(name) {
		return nil
	}
	right := norm.NFC.String(name)
	return fmt.Errorf("is %+q, which is not in Unicode normal form NFC; give %q, that is %+q", name, right, right)
}

// maxDocumentIDBytes is Firestore's limit.
const maxDocumentIDBytes = 1500

// CheckDocumentID reports why id cannot be that of any document, whoever wrote it:
// CheckID with Firestore's own limits, which allow control characters and every form.
func CheckDocumentID(id string) error { return checkID(id, maxDocumentIDBytes) }

func checkID(id string, most int) error {
	switch {
	case id == "":
		return fmt.Errorf("is empty; give 1 to %d bytes", most)
	case len(id) > most:
		return fmt.Errorf("is %d bytes long; give at most %d", len(id), most)
	case !utf8.ValidString(id):
		return errors.New("is not valid UTF-8")
	case strings.Contains(id, "/"):
		return errors.New(`contains "/", which a document id cannot`)
	case strings.ContainsRune(id, 0):
		return errors.New("contains a zero byte")
	case id == "." || id == "..":
		return fmt.Errorf("is %q, which is not a legal document id", id)
	case reservedID.MatchString(id):
		return fmt.Errorf("is %q; ids of the form __x__ are reserved", id)
	}
	return nil
}

// CycleLockKey is the key of a depot's cycle lock. It admits one solve cycle at a time and issues
// the fences of the depot's decisions.
func CycleLockKey(depot DepotID) string { return "optimizer:cycle:" + string(depot) }

// MissionIDFor derives the mission's id from the decision that creates it, so
// that whoever repeats the decision finds the mission it already made.
func MissionIDFor(d DecisionID) MissionID { return MissionID(joinID("M", string(d))) }

// DecisionIDFor derives the id of a cycle's decision about a drone: a cycle
// decides at most once about each.
func DecisionIDFor(c CycleID, d DroneID) DecisionID {
	return DecisionID(joinID(string(c), string(d)))
}

// DiscardIDFor derives the id of the record of a discarded message, so that
// whoever discards it again finds the record.
func DiscardIDFor(topic, messageID string) DiscardID { return DiscardID(joinID(topic, messageID)) }

// ReplayIDFor derives the id of the record of a replayed message, so that whoever
// replays it again finds the record.
func ReplayIDFor(topic, messageID string) ReplayID { return ReplayID(joinID(topic, messageID)) }

// RefusalIDFor derives the id of the record of a refused message, so that a redelivery
// finds the record.
func RefusalIDFor(topic, messageID string) RefusalID { return RefusalID(joinID(topic, messageID)) }

// joinID joins two ids readably, or by digest when the readable form could not
// be an id, such as for its length.
func joinID(a, b string) string {
	if joined := a + "-" + b; CheckID(joined) == nil {
		return joined
	}
	sum := sha256.Sum256([]byte(a + "\x00" + b))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20])
}

// MaxActorRunes bounds the name of whoever changes the fleet. Longer names are cut or refused, so
// that audits show each on one line.
const MaxActorRunes = 128
