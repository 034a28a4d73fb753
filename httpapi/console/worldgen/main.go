// Command worldgen makes web/world.json.gz: the coasts, borders and names of countries that the console's map shows where
// no map is configured. Its input is countries-50m.json of the npm package world-atlas 2.0.2: data of Natural Earth, which
// is in the public domain, as TopoJSON.
//
//	npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz
//	go run ./httpapi/console/worldgen package/countries-50m.json httpapi/console/web/world.json.gz
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"log"
	"math"
	"os"
	"slices"
)

const (
	unit   = 50.0  // steps of the output in a degree
	detail = 0.006 // square degrees: corners that change an outline by less are left out
	island = 0.02  // square degrees: smaller ones are left out
)

type point struct{ lon, lat float64 }

// topology is a TopoJSON file.
type topology struct {
	Transform struct{ Scale, Translate [2]float64 }
	Arcs      [][][2]float64
	Objects   struct {
		Countries, Land struct{ Geometries []geometry }
	}
}

type geometry struct {
	Type       string
	Arcs       json.RawMessage
	Properties struct{ Name string }
}

// world is the output. Outlines are longitudes and latitudes by turns, in steps, each as the difference to the one before.
type world struct {
	Land    [][]int `json:"land"`
	Borders [][]int `json:"borders"`
	Names   []name  `json:"names"`
}

// name stands in the middle of a country's largest part, which is about Wide degrees wide.
type name struct {
	Text string  `json:"text"`
	Lat  float64 `json:"lat"`
	Lon  float64 `json:"lon"`
	Wide float64 `json:"wide"`
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: worldgen countries-50m.json world.json.gz")
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal("worldgen: ", err)
	}
}

func run(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var t topology
	if err := json.Unmarshal(data, &t); err != nil {
		return fmt.Errorf("read %s: %w", from, err)
	}
	w, err := worldOf(t)
	if err != nil {
		return err
	}
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	log.Printf("%d outlines, %d borders, %d names: %d bytes", len(w.Land), len(w.Borders), len(w.Names), out.Len())
	return os.WriteFile(to, out.Bytes(), 0o644)
}

func worldOf(t topology) (w world, err error) {
	arcs := make([][]point, len(t.Arcs))
	for i, arc := range t.Arcs {
		var at [2]float64
		for _, step := range arc {
			at[0], at[1] = at[0]+step[0], at[1]+step[1]
			arcs[i] = append(arcs[i], point{at[0]*t.Transform.Scale[0] + t.Transform.Translate[0], at[1]*t.Transform.Scale[1] + t.Transform.Translate[1]})
		}
		arcs[i] = simple(arcs[i])
	}
	for _, g := range t.Objects.Land.Geometries {
		polygons, err := g.polygons()
		if err != nil {
			return w, err
		}
		for _, ring := range slices.Concat(polygons...) {
			if outline := joined(arcs, ring); math.Abs(area(outline)) >= island {
				w.Land = append(w.Land, steps(outline))
			}
		}
	}
	used := make([]int, len(arcs)) // by how many countries
	for _, g := range t.Objects.Countries.Geometries {
		polygons, err := g.polygons()
		if err != nil {
			return w, err
		}
		var largest []point
		for _, ring := range slices.Concat(polygons...) {
			for _, arc := range ring {
				used[max(arc, ^arc)]++
			}
			if outline := joined(arcs, ring); math.Abs(area(outline)) > math.Abs(area(largest)) {
				largest = outline
			}
		}
		if size := math.Abs(area(largest)); size >= island {
			at := middle(largest)
			round := func(v float64) float64 { return math.Round(v*10) / 10 }
			w.Names = append(w.Names, name{g.Properties.Name, round(at.lat), round(at.lon), round(math.Sqrt(size))})
		}
	}
	slices.SortFunc(w.Names, func(a, b name) int { return cmp.Or(cmp.Compare(b.Wide, a.Wide), cmp.Compare(a.Text, b.Text)) })
	for i, n := range used {
		if n > 1 {
			w.Borders = append(w.Borders, steps(arcs[i]))
		}
	}
	return w, nil
}

// polygons are the rings of each polygon, as numbers of arcs: ^n for arc n backwards.
func (g geometry) polygons() (polygons [][][]int, err error) {
	switch g.Type {
	case "Polygon":
		polygons = make([][][]int, 1)
		err = json.Unmarshal(g.Arcs, &polygons[0])
	case "MultiPolygon":
		err = json.Unmarshal(g.Arcs, &polygons)
	default:
		err = fmt.Errorf("unknown type %q", g.Type)
	}
	if err != nil {
		return nil, fmt.Errorf("geometry of %s: %w", g.Properties.Name, err)
	}
	return polygons, nil
}

func joined(arcs [][]point, ring []int) (outline []point) {
	for _, arc := range ring {
		part := slices.Clone(arcs[max(arc, ^arc)])
		if arc < 0 {
			slices.Reverse(part)
		}
		outline = append(outline, part...)
	}
	for i := 1; i < len(outline); i++ {
		// An island on the date line goes on beyond it; Antarctica ends there.
		if p, q := outline[i-1], &outline[i]; math.Abs(q.lon-p.lon) > 180 && math.Abs(q.lat) < 85 {
			q.lon += math.Copysign(360, p.lon)
		}
	}
	return outline
}

// simple leaves out corners, those that matter least first (Visvalingam's method). Ends stay, for other arcs begin there.
func simple(line []point) []point {
	line = slices.Clone(line)
	for len(line) > 2 {
		least, at := detail, 0
		for i := 1; i < len(line)-1; i++ {
			if size := math.Abs(area(line[i-1:i+2])) * math.Cos(line[i].lat*math.Pi/180); size < least {
				least, at = size, i
			}
		}
		if at == 0 {
			break
		}
		line = slices.Delete(line, at, at+1)
	}
	return line
}

// area is the signed area of an outline in square degrees.
func area(outline []point) (sum float64) {
	for i, p := range outline {
		q := outline[(i+1)%len(outline)]
		sum += p.lon*q.lat - q.lon*p.lat
	}
	return sum / 2
}

func middle(outline []point) (sum point) {
	all := area(outline)
	for i, p := range outline {
		q := outline[(i+1)%len(outline)]
		cross := p.lon*q.lat - q.lon*p.lat
		sum.lon += (p.lon + q.lon) * cross / (6 * all)
		sum.lat += (p.lat + q.lat) * cross / (6 * all)
	}
	return sum
}

// steps writes an outline as differences; points that fall together are one.
func steps(outline []point) (list []int) {
	lon, lat := 0, 0
	for _, p := range outline {
		x, y := int(math.Round(p.lon*unit)), int(math.Round(p.lat*unit))
		if len(list) > 0 && x == lon && y == lat {
			continue
		}
		list = append(list, x-lon, y-lat)
		lon, lat = x, y
	}
	return list
}
