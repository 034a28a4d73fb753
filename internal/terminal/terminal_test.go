package terminal

import (
	"os/exec"
	"testing"
)

// A shell reads a word as the original text, and the word is printable.
func TestWord_IsReadAsTheText(t *testing.T) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	for text, want := range map[string]string{
		"O-17":              "O-17",
		"-dash":             "-dash",
		"":                  "''",
		"a  b":              "'a  b'",
		"it's $HOME `ls` !": `'it'\''s $HOME ` + "`ls`" + ` !'`,
		`back\slash`:        `'back\slash'`,
		"~":                 "'~'",
		"été世界":             "'été世界'",
		"\x1b[2J'\\\u00a0":  `$'\u001b[2J\'\\\u00a0'`,
		"rtl\u202eabc":      `$'rtl\u202eabc'`,
	} {
		word := Word(text)
		if word != want || Escape(word) != word {
			t.Errorf("%q: word %s, want %s", text, word, want)
		}
		cmd := exec.CommandContext(t.Context(), shell, "-c", "printf %s "+word)
		cmd.Env = []string{"LC_ALL=C.UTF-8"}
		if out, err := cmd.Output(); err != nil || string(out) != text {
			t.Errorf("%s: read as %q, %v, want %q", word, out, err, text)
		}
	}
}
