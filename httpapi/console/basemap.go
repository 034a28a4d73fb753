package console

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// BaseMapConfig says what an operator wants below the fleet on the map.
type BaseMapConfig struct {
	// Tiles is the URL of raster tiles with {z}, {x} and {y}: of another site, or a path
	// of this one.
	Tiles string
	// PMTiles is a file of raster tiles, PMTiles version 3.
	PMTiles string
	// Attribution is what the map must say about its source; "" for what a PMTiles file
	// says itself.
	Attribution string
	// MaxZoom is the closest zoom of Tiles.
	MaxZoom int
}

// BaseMap is a map below the fleet. The zero value is none: the page draws its own coarse
// shapes.
type BaseMap struct {
	about   json.RawMessage // what the page is told
	origin  string          // of tiles of another site
	archive *os.File
	tag     string // of the archive
	size    int64
	changed time.Time // of the archive, last
}

// aboutMap tells the page what to draw.
type aboutMap struct {
	Tiles       string `json:"tiles,omitempty"`
	PMTiles     string `json:"pmtiles,omitempty"`
	Attribution string `json:"attribution,omitempty"`
	MaxZoom     int    `json:"maxZoom,omitempty"`
}

// PMTilesPath is where the page reads a PMTiles file, in parts; MapPath is where it asks
// what to draw.
const (
	PMTilesPath = "/console/map.pmtiles"
	MapPath     = "/console/map.json"
)

// OpenBaseMap checks the configured map and opens its file, if there is one. Errors do not name
// the setting.
func OpenBaseMap(cfg BaseMapConfig) (*BaseMap, error) {
	m, about := &BaseMap{}, aboutMap{Tiles: cfg.Tiles, Attribution: cfg.Attribution, MaxZoom: cfg.MaxZoom}
	var err error
	switch {
	case cfg.PMTiles != "":
		about = aboutMap{PMTiles: PMTilesPath, Attribution: cfg.Attribution}
		if err = m.open(cfg.PMTiles, &about); err != nil {
			return nil, fmt.Errorf("is %.256q, %w", cfg.PMTiles, err)
		}
	case cfg.Tiles != "":
		if m.origin, err = originOf(cfg.Tiles); err != nil {
			return nil, err
		}
	default:
		about = aboutMap{}
	}
	m.about, err = json.Marshal(about)
	return m, err
}

// Close closes the file.
func (m *BaseMap) Close() error {
	if m == nil || m.archive == nil {
		return nil
	}
	return m.archive.Close()
}

// hostPort is what may stand in a Content-Security-Policy.
var hostPort = regexp.MustCompile(`^([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:[0-9]+)?$`)

// originOf checks a template of tiles and returns the site that it names; "" for this one.
func originOf(template string) (string, error) {
	for _, part := range []string{"{z}", "{x}", "{y}"} {
		if strings.Count(template, part) != 1 {
			return "", fmt.Errorf("is %.256q, which must contain %s once; give for example https://tiles.example.org/{z}/{x}/{y}.png", template, part)
		}
	}
	u, err := url.Parse(strings.NewReplacer("{z}", "0", "{x}", "0", "{y}", "0").Replace(template))
	switch {
	case err != nil || u.Opaque != "" || u.User != nil || u.Host != "" && !hostPort.MatchString(u.Host) || strings.ContainsAny(u.Host, "{}"):
		return "", fmt.Errorf("is %.256q, which is not a tile URL; give for example https://tiles.example.org/{z}/{x}/{y}.png", template)
	case u.Scheme == "" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		return "", nil
	case u.Scheme == "https" && u.Host != "", u.Scheme == "http" && isLoopback(u.Hostname()):
		return u.Scheme + "://" + u.Host, nil
	}
	return "", fmt.Errorf("is %.256q; give an address with https://, or a path such as /tiles/{z}/{x}/{y}.png: browsers refuse others", template)
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// The header of a PMTiles archive: https://github.com/protomaps/PMTiles/blob/main/spec/v3/spec.md
const (
	pmHeader      = 127
	pmNone        = 1 // compressions
	pmGzip        = 2
	pmVector      = 1 // types of tiles; then PNG, JPEG and WebP
	pmAVIF        = 5
	pmMaxMetadata = 1 << 20
)

// open checks that the page can read an archive.
func (m *BaseMap) open(name string, about *aboutMap) (err error) {
	if m.archive, err = os.Open(name); err != nil {
		return fmt.Errorf("which cannot be opened: %w", errors.Unwrap(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.archive.Close())
		}
	}()
	info, err := m.archive.Stat()
	if err != nil {
		return fmt.Errorf("which cannot be read: %w", err)
	}
	if !info.Mode().IsRegular() {
		return errors.New("which is not a file; give a file of PMTiles version 3")
	}
	m.size, m.changed = info.Size(), info.ModTime()
	h := make([]byte, pmHeader)
	if _, err := m.archive.ReadAt(h, 0); err != nil || string(h[:7]) != "PMTiles" || h[7] != 3 {
		return errors.New("which is not PMTiles version 3; convert it with the command pmtiles")
	}
	switch {
	case h[99] == pmVector:
		return errors.New("which holds vector tiles; give a file of raster tiles: PNG, JPEG, WebP or AVIF")
	case h[99] < pmVector || h[99] > pmAVIF:
		return fmt.Errorf("whose tiles are of the unknown type %d; give a file of raster tiles: PNG, JPEG, WebP or AVIF", h[99])
	case h[97] != pmNone && h[97] != pmGzip:
		return fmt.Errorf("whose directories are compressed by method %d; give a file with gzip (2) or none (1)", h[97])
	case h[98] > pmNone:
		return errors.New("whose tiles are compressed inside the archive; give a file of uncompressed raster tiles")
	}
	for at := 8; at < 72; at += 16 {
		offset, length := binary.LittleEndian.Uint64(h[at:]), binary.LittleEndian.Uint64(h[at+8:])
		if offset > uint64(m.size) || length > uint64(m.size)-offset {
			return errors.New("which is shorter than its header says; copy it again")
		}
	}
	m.tag = fmt.Sprintf(`"%x-%x"`, m.size, info.ModTime().UnixNano())
	if about.Attribution == "" {
		about.Attribution = m.attribution(h)
	}
	return nil
}

var markup = regexp.MustCompile(`<[^>]*>`)

// attribution is what the archive says about its source, as text; "" if it says nothing.
func (m *BaseMap) attribution(h []byte) string {
	var from io.Reader = io.NewSectionReader(m.archive, int64(binary.LittleEndian.Uint64(h[24:])), int64(binary.LittleEndian.Uint64(h[32:]))) // checked against the size
	if h[97] == pmGzip {
		z, err := gzip.NewReader(from)
		if err != nil {
			return ""
		}
		from = z
	}
	var metadata struct{ Attribution string }
	if json.NewDecoder(io.LimitReader(from, pmMaxMetadata)).Decode(&metadata) != nil {
		return ""
	}
	return html.UnescapeString(markup.ReplaceAllString(metadata.Attribution, ""))
}

// About answers with what the page is to draw.
func (m *BaseMap) About(w http.ResponseWriter, r *http.Request) {
	about := json.RawMessage("{}")
	if m != nil {
		about = m.about
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(about) // the client is gone
}

// Archive answers with parts of the PMTiles file.
func (m *BaseMap) Archive(w http.ResponseWriter, r *http.Request) {
	if m == nil || m.archive == nil {
		http.Error(w, "no file of map tiles is configured; set --map-pmtiles", http.StatusNotFound)
		return
	}
	if err := m.intact(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/vnd.pmtiles")
	h.Set("Cache-Control", "private, max-age=86400")
	h.Set("ETag", m.tag)
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(m.archive, 0, m.size))
}

// intact returns an error if the archive was written to since the start. One that was moved,
// deleted or replaced by a rename stays readable.
func (m *BaseMap) intact() error {
	info, err := m.archive.Stat()
	if err == nil {
		_, err = m.archive.ReadAt(make([]byte, 1), 0)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the file of map tiles cannot be read: %w; check --map-pmtiles and restart the State Manager", err)
	case info.Size() != m.size || !info.ModTime().Equal(m.changed):
		return errors.New("the file of map tiles was written to after the start; restart the State Manager when it is complete")
	}
	return nil
}

// imageSources are the sites that the page may load pictures from, beside its own.
func (m *BaseMap) imageSources() string {
	if m == nil || m.origin == "" {
		return ""
	}
	return " " + m.origin
}
