package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed dist
var dist embed.FS

// policy lets the page use what comes from its own origin and nothing else, apart from
// pictures of the site whose map tiles it shows. Other sites cannot frame it.
func policy(m *BaseMap) string {
	return "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:" + m.imageSources() +
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// Files are the console's files by the path that each is served at.
var Files = map[string]string{
	"/{$}":                 "index.html",
	"/console/console.js":  "main.js",
	"/console/console.css": "console.css",
	"/console/tiles.js":    "tiles.js", // a worker
	"/console/world.json":  "world.json.gz",
}

// Handler answers with one of Files, for a page that shows m below the fleet. Browsers
// keep the file and ask whether it is current.
func Handler(file string, m *BaseMap) http.Handler {
	data, err := dist.ReadFile("dist/" + file)
	if err != nil {
		panic(err) // Files lists what is embedded
	}
	sum := sha256.Sum256(data)
	allowed := policy(m)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		name, packed := strings.CutSuffix(file, ".gz")
		if packed {
			h.Set("Content-Encoding", "gzip")
		}
		h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		h.Set("Content-Security-Policy", allowed)
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}
