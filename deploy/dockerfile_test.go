package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// outDir is where the Dockerfile's build puts the binaries.
const outDir = "/out/"

// dockerfile is as much of a Dockerfile as ours uses.
type dockerfile struct{ stages []stage }

type stage struct {
	name, from string
	lines      []instruction
}

type instruction struct{ name, args string }

func readDockerfile(name string) (*dockerfile, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return parseDockerfile(string(text))
}

func parseDockerfile(text string) (*dockerfile, error) {
	d := &dockerfile{}
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, _ := strings.Cut(line, " ")
		if name == "FROM" {
			base, alias, _ := strings.Cut(args, " AS ")
			d.stages = append(d.stages, stage{name: alias, from: base})
			continue
		}
		if len(d.stages) == 0 {
			return nil, fmt.Errorf("%s comes before FROM", name)
		}
		last := &d.stages[len(d.stages)-1]
		last.lines = append(last.lines, instruction{name, strings.TrimSpace(args)})
	}
	return d, nil
}

func (d *dockerfile) stage(name string) (stage, error) {
	for _, s := range d.stages {
		if s.name == name {
			return s, nil
		}
	}
	return stage{}, fmt.Errorf("the Dockerfile has no stage %s", name)
}

// builds are the lines that build binaries.
func (d *dockerfile) builds() []string {
	var lines []string
	for _, s := range d.stages {
		for _, i := range s.lines {
			if i.name == "RUN" && strings.Contains(i.args, "go build") {
				lines = append(lines, i.args)
			}
		}
	}
	return lines
}

// all are the arguments of every instruction of a name.
func (s stage) all(name string) []string {
	var list []string
	for _, i := range s.lines {
		if i.name == name {
			list = append(list, i.args)
		}
	}
	return list
}

// words reads the last instruction of a name in its JSON form.
func (s stage) words(name string) ([]string, error) {
	list := s.all(name)
	if len(list) == 0 {
		return nil, fmt.Errorf("stage %s has no %s", s.name, name)
	}
	var words []string
	if err := json.Unmarshal([]byte(list[len(list)-1]), &words); err != nil {
		return nil, fmt.Errorf("%s of stage %s: %w", name, s.name, err)
	}
	return words, nil
}

// copies are what the stage takes from the build, by path there, with its path
// in the image.
func (s stage) copies() (map[string]string, error) {
	files := map[string]string{}
	for _, args := range s.all("COPY") {
		words := strings.Fields(args)
		if len(words) != 3 || words[0] != "--from=build" {
			return nil, fmt.Errorf("stage %s: COPY %s is not of one file of the build", s.name, args)
		}
		files[words[1]] = words[2]
	}
	return files, nil
}
