package capacity

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/deploy"
)

// shardField begins the indexes of a sharded fleet.
const shardField = "shard"

// spreading lists the fields that spread an index. An index that begins with one of them has a range for
// each area, person or entity, and these ranges do not get hotter as the fleet grows.
var spreading = []string{
	"by", "changedBy", "cycleId", "depotId", "droneId", "dueArea", "homeDepotId", "missionId", "orderId", "planningDepotId", "requesterId",
}

// index is a composite index without the shard that it may begin with.
type index struct {
	collection string
	fields     []string
	shards     float64
}

// name is that of the index, and of a single field's.
func (x index) name() string { return x.collection + "." + strings.Join(x.fields, ",") }

func (x index) spreads() bool { return slices.Contains(spreading, x.fields[0]) }

// compositeIndexes are those of an index file.
func compositeIndexes(file []byte) (list []index) {
	var content struct {
		Indexes []struct {
			CollectionGroup string
			Fields          []struct{ FieldPath string }
		}
	}
	if err := json.Unmarshal(file, &content); err != nil {
		panic(err) // a test of deploy reads it as well
	}
	for _, i := range content.Indexes {
		x := index{collection: i.CollectionGroup, shards: 1}
		for _, f := range i.Fields {
			x.fields = append(x.fields, f.FieldPath)
		}
		if x.fields[0] == shardField {
			x.fields, x.shards = x.fields[1:], firestoretx.Shards
		}
		list = append(list, x)
	}
	return list
}

// entryCounter counts the writes of each range of the composite indexes: the entries that have the same values
// before a time, which rises. It knows the documents that it saw written.
type entryCounter struct {
	indexes map[string][]index             // by collection
	known   map[string]map[string]string   // of each document, the fields that are indexed
	fields  map[string]map[string]struct{} // by collection
}

func newEntryCounter() *entryCounter {
	c := &entryCounter{indexes: map[string][]index{}, known: map[string]map[string]string{}, fields: map[string]map[string]struct{}{}}
	for _, x := range compositeIndexes(deploy.FirestoreIndexes) {
		if x.spreads() || len(x.fields) == 1 {
			continue
		}
		c.indexes[x.collection] = append(c.indexes[x.collection], x)
		for _, f := range x.fields {
			if c.fields[x.collection] == nil {
				c.fields[x.collection] = map[string]struct{}{}
			}
			c.fields[x.collection][f] = struct{}{}
		}
	}
	return c
}

// wrote counts a write in each range where it changes an entry.
func (c *entryCounter) wrote(w *firestorepb.Write, collection string, times map[string]float64) {
	fields := c.fields[collection]
	if fields == nil || w.GetUpdate() == nil {
		return
	}
	name := w.GetUpdate().GetName()
	before := c.known[name]
	after := map[string]string{}
	if w.GetUpdateMask() != nil {
		maps.Copy(after, before)
		for _, f := range w.GetUpdateMask().GetFieldPaths() {
			delete(after, f)
		}
	}
	for f, v := range w.GetUpdate().GetFields() {
		if _, indexed := fields[f]; indexed {
			after[f] = valueText(v)
		}
	}
	c.known[name] = after
	for _, x := range c.indexes[collection] {
		was, wasAt := x.entry(before)
		is, isAt := x.entry(after)
		if was == is && wasAt == isAt {
			continue
		}
		if was != "" {
			times[was]++
		}
		if is != "" && is != was {
			times[is]++
		}
	}
}

// entry is the range of a document's entry, and its time; the range is empty if the document has none.
func (x index) entry(doc map[string]string) (within, at string) {
	last := x.fields[len(x.fields)-1]
	at, is := strings.CutPrefix(doc[last], timePrefix)
	if !is {
		return "", ""
	}
	var values []string
	for _, f := range x.fields[:len(x.fields)-1] {
		v, has := doc[f]
		if !has {
			return "", ""
		}
		values = append(values, f+"="+v)
	}
	return rangeKey(x, values), at
}

// rangeKey names a range among the times of a model: that of its index, and the values before the time.
func rangeKey(x index, values []string) string { return x.name() + "/" + strings.Join(values, ",") }

const timePrefix = "at "

// valueText is a value to compare with others of its field.
func valueText(v *firestorepb.Value) string {
	switch v := v.GetValueType().(type) {
	case *firestorepb.Value_StringValue:
		return v.StringValue
	case *firestorepb.Value_BooleanValue:
		return strconv.FormatBool(v.BooleanValue)
	case *firestorepb.Value_TimestampValue:
		return timePrefix + v.TimestampValue.AsTime().String()
	}
	return v.String()
}
