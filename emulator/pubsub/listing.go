package pubsubemu

import (
	"slices"
	"strings"
)

const defaultPage = 100

// namesIn lists the keys that belong to projects/{project}.
func namesIn[T any](resources map[string]T, project string) []string {
	var names []string
	for name := range resources {
		if strings.HasPrefix(name, project+"/") {
			names = append(names, name)
		}
	}
	return names
}

// page sorts names and returns one page. A page token is the last name of the
// previous page, so pages stay right when resources are created or deleted in
// between.
func page(names []string, size int32, token string) (cut []string, next string, err error) {
	if size < 0 {
		return nil, "", invalid("page_size: %d; use 0 or more", size)
	}
	if size == 0 {
		size = defaultPage
	}
	slices.Sort(names)
	if token != "" {
		at, found := slices.BinarySearch(names, token)
		if found {
			at++
		}
		names = names[at:]
	}
	if len(names) <= int(size) {
		return names, "", nil
	}
	return names[:size], names[size-1], nil
}
