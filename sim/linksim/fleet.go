package linksim

import (
	"context"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/domain"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// Fleet is drones that report over their links. It is a fleetsim.Publisher: what is published
// with a drone's id as ordering key goes over its link, everything else to Others.
type Fleet struct {
	Others fleetsim.Publisher
	Drones map[domain.DroneID]*Drone
}

// Publish implements fleetsim.Publisher.
func (f *Fleet) Publish(ctx context.Context, topic string, data []byte, attrs map[string]string, orderingKey string) fleetsim.Result {
	drone := f.Drones[domain.DroneID(orderingKey)]
	var t pb.DroneTelemetry
	if drone == nil || proto.Unmarshal(data, &t) != nil {
		return f.Others.Publish(ctx, topic, data, attrs, orderingKey)
	}
	return drone.Report(&t)
}

// Run connects every drone until ctx ends.
func (f *Fleet) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, d := range f.Drones {
		running.Go(func() { d.Run(ctx) })
	}
	running.Wait()
}
