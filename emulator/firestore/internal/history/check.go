package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Check returns nil if the transactions are serializable, strictly so where their
// real times are known. Otherwise the error describes the first contradiction.
//
// The method is Adya's (MIT-LCS-TR-786, 1999): a graph has an edge wherever one
// transaction must come before another, because it wrote what the other read or
// overwrote, or read what the other overwrote. A history is serializable if the
// graph has no cycle.
func Check(transactions []Transaction) error {
	g := &graph{nodes: transactions, edges: make([][]edge, len(transactions))}
	versions, err := g.versions()
	if err != nil {
		return err
	}
	for name, list := range versions {
		for i := 1; i < len(list); i++ {
			g.link(list[i-1].writer, list[i].writer, "overwritten", name)
		}
	}
	for reader, tx := range transactions {
		for name, seen := range tx.Reads {
			if err := g.linkRead(reader, name, seen, versions[name]); err != nil {
				return err
			}
		}
	}
	g.linkRealTime()
	return g.findCycle()
}

// graph has an edge from each transaction to those that must come after it.
type graph struct {
	nodes []Transaction
	edges [][]edge
}

type edge struct {
	to        int
	why, name string
}

// version is one state of a document and its writer.
type version struct {
	time   int64
	writer int
}

// versions lists every document's versions, oldest first.
func (g *graph) versions() (map[string][]version, error) {
	all := map[string][]version{}
	for i, tx := range g.nodes {
		for _, name := range tx.Writes {
			all[name] = append(all[name], version{tx.Commit, i})
		}
	}
	for name, list := range all {
		slices.SortFunc(list, func(a, b version) int { return cmp.Compare(a.time, b.time) })
		for i := 1; i < len(list); i++ {
			if list[i].time == list[i-1].time {
				return nil, fmt.Errorf("history: %s and %s both wrote %s at %d",
					g.nodes[list[i-1].writer].ID, g.nodes[list[i].writer].ID, name, list[i].time)
			}
		}
	}
	return all, nil
}

// linkRead orders a reader after the writer of the version that it read and before
// the writer of the next version.
func (g *graph) linkRead(reader int, name string, seen int64, list []version) error {
	next := 0 // index of the version after the one read
	if seen != 0 {
		at, found := slices.BinarySearchFunc(list, seen, func(v version, t int64) int { return cmp.Compare(v.time, t) })
		if !found {
			return fmt.Errorf("history: %s read %s at version %d, which no transaction wrote", g.nodes[reader].ID, name, seen)
		}
		g.link(list[at].writer, reader, "read", name)
		next = at + 1
	}
	if next < len(list) {
		g.link(reader, list[next].writer, "read before", name)
	}
	return nil
}

// linkRealTime orders transactions that ended before others began. It leaves out an
// edge if a third transaction lies entirely between the two: then there is a path
// through that one.
func (g *graph) linkRealTime() {
	byBegin := g.timed(func(tx Transaction) int64 { return tx.Began })
	for _, i := range byBegin {
		ended := g.nodes[i].Ended
		at, _ := slices.BinarySearchFunc(byBegin, ended, func(j int, t int64) int {
			if g.nodes[j].Began > t {
				return 1
			}
			return -1
		})
		firstEnd := int64(0) // earliest end of those that began later
		for _, j := range byBegin[at:] {
			if firstEnd != 0 && g.nodes[j].Began > firstEnd {
				break
			}
			if firstEnd == 0 || g.nodes[j].Ended < firstEnd {
				firstEnd = g.nodes[j].Ended
			}
			g.link(i, j, "ended before", "it began")
		}
	}
}

// timed lists the transactions whose real time is known, sorted by key.
func (g *graph) timed(key func(Transaction) int64) []int {
	var list []int
	for i, tx := range g.nodes {
		if tx.Ended != 0 {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return cmp.Compare(key(g.nodes[a]), key(g.nodes[b])) })
	return list
}

func (g *graph) link(from, to int, why, name string) {
	if from != to {
		g.edges[from] = append(g.edges[from], edge{to, why, name})
	}
}

// findCycle searches the graph depth first and returns a cycle as an error.
func (g *graph) findCycle() error {
	const (
		unseen = iota
		onPath
		finished
	)
	state := make([]int, len(g.nodes))
	for start := range g.nodes {
		if state[start] != unseen {
			continue
		}
		type step struct{ node, next int }
		path := []step{{node: start}}
		state[start] = onPath
		for len(path) > 0 {
			top := &path[len(path)-1]
			if top.next == len(g.edges[top.node]) {
				state[top.node] = finished
				path = path[:len(path)-1]
				continue
			}
			e := g.edges[top.node][top.next]
			top.next++
			switch state[e.to] {
			case unseen:
				state[e.to] = onPath
				path = append(path, step{node: e.to})
			case onPath:
				nodes := make([]int, len(path))
				for i, s := range path {
					nodes[i] = s.node
				}
				return g.cycle(nodes[slices.Index(nodes, e.to):])
			}
		}
	}
	return nil
}

// cycle describes a cycle, one edge per line.
func (g *graph) cycle(nodes []int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "history: no serial order explains %d transactions:", len(nodes))
	for i, from := range nodes {
		to := nodes[(i+1)%len(nodes)]
		at := slices.IndexFunc(g.edges[from], func(e edge) bool { return e.to == to })
		e := g.edges[from][at]
		fmt.Fprintf(&b, "\n\t%s must come before %s: %s %s", g.nodes[from].ID, g.nodes[to].ID, e.why, e.name)
	}
	return fmt.Errorf("%s", b.String())
}
