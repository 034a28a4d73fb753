package domain

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// AlertAck records that somebody has taken note of an alert.
type AlertAck struct {
	ID     string // the alert's: KIND:entity, or KIND:entity:since
	By     string
	At     time.Time
	Reason string
}

// maxAlertIDBytes is more than a kind, an entity's id and a time take.
const maxAlertIDBytes = 512

var alertID = regexp.MustCompile(`^[A-Z][A-Z_]*:.`)

// CheckAlertID says what is wrong with an alert's id.
func CheckAlertID(id string) error {
	switch {
	case len(id) > maxAlertIDBytes:
		return fmt.Errorf("has %d bytes; an alert's id has at most %d", len(id), maxAlertIDBytes)
	case !alertID.MatchString(id):
		return errors.New("is not an alert's id; give one such as CRITICAL_LATE:O-1, as the stream shows it")
	}
	if strings.ContainsFunc(id, unicode.IsControl) {
		return errors.New("contains a control character")
	}
	return CheckDocumentID(id)
}
