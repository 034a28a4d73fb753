package operator

// FieldError says what is wrong with one field of a command. The command line names the field as a
// flag, the HTTP API as in its bodies.
type FieldError struct {
	Field string // as in JSON, such as reason
	Err   error  // such as "is blank; give a reason for the audit"
}

// Error implements error.
func (e *FieldError) Error() string { return e.Field + " " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *FieldError) Unwrap() error { return e.Err }

// ofField says which field an error is about; nil stays nil.
func ofField(field string, err error) error {
	if err == nil {
		return nil
	}
	return &FieldError{field, err}
}
