// Package console is the page for dispatchers: a map and tables of the fleet, kept
// current by the stream of the API. Its sources are in web; dist holds what go generate
// makes of them. It must not import other packages of this module: the page knows the
// fleet only from the API.
package console

// These commands make everything in dist, so that the gate can compare it.
//
//go:generate go tool -modfile=../../tools/go.mod esbuild web/main.tsx web/console.css web/index.html web/world.json.gz --bundle --minify --target=es2022 --charset=utf8 "--banner:js=/* Contains Preact 10.29.8, copyright Jason Miller, under the MIT licence. */" --log-level=warning --entry-names=[name] --loader:.html=copy --loader:.gz=copy --outdir=dist
//go:generate go tool -modfile=../../tools/go.mod esbuild web/tiles.ts --bundle --minify --target=es2022 --charset=utf8 --log-level=warning --outdir=dist
