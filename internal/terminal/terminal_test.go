package terminal

import (
	"encoding/json"
	"testing"
)

// Text that a terminal would obey is escaped, and a JSON parser reads it as the original.
func TestEscape_KeepsTheText(t *testing.T) {
	for text, want := range map[string]string{
		"O-17":            "O-17",
		"été世界":           "été世界",
		"\x1b[2J":         `\u001b[2J`,
		"rtl\u202eabc":    `rtl\u202eabc`,
		"no-break\u00a0x": `no-break\u00a0x`,
		"\U000e0001tag":   `\udb40\udc01tag`,
	} {
		if got := Escape(text); got != want {
			t.Errorf("%q: escaped as %s, want %s", text, got, want)
		}
		var read string
		if err := json.Unmarshal([]byte(`"`+want+`"`), &read); err != nil || read != text {
			t.Errorf("%q: read as %q, %v", want, read, err)
		}
	}
}
