package cli

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/dronefleet/dronefleet/internal/config"
)

// completed prints what can end the command line that a shell asks about, and reports whether one
// does. Bash asks like this after "complete -C PROGRAM PROGRAM".
func completed(program *config.Parser) bool {
	line, asked := os.LookupEnv("COMP_LINE")
	if !asked {
		return false
	}
	if cursor, err := strconv.Atoi(os.Getenv("COMP_POINT")); err == nil && 0 <= cursor && cursor < len(line) {
		line = line[:cursor]
	}
	words := strings.Fields(line)
	if len(words) < 2 || strings.HasSuffix(line, " ") {
		words = append(words, "")
	}
	last, replaced := words[len(words)-1], 0
	if len(os.Args) > 2 { // for bash, a word begins after "="
		replaced = len(strings.TrimSuffix(last, os.Args[2]))
	}
	for _, candidate := range candidates(program, words[1:]) {
		fmt.Fprintln(Stdout, candidate[replaced:])
	}
	return true
}

// candidates lists the commands, flags or values of a flag that begin with the last of the words.
func candidates(program *config.Parser, words []string) (list []string) {
	node, last := program.Model(), words[len(words)-1]
	var open *kong.Flag // whose value is the next word
	for _, word := range words[:len(words)-1] {
		switch i := slices.IndexFunc(node.Children, func(c *kong.Node) bool { return c.Name == word || slices.Contains(c.Aliases, word) }); {
		case open != nil:
			open = nil
		case strings.HasPrefix(word, "-"):
			open = takesValue(node, word)
		case i >= 0:
			node = node.Children[i]
		}
	}
	name, _, assigned := strings.Cut(last, "=")
	switch flag := takesValue(node, name); {
	case open != nil:
		list = slices.Clone(program.Choices(open))
	case assigned && flag != nil:
		for _, value := range program.Choices(flag) {
			list = append(list, name+"="+value)
		}
	case strings.HasPrefix(last, "-"):
		for _, group := range node.AllFlags(true) {
			for _, f := range group {
				list = append(list, "--"+f.Name)
				if f.Tag.Negatable != "" {
					list = append(list, "--no-"+f.Name)
				}
			}
		}
	default:
		for _, c := range node.Children {
			if c.Type == kong.CommandNode && !c.Hidden {
				list = append(list, c.Name)
			}
		}
	}
	return slices.DeleteFunc(list, func(c string) bool { return !strings.HasPrefix(c, last) })
}

// takesValue is the flag that a word names, if it takes a value.
func takesValue(node *kong.Node, word string) *kong.Flag {
	for _, group := range node.AllFlags(false) {
		for _, f := range group {
			if (word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short)) && !f.IsBool() && !f.IsCounter() {
				return f
			}
		}
	}
	return nil
}
