package transcript

import (
	"fmt"
	"strings"
)

// Step is a command and the output that the page promises for it.
type Step struct {
	Line    int // of the page, counted from 1
	Command string
	Output  []string
}

// Section is a part of the page under a heading of the second level.
type Section struct {
	Title  string
	Blocks [][]Step // one for each fenced block of transcript
}

// Steps are those of all blocks in order.
func (s Section) Steps() []Step {
	var all []Step
	for _, b := range s.Blocks {
		all = append(all, b...)
	}
	return all
}

// Parse finds the transcripts of a Markdown page: blocks fenced as "console",
// in which a line that begins with "$ " is a command and every other line is
// output of the one before.
func Parse(page string) ([]Section, error) {
	var sections []Section
	inBlock, inConsole := false, false
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			inConsole = !inBlock && line == "```console"
			inBlock = !inBlock
			if inConsole && len(sections) == 0 {
				return nil, fmt.Errorf("line %d: a transcript before the first section", i+1)
			}
			if inConsole {
				s := &sections[len(sections)-1]
				s.Blocks = append(s.Blocks, nil)
			}
		case !inBlock && strings.HasPrefix(line, "## "):
			sections = append(sections, Section{Title: strings.TrimPrefix(line, "## ")})
		case inConsole:
			blocks := sections[len(sections)-1].Blocks
			block := &blocks[len(blocks)-1]
			if command, is := strings.CutPrefix(line, "$ "); is {
				*block = append(*block, Step{Line: i + 1, Command: command})
				continue
			}
			if len(*block) == 0 {
				return nil, fmt.Errorf("line %d: output before the first command of a transcript", i+1)
			}
			last := &(*block)[len(*block)-1]
			last.Output = append(last.Output, line)
		}
	}
	if inBlock {
		return nil, fmt.Errorf("the last block of the page is not closed")
	}
	return sections, nil
}
