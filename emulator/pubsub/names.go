package pubsubemu

import (
	"crypto/rand"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Resource collections of google.pubsub.v1.
const (
	topics        = "topics"
	subscriptions = "subscriptions"
	snapshots     = "snapshots"
)

// deletedTopic is the topic that subscriptions and snapshots show once theirs is
// deleted.
const deletedTopic = "_deleted-topic_"

// checkName verifies projects/{project}/{collection}/{id} with the naming
// rules of https://cloud.google.com/pubsub/docs/pubsub-basics#resource_names.
func checkName(field, name, collection string) error {
	project, id, ok := splitName(name, collection)
	if !ok || project == "" {
		return status.Errorf(codes.InvalidArgument,
			"%s: %q is not a resource name; use projects/{project}/%s/{id}", field, name, collection)
	}
	if !validID(id) {
		return status.Errorf(codes.InvalidArgument,
			"%s: %q is not a valid id; use 3 to 255 characters, first a letter, then letters, digits or -_.~+%%, and do not start with goog",
			field, id)
	}
	return nil
}

func checkProject(field, name string) error {
	project, ok := strings.CutPrefix(name, "projects/")
	if !ok || project == "" || strings.Contains(project, "/") {
		return status.Errorf(codes.InvalidArgument, "%s: %q is not a project; use projects/{project}", field, name)
	}
	return nil
}

func splitName(name, collection string) (project, id string, ok bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 4 || parts[0] != "projects" || parts[2] != collection {
		return "", "", false
	}
	return parts[1], parts[3], true
}

func projectOf(name string) string {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[1]
}

// assignedName is a new name for a resource that is created without one, in the
// project of the resource that it belongs to.
func assignedName(of, collection string) string {
	return "projects/" + projectOf(of) + "/" + collection + "/assigned-" + rand.Text()
}

func idOf(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

func validID(id string) bool {
	if len(id) < 3 || len(id) > 255 || strings.HasPrefix(id, "goog") {
		return false
	}
	for i := range len(id) {
		c := id[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if letter {
			continue
		}
		if i == 0 || !('0' <= c && c <= '9') && strings.IndexByte("-_.~+%", c) < 0 {
			return false
		}
	}
	return true
}

func notFound(name string) error {
	return status.Errorf(codes.NotFound, "Resource not found (resource=%s).", idOf(name))
}

func alreadyExists(name string) error {
	return status.Errorf(codes.AlreadyExists, "Resource already exists in the project (resource=%s).", idOf(name))
}
