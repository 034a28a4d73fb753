package faultsim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	fsfault "github.com/dronefleet/dronefleet/emulator/firestore/fault"
	psfault "github.com/dronefleet/dronefleet/emulator/pubsub/fault"
	"github.com/dronefleet/dronefleet/internal/connect"
)

// plannedFault is one fault of the plan. Times are simulated.
type plannedFault struct {
	at, lasts time.Duration
	what      string
	target    int // selects the process, drone or message, modulo their number

	rule   *fsfault.Rule // at Firestore
	pubsub *psfault.Plan // at Pub/Sub
}

func (s plannedFault) String() string {
	return fmt.Sprintf("%6.1fs for %5.1fs %s %d", s.at.Seconds(), s.lasts.Seconds(), s.what, s.target)
}

// The kinds of faults.
const (
	faultFirestoreOutage  = "firestore outage"
	faultPubSubOutage     = "pubsub outage"
	faultKillManager      = "kill manager"
	faultKillOptimizer    = "kill optimizer"
	faultFreezeManager    = "freeze manager"
	faultFreezeOptimizer  = "freeze optimizer"
	faultRestartManager   = "restart manager"
	faultDroneSilent      = "drone silent"
	faultDroneDeaf        = "drone deaf"
	faultDroneBroken      = "drone broken"
	faultDroneBattery     = "drone battery"
	faultGround           = "operator grounds a drone"
	faultRecall           = "operator recalls a mission"
	faultMoveBorder       = "operator moves a border of areas"
	faultPin              = "operator pins an order or forbids a drone"
	faultPoison           = "poison"
	faultForgedDecisions  = "forged decisions"
	faultForgedReports    = "forged reports"
	faultPubSubWeather    = "pubsub weather"
	faultLateReports      = "late reports"
	faultUnavailable      = "firestore unavailable"
	faultAnswerLost       = "firestore commit answer lost"
	faultAbortStorm       = "firestore abort storm"
	faultSlow             = "firestore slow"
	faultCut              = "firestore connections cut"
	faultSlowLocks        = "firestore commits hold locks"
	faultExpire           = "firestore transactions expire"
	faultDeadlineExceeded = "firestore deadline exceeded"
)

// weights is how often each kind is drawn.
var weights = []struct {
	what   string
	weight int
}{
	{faultFirestoreOutage, 1}, {faultPubSubOutage, 1},
	{faultKillManager, 8}, {faultKillOptimizer, 4}, {faultRestartManager, 2},
	{faultFreezeManager, 3}, {faultFreezeOptimizer, 2},
	{faultDroneSilent, 2}, {faultDroneDeaf, 3}, {faultDroneBroken, 2}, {faultDroneBattery, 1},
	{faultGround, 2}, {faultRecall, 4},
	{faultPoison, 6}, {faultForgedDecisions, 3}, {faultForgedReports, 4}, {faultPubSubWeather, 4}, {faultLateReports, 3},
	{faultUnavailable, 3}, {faultAnswerLost, 4}, {faultAbortStorm, 3}, {faultSlow, 2},
	{faultCut, 3}, {faultSlowLocks, 2}, {faultExpire, 2}, {faultDeadlineExceeded, 2},
}

// telemetrySubscription is the full name of the State Managers' subscription to
// reports.
var telemetrySubscription = "projects/" + connect.EmulatorProject + "/subscriptions/" + pubsubio.Subscription(pubsubio.TopicTelemetry)

// shortestFreeze is longer than the leases of messages and locks: a lock's lasts at
// least a second of machine time.
const shortestFreeze = 45 * time.Second

// meanPause is the mean simulated time between two faults.
const meanPause = 6 * time.Second

// newPlan draws the faults of a run of length simulated time.
func newPlan(seed uint64, length time.Duration) []plannedFault {
	random := rand.New(rand.NewPCG(seed, 0x706c616e))
	between := func(low, high time.Duration) time.Duration {
		return low + time.Duration(random.Int64N(int64(high-low)))
	}
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	draw := func() string {
		n := random.IntN(total)
		for _, w := range weights {
			if n -= w.weight; n < 0 {
				return w.what
			}
		}
		panic("faultsim: weights do not add up")
	}
	newFault := func(at time.Duration, what string) plannedFault {
		s := plannedFault{at: at, what: what, target: random.IntN(1 << 20), lasts: between(3*time.Second, 20*time.Second)}
		chance := 0.1 + 0.6*random.Float64()
		commit := func(stage fsfault.Stage, do fsfault.Action) *fsfault.Rule {
			return &fsfault.Rule{RPC: "Commit", Owner: productOwner, Probability: chance, At: stage, Do: do}
		}
		switch what {
		case faultFirestoreOutage:
			s.lasts = between(time.Minute, 2*time.Minute)
			s.rule = &fsfault.Rule{Owner: productOwner, Do: fsfault.Fail(codes.Unavailable)}
		case faultFreezeManager, faultFreezeOptimizer:
			s.lasts = between(shortestFreeze, 2*shortestFreeze)
		case faultPubSubOutage:
			s.lasts = between(20*time.Second, time.Minute)
		case faultUnavailable:
			s.rule = &fsfault.Rule{Owner: productOwner, Probability: chance, Do: fsfault.Fail(codes.Unavailable)}
		case faultDeadlineExceeded:
			s.rule = commit(fsfault.After, fsfault.Fail(codes.DeadlineExceeded))
		case faultAnswerLost:
			s.rule = commit(fsfault.After, fsfault.Fail(codes.Unavailable))
		case faultAbortStorm:
			s.rule = commit(fsfault.Before, fsfault.Abort())
		case faultSlow:
			s.rule = &fsfault.Rule{Owner: productOwner, Probability: chance, Do: fsfault.Delay(between(200*time.Millisecond, 3*time.Second))}
		case faultCut:
			s.rule = &fsfault.Rule{Owner: productOwner, Probability: chance / 10, At: fsfault.Stage(2 * random.IntN(2)), Do: fsfault.Drop()}
		case faultSlowLocks:
			s.rule = commit(fsfault.Locked, fsfault.Delay(between(200*time.Millisecond, 2*time.Second)))
		case faultExpire:
			s.rule = commit(fsfault.Before, fsfault.ExpireTransaction())
		case faultPubSubWeather:
			s.pubsub = &psfault.Plan{
				Duplicate: random.Float64() / 3, Reorder: random.Float64() / 2, Drop: random.Float64() / 10,
				Delay: random.Float64() / 3, DelayFor: between(time.Second, 8*time.Second),
				LoseAnswer: random.Float64() / 4, BreakStream: random.Float64() / 10,
			}
		case faultLateReports:
			// Up to half a minute of simulated time: later than the next reports,
			// and at times later than a parked drone's mission goes on (F-TEL-11).
			s.pubsub = &psfault.Plan{Resources: []string{telemetrySubscription}, Reorder: 1, Delay: 0.1 + random.Float64()/3, DelayFor: between(time.Second, 12*time.Second)}
		}
		return s
	}
	var plan []plannedFault
	for at := meanPause / 2; at < length; at += time.Duration(random.ExpFloat64() * float64(meanPause)) {
		plan = append(plan, newFault(at, draw()))
	}
	// Every run has these.
	for _, what := range []string{faultFirestoreOutage, faultPubSubWeather, faultLateReports, faultAnswerLost, faultPoison, faultForgedDecisions, faultForgedReports, faultGround, faultRecall, faultKillManager, faultKillOptimizer, faultPin} {
		plan = append(plan, newFault(time.Duration(random.Int64N(int64(length*2/3))), what))
	}
	slices.SortStableFunc(plan, func(a, b plannedFault) int { return cmp.Compare(a.at, b.at) })
	return plan
}
