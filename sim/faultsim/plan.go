package faultsim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	fsfault "github.com/dronefleet/dronefleet/emulator/firestore/fault"
	psfault "github.com/dronefleet/dronefleet/emulator/pubsub/fault"
)

// strike is one fault of the plan. Times are of the simulated clock.
type strike struct {
	at, lasts time.Duration
	what      string
	target    int // of many: which one

	rule   *fsfault.Rule // at Firestore
	pubsub *psfault.Plan // at Pub/Sub
}

func (s strike) String() string {
	return fmt.Sprintf("%6.1fs for %5.1fs %s %d", s.at.Seconds(), s.lasts.Seconds(), s.what, s.target)
}

// What a plan holds beside rules for the servers.
const (
	strikeFirestoreOutage  = "firestore outage"
	strikePubSubOutage     = "pubsub outage"
	strikeKillManager      = "kill manager"
	strikeKillOptimizer    = "kill optimizer"
	strikeRestartManager   = "restart manager"
	strikeDroneSilent      = "drone silent"
	strikeDroneDeaf        = "drone deaf"
	strikeDroneBroken      = "drone broken"
	strikeDroneBattery     = "drone battery"
	strikePoison           = "poison"
	strikePubSubWeather    = "pubsub weather"
	strikeUnavailable      = "firestore unavailable"
	strikeAnswerLost       = "firestore commit answer lost"
	strikeAbortStorm       = "firestore abort storm"
	strikeSlow             = "firestore slow"
	strikeCut              = "firestore connections cut"
	strikeSlowLocks        = "firestore commits hold locks"
	strikeExpire           = "firestore transactions expire"
	strikeDeadlineExceeded = "firestore deadline exceeded"
)

// weights say how often each kind is drawn.
var weights = []struct {
	what   string
	weight int
}{
	{strikeFirestoreOutage, 1}, {strikePubSubOutage, 1},
	{strikeKillManager, 8}, {strikeKillOptimizer, 4}, {strikeRestartManager, 2},
	{strikeDroneSilent, 2}, {strikeDroneDeaf, 3}, {strikeDroneBroken, 2}, {strikeDroneBattery, 1},
	{strikePoison, 6}, {strikePubSubWeather, 4},
	{strikeUnavailable, 3}, {strikeAnswerLost, 4}, {strikeAbortStorm, 3}, {strikeSlow, 2},
	{strikeCut, 3}, {strikeSlowLocks, 2}, {strikeExpire, 2}, {strikeDeadlineExceeded, 2},
}

// meanPause is the simulated time between two strikes.
const meanPause = 6 * time.Second

// newPlan draws the strikes of a run of so much simulated time.
func newPlan(seed uint64, length time.Duration) []strike {
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
		panic("underfire: weights do not add up")
	}
	newStrike := func(at time.Duration, what string) strike {
		s := strike{at: at, what: what, target: random.IntN(1 << 20), lasts: between(3*time.Second, 20*time.Second)}
		chance := 0.1 + 0.6*random.Float64()
		commit := func(stage fsfault.Stage, do fsfault.Action) *fsfault.Rule {
			return &fsfault.Rule{RPC: "Commit", Owner: productOwner, Probability: chance, At: stage, Do: do}
		}
		switch what {
		case strikeFirestoreOutage:
			s.lasts = between(time.Minute, 2*time.Minute)
			s.rule = &fsfault.Rule{Owner: productOwner, Do: fsfault.Fail(codes.Unavailable)}
		case strikePubSubOutage:
			s.lasts = between(20*time.Second, time.Minute)
		case strikeUnavailable:
			s.rule = &fsfault.Rule{Owner: productOwner, Probability: chance, Do: fsfault.Fail(codes.Unavailable)}
		case strikeDeadlineExceeded:
			s.rule = commit(fsfault.After, fsfault.Fail(codes.DeadlineExceeded))
		case strikeAnswerLost:
			s.rule = commit(fsfault.After, fsfault.Fail(codes.Unavailable))
		case strikeAbortStorm:
			s.rule = commit(fsfault.Before, fsfault.Abort())
		case strikeSlow:
			s.rule = &fsfault.Rule{Owner: productOwner, Probability: chance, Do: fsfault.Delay(between(200*time.Millisecond, 3*time.Second))}
		case strikeCut:
			s.rule = &fsfault.Rule{Owner: productOwner, Probability: chance / 10, At: fsfault.Stage(2 * random.IntN(2)), Do: fsfault.Drop()}
		case strikeSlowLocks:
			s.rule = commit(fsfault.Locked, fsfault.Delay(between(200*time.Millisecond, 2*time.Second)))
		case strikeExpire:
			s.rule = commit(fsfault.Before, fsfault.ExpireTransaction())
		case strikePubSubWeather:
			s.pubsub = &psfault.Plan{
				Duplicate: random.Float64() / 3, Reorder: random.Float64() / 2, Drop: random.Float64() / 10,
				Delay: random.Float64() / 3, DelayFor: between(time.Second, 8*time.Second),
				LoseAnswer: random.Float64() / 4, BreakStream: random.Float64() / 10,
			}
		}
		return s
	}
	var plan []strike
	for at := meanPause / 2; at < length; at += time.Duration(random.ExpFloat64() * float64(meanPause)) {
		plan = append(plan, newStrike(at, draw()))
	}
	// What every run shall meet.
	for _, what := range []string{strikeFirestoreOutage, strikePubSubWeather, strikeAnswerLost, strikePoison, strikeKillManager, strikeKillOptimizer} {
		plan = append(plan, newStrike(time.Duration(random.Int64N(int64(length*2/3))), what))
	}
	slices.SortStableFunc(plan, func(a, b strike) int { return cmp.Compare(a.at, b.at) })
	return plan
}
