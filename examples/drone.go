//go:build ignore

// Flies a simulated drone over the drone link, as drone.py does. See docs/first-drone.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1" // generated from the folder proto
)

const speed, stay, perKm = 50 / 3.6, 3, 2.5 // metres a second, seconds at a stop, percent of a charge

type drone struct {
	id                               string
	homeLat, homeLon, lat, lon, left float64 // left of the charge, in percent
	mission                          *pb.Mission
	done, stayed                     int32
	ended                            map[string]bool // missions never to begin again
	latest                           time.Time       // expiry of the newest command
}

// take obeys a message of the gateway. The rules are in api/asyncapi.yaml.
func (d *drone) take(m *pb.GatewayMessage) {
	mission, done, c := m.GetResume().GetMission(), m.GetResume().GetCompletedStops(), m.GetCommand()
	known, expires := d.mission != nil && c.GetMission().GetId() == d.mission.GetId(), c.GetExpiresAt().AsTime()
	switch {
	case m.GetRefusal() != nil:
		fmt.Println("refused:", m.GetRefusal().GetReason(), m.GetRefusal().GetText())
	case c.GetRevoke() && known:
		d.mission = nil
		fallthrough
	case c.GetRevoke():
		d.ended[c.GetMission().GetId()] = true
	case c.GetMission().GetStatus() == "ACTIVE" && time.Now().Before(expires):
		if mission = c.GetMission(); known && expires.After(d.latest) {
			d.mission, done = nil, d.done
		}
	}
	if mission != nil && d.mission == nil && !d.ended[mission.GetId()] {
		d.mission, d.done, d.latest = mission, done, expires
		fmt.Println("flies", mission.GetId())
	}
}

// fly goes for a second towards the next stop or, without a mission, home.
func (d *drone) fly() {
	if d.mission != nil && int(d.done) >= len(d.mission.GetRoute()) { // the last report has said so
		d.ended[d.mission.GetId()], d.mission = true, nil
	}
	lat, lon, stop := d.homeLat, d.homeLon, (*pb.Waypoint)(nil)
	if d.mission != nil {
		stop = d.mission.GetRoute()[d.done]
		lat, lon = stop.GetPosition().GetLat(), stop.GetPosition().GetLon()
	}
	metres := math.Hypot(lat-d.lat, (lon-d.lon)*math.Cos(d.lat*math.Pi/180)) * 111_195
	share := min(1, speed/max(metres, 1))
	d.lat, d.lon, d.left = d.lat+(lat-d.lat)*share, d.lon+(lon-d.lon)*share, d.left-metres*share/1000*perKm
	if d.stayed++; share < 1 {
		d.stayed = 0
	}
	if stop != nil && d.stayed > stay {
		d.done, d.stayed = d.done+1, 0
		fmt.Println("completed", strings.TrimPrefix(stop.GetType().String(), "WAYPOINT_TYPE_"))
	}
}

func (d *drone) report() *pb.DroneTelemetry {
	t := &pb.DroneTelemetry{DroneId: d.id, Timestamp: timestamppb.Now(), Position: &pb.Position{Lat: &d.lat, Lon: &d.lon}, BatteryPercentage: d.left}
	if t.Status = pb.DroneStatus_DRONE_STATUS_IDLE; d.mission != nil || d.lat != d.homeLat || d.lon != d.homeLon {
		t.Status = pb.DroneStatus_DRONE_STATUS_MOVING
	}
	if d.mission != nil {
		t.CurrentMissionId, t.MissionRevision, t.CompletedStops = d.mission.GetId(), d.mission.GetRevision(), &d.done
	}
	return t
}

// session says hello and then reports every second, until the connection is lost.
func (d *drone) session(link pb.DroneLinkClient) error {
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+os.Getenv("DRONE_KEY")))
	defer cancel()
	stream, err := link.Fly(ctx)
	if err != nil {
		return err
	}
	inbox, lost := make(chan *pb.GatewayMessage, 100), make(chan error, 1)
	go func() {
		for {
			m, err := stream.Recv()
			if err != nil {
				lost <- err
				return
			}
			inbox <- m
		}
	}()
	message := &pb.DroneMessage{Message: &pb.DroneMessage_Hello{Hello: &pb.DroneHello{DroneId: d.id}}}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for sequence := uint32(1); ; sequence++ { // a report has all that earlier ones had, so none is sent again
		_ = stream.Send(message) // lost says what is wrong
		for waiting := true; waiting; {
			select {
			case err := <-lost:
				return err
			case m := <-inbox:
				d.take(m)
			case <-second.C:
				waiting = false
			}
		}
		d.fly()
		message = &pb.DroneMessage{Message: &pb.DroneMessage_Report{Report: &pb.DroneReport{Sequence: sequence, Telemetry: d.report()}}}
	}
}

func main() {
	link := flag.String("link", "localhost:8443", "`HOST:PORT` of the gateway")
	ca := flag.String("ca", "", "`file` with the authority of the gateway's certificate (default: public ones)")
	home := flag.String("home", "", "`LAT,LON` where it starts, and returns to")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "Usage: DRONE_KEY=KEY go run examples/drone.go -home LAT,LON [-link HOST:PORT] [-ca FILE] ID")
		flag.PrintDefaults()
	}
	flag.Parse()
	d := &drone{id: flag.Arg(0), left: 100, ended: map[string]bool{}}
	if _, err := fmt.Sscanf(*home, "%g,%g", &d.homeLat, &d.homeLon); err != nil || d.id == "" {
		flag.Usage()
		os.Exit(2)
	}
	d.lat, d.lon = d.homeLat, d.homeLon
	trust, err := credentials.NewTLS(nil), error(nil)
	if *ca != "" {
		trust, err = credentials.NewClientTLSFromFile(*ca, "")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for ; ; time.Sleep(2 * time.Second) {
		conn, err := grpc.NewClient(*link, grpc.WithTransportCredentials(trust))
		if err == nil {
			err = d.session(pb.NewDroneLinkClient(conn))
			conn.Close()
		}
		fmt.Println("connection lost:", err)
	}
}
