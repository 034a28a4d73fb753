package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"time"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
)

// The variables by which the Google client libraries find emulators.
const (
	FirestoreHost = "FIRESTORE_EMULATOR_HOST"
	PubSubHost    = "PUBSUB_EMULATOR_HOST"
)

// EmulatorProject is the project used with emulators when none is given. Emulators
// accept any.
const EmulatorProject = "dronefleet"

// Config names what to connect to.
type Config struct {
	Project  string // may be empty when both emulators are set
	Database string // Firestore database id; empty means "(default)"
	// The emulators' addresses; empty means the real service.
	FirestoreHost, PubSubHost string
	// ReadOnly makes the Firestore client refuse to write, for programs that must not.
	ReadOnly bool
}

// FromEnvironment fills empty fields from the environment.
func (c Config) FromEnvironment() Config {
	fill := func(v *string, names ...string) {
		for _, name := range names {
			if *v == "" {
				*v = os.Getenv(name)
			}
		}
	}
	fill(&c.FirestoreHost, FirestoreHost)
	fill(&c.PubSubHost, PubSubHost)
	fill(&c.Project, "GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT")
	return c
}

// WithDefaults fills in the project and database that emulators need.
func (c Config) WithDefaults() Config {
	c.Project = cmp.Or(c.Project, EmulatorProject)
	c.Database = cmp.Or(c.Database, firestore.DefaultDatabaseID)
	return c
}

// Exports are the lines for a shell whose programs use these emulators.
func (c Config) Exports() []string {
	return []string{
		// A shell, such as Cloud Shell's, may be set up for another project, in which these
		// servers have no fleet.
		fmt.Sprintf("export DRONEFLEET_PROJECT=%s DRONEFLEET_DATABASE=%q", c.Project, c.Database),
		fmt.Sprintf("export %s=%s", FirestoreHost, c.FirestoreHost),
		fmt.Sprintf("export %s=%s", PubSubHost, c.PubSubHost),
	}
}

// Emulated reports whether everything runs on emulators.
func (c Config) Emulated() bool { return c.FirestoreHost != "" && c.PubSubHost != "" }

// Validate reports what is missing or malformed, and where to set it.
func (c Config) Validate() error {
	return errors.Join(c.CheckProject(), c.CheckDatabase())
}

// CheckProject reports a missing or malformed project id. It also rejects a single
// emulator: that would mix test messages with real documents.
func (c Config) CheckProject() error {
	switch {
	case c.Emulated():
		return nil
	case c.FirestoreHost != "" || c.PubSubHost != "":
		return fmt.Errorf("only one of %s and %s is set; set both to use emulators, or neither to use Google Cloud", FirestoreHost, PubSubHost)
	case c.Project == "":
		return fmt.Errorf("no Google Cloud project: give --project or set GOOGLE_CLOUD_PROJECT, or set %s and %s to use emulators (\"dronefleet dev\" prints both)",
			FirestoreHost, PubSubHost)
	case !projectID.MatchString(c.Project):
		return fmt.Errorf("%.80q is not a Google Cloud project id; give --project=ID as \"gcloud projects list\" shows it, lower-case letters, digits and hyphens such as my-project", c.Project)
	}
	return nil
}

// CheckDatabase reports a malformed database id. Emulators accept any.
func (c Config) CheckDatabase() error {
	if c.Emulated() || c.Database == "" || c.Database == firestore.DefaultDatabaseID || databaseID.MatchString(c.Database) {
		return nil
	}
	return fmt.Errorf("%.80q is not a Firestore database id; give --database=ID as \"gcloud firestore databases list\" shows it, (default) or 4 to 63 lower-case letters, digits and hyphens", c.Database)
}

var (
	// projectID matches project ids, old ones prefixed by a domain, and project
	// numbers, which most services accept too. New ids have at least six characters;
	// old ones may have fewer.
	// https://cloud.google.com/resource-manager/docs/creating-managing-projects
	projectID = regexp.MustCompile(`^(([a-z0-9.-]+:)?[a-z]([a-z0-9-]{0,28}[a-z0-9])?|[0-9]+)$`)
	// https://cloud.google.com/firestore/docs/reference/rest/v1/projects.databases/create
	databaseID = regexp.MustCompile(`^[a-z][a-z0-9-]{2,61}[a-z0-9]$`)
)

// Clients are the open connections.
type Clients struct {
	Firestore *firestore.Client
	PubSub    *pubsub.Client
	Meter     *meter.Meter
	Config    Config
	LockStore LockStore // where the locks are, if not in Firestore
}

// Open connects. Nothing is sent yet; see Check.
func Open(ctx context.Context, c Config, m *meter.Meter) (*Clients, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.WithDefaults()
	dial := m.DialOptions()
	if c.ReadOnly {
		dial = append(dial, refuseWrites()...)
	}
	fs, err := openFirestore(ctx, c, dial...)
	if err != nil {
		return nil, err
	}
	ps, err := openPubSub(ctx, c)
	if err != nil {
		return nil, errors.Join(err, fs.Close())
	}
	return &Clients{Firestore: fs, PubSub: ps, Meter: m, Config: c}, nil
}

func openFirestore(ctx context.Context, c Config, dial ...grpc.DialOption) (*firestore.Client, error) {
	opts, err := options(c.FirestoreHost, append(dial, firestorelock.DialOption())...)
	if err != nil {
		return nil, fmt.Errorf("address of Firestore: %w", err)
	}
	if c.FirestoreHost == "" {
		opts = append(opts, option.WithGRPCConnectionPool(firestoreConnections))
	}
	client, err := firestore.NewClientWithDatabase(ctx, c.Project, c.Database, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to Firestore: %w", err)
	}
	return client, nil
}

func openPubSub(ctx context.Context, c Config, dial ...grpc.DialOption) (*pubsub.Client, error) {
	opts, err := options(c.PubSubHost, append(dial, RenewPulls(), grpc.WithChainStreamInterceptor(onceConnected))...)
	if err != nil {
		return nil, fmt.Errorf("address of Pub/Sub: %w", err)
	}
	client, err := pubsub.NewClient(ctx, c.Project, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to Pub/Sub: %w", err)
	}
	return client, nil
}

// onceConnected opens a stream as soon as there is a connection. Without it the stream
// fails at once during an outage and the library backs off for up to a minute, so
// messages would wait that long after the service is back.
func onceConnected(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return open(ctx, desc, conn, method, append(opts, grpc.WaitForReady(true))...)
}

// firestoreConnections is the number of connections to the real Firestore. One carries
// about a hundred calls at a time, and a burst of orders must not delay telemetry.
const firestoreConnections = 4

// reconnectSoon bounds the wait before reconnecting. gRPC's default grows to two
// minutes, during which the fleet would stand still although Firestore is back.
func reconnectSoon() grpc.DialOption {
	wait := backoff.DefaultConfig
	wait.MaxDelay = 5 * time.Second
	return grpc.WithConnectParams(grpc.ConnectParams{Backoff: wait, MinConnectTimeout: connectTimeout})
}

// keepAlive detects dead connections, whose peer crashed or which a middlebox dropped,
// within 40 s; TCP alone takes about 15 minutes. The interval is that of Google's own
// Firestore clients. Emulators get no pings: the official ones reject them as abuse.
func keepAlive() grpc.DialOption {
	return grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 30 * time.Second, Timeout: 10 * time.Second})
}

// connectTimeout is how long one attempt to connect may take; gRPC's default.
const connectTimeout = 20 * time.Second

// maxMessageBytes is larger than any response. Some exceed gRPC's default of 4 MiB.
const maxMessageBytes = 64 << 20

// options makes a client talk to the emulator at host, or to the real service if host
// is empty. The connection to an emulator is made here because the libraries ignore
// dial options when they find an emulator in the environment.
func options(host string, dial ...grpc.DialOption) ([]option.ClientOption, error) {
	dial = append(dial, reconnectSoon())
	if host == "" {
		var opts []option.ClientOption
		for _, d := range append(dial, keepAlive()) {
			opts = append(opts, option.WithGRPCDialOption(d))
		}
		return opts, nil
	}
	conn, err := grpc.NewClient(host, append(dial,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(owner{}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessageBytes)),
	)...)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", host, err)
	}
	return []option.ClientOption{option.WithGRPCConn(conn)}, nil
}

// owner is the token that exempts server libraries from security rules on Firestore
// emulators.
type owner struct{}

func (owner) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer owner"}, nil
}

func (owner) RequireTransportSecurity() bool { return false }

// Close closes both connections.
func (c *Clients) Close() error { return errors.Join(c.Firestore.Close(), c.PubSub.Close()) }

// checkTimeout is how long a service may take to answer at startup.
const checkTimeout = 10 * time.Second

// dialTimeout bounds the extra connection attempt that finds out why a service does not
// answer.
const dialTimeout = time.Second

// waitingAfter is how long Check waits before it says what it is waiting for.
const waitingAfter = 2 * time.Second

// Check makes sure that both services answer; connections are lazy. If a service is
// slow, as when everything starts together, Check calls waiting once, from another
// goroutine.
func (c *Clients) Check(ctx context.Context, waiting func(text string)) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	tell := func(service, host string) *time.Timer {
		return time.AfterFunc(waitingAfter, func() {
			waiting(fmt.Sprintf("waiting for %s %s, for up to %s", service, whereabouts(host, c.Config.Project), checkTimeout))
		})
	}
	timer := tell("Firestore", c.Config.FirestoreHost)
	_, err := c.Firestore.GetAll(ctx, []*firestore.DocumentRef{c.Firestore.Doc("control/decisions")})
	timer.Stop()
	if err := explain("Firestore", c.Config.FirestoreHost, FirestoreHost, c.Config.Project, err); err != nil {
		return err
	}
	timer = tell("Pub/Sub", c.Config.PubSubHost)
	defer timer.Stop()
	// It does not matter whether the topic exists or this account may get it.
	_, err = c.PubSub.TopicAdminClient.GetTopic(ctx, &pubsubpb.GetTopicRequest{
		Topic: fmt.Sprintf("projects/%s/topics/telemetry", c.Config.Project),
	})
	if code := status.Code(err); code == codes.NotFound || code == codes.PermissionDenied {
		err = nil
	}
	return explain("Pub/Sub", c.Config.PubSubHost, PubSubHost, c.Config.Project, err)
}

// whereabouts says where a service is: at an emulator's host, or in the project.
func whereabouts(host, project string) string {
	if host != "" {
		return "at " + host
	}
	return "in project " + project
}

// explain says in one line why a service cannot be used and what to do. For an
// emulator, host is its address and variable is where the address comes from.
func explain(service, host, variable, project string, err error) error {
	where := whereabouts(host, project)
	code := status.Code(err)
	switch {
	case err == nil:
		return nil
	case code == codes.Unavailable, code == codes.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded):
		if host == "" {
			return fmt.Errorf("%s %s does not answer within %s; is it reachable? (%w)", service, where, checkTimeout, err)
		}
		// The libraries retry until the deadline and then report only the deadline.
		if conn, dialErr := net.DialTimeout("tcp", host, dialTimeout); dialErr != nil {
			err = dialErr
		} else {
			err = errors.Join(err, conn.Close())
		}
		return fmt.Errorf("%s %s does not answer within %s; is it running, and is %s right? (%w)", service, where, checkTimeout, variable, err)
	case code == codes.Unauthenticated, code == codes.PermissionDenied:
		return fmt.Errorf("%s %s refuses these credentials; see \"gcloud auth application-default login\" and the roles in deploy/ (%w)", service, where, err)
	}
	return fmt.Errorf("%s %s: %w", service, where, err)
}

// clockDocument holds the rate of a simulated clock, so that all processes of an
// emulated fleet keep the same time.
const clockDocument = "control/clock"

// ShareClock tells other processes on this Firestore that time is simulated.
func (c *Clients) ShareClock(ctx context.Context, rate simclock.Rate) error {
	_, err := c.Firestore.Doc(clockDocument).Set(ctx, map[string]any{"epoch": rate.Epoch, "speed": rate.Speed, "aheadMs": rate.Ahead.Milliseconds()})
	if err != nil {
		return fmt.Errorf("share the simulated clock: %w", err)
	}
	return nil
}

// Clock returns the clock that all processes on this Firestore share: the machine's,
// unless an emulated fleet simulates time.
func (c *Clients) Clock(ctx context.Context) (*simclock.Clock, error) {
	if c.Config.FirestoreHost == "" {
		return simclock.Real(), nil
	}
	snaps, err := c.Firestore.GetAll(ctx, []*firestore.DocumentRef{c.Firestore.Doc(clockDocument)})
	if err != nil {
		return nil, fmt.Errorf("ask Firestore for a simulated clock: %w", err)
	}
	if !snaps[0].Exists() {
		return simclock.Real(), nil
	}
	var rate struct {
		Epoch time.Time `firestore:"epoch"`
		Speed float64   `firestore:"speed"`
		Ahead int64     `firestore:"aheadMs"`
	}
	if err := snaps[0].DataTo(&rate); err != nil {
		return nil, fmt.Errorf("document %s is not a clock (delete it): %w", clockDocument, err)
	}
	if rate.Speed == 1 && rate.Ahead == 0 {
		return simclock.Real(), nil
	}
	return simclock.New(simclock.Rate{Epoch: rate.Epoch, Speed: rate.Speed, Ahead: time.Duration(rate.Ahead) * time.Millisecond})
}
