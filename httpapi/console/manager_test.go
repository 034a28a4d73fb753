package console_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/sim/devrun"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/identitytest"
)

// managerAddr makes the test's program a State Manager that listens there.
const managerAddr = "CONSOLE_TEST_MANAGER"

func TestMain(m *testing.M) {
	if addr := os.Getenv(managerAddr); addr != "" {
		if err := manage(addr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	browser.end()
	os.Exit(code)
}

func manage(addr string) error {
	clients, err := connect.Open(context.Background(), connect.Config{}.FromEnvironment(), meter.New())
	if err != nil {
		return err
	}
	return serve(context.Background(), clients, addr, httpapi.Site{}, func(string) {})
}

// serve runs a State Manager until ctx ends.
func serve(ctx context.Context, clients *connect.Clients, addr string, site httpapi.Site, at func(url string)) error {
	listener, err := httpapi.Listen(addr)
	if err != nil {
		return err
	}
	m, err := manager.New(clients, simclock.Real(), manager.Config{PlanUnregistered: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	at(listener.URL())
	return httpapi.ServeManager(ctx, m, site, listener)
}

// F-UI-01: the page says within 5 s that a State Manager is killed or hangs, and goes on
// by itself.
func TestConsole_SaysWhenItHearsNothing(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	f := fleet(t, devrun.Config{Drones: drones, OrdersPerMinute: 6, Speed: 1})
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), managerAddr+"="+addr, "DRONEFLEET_PROJECT="+f.hosts.Project,
			connect.FirestoreHost+"="+f.hosts.FirestoreHost, connect.PubSubHost+"="+f.hosts.PubSubHost)
		cmd.Stderr = t.Output()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		for {
			resp, err := http.Get("http://" + addr + "/healthz")
			if err == nil {
				resp.Body.Close()
				return cmd
			}
			if t.Context().Err() != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	live := fmt.Sprintf(`document.documentElement.dataset.state === "live" && fleet.map.drawn === %d`, drones)
	server := start()
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate("http://"+addr))
	await(t, ctx, live)
	js[any](t, ctx, `window.same = true, new MutationObserver(() => {
		if (document.documentElement.dataset.state === "lost") window.said ??= performance.now() - fleet.stream.heard;
	}).observe(document.documentElement, {attributes: true}), 1`)

	// Nothing is older than the page says: its age is that of the last word.
	loses := func(how string, sig syscall.Signal) {
		js[any](t, ctx, `window.said = undefined, 1`)
		if err := server.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		heard := js[float64](t, ctx, `performance.now()`)
		await(t, ctx, `window.said !== undefined && document.getElementById("state").textContent.startsWith("Connection lost")`)
		took := js[float64](t, ctx, `window.said`)
		t.Logf("%s: the page says so %.1f s after the last word", how, took/1000)
		if *bars && took > 5000 {
			t.Errorf("%s: the page says so %.1f s after the last word, want within 5 s", how, took/1000)
		}
		await(t, ctx, fmt.Sprintf(`parseInt(document.getElementById("age").textContent.slice(6)) >= Math.floor((performance.now() - %f) / 1000) - 1`, heard))
	}
	loses("frozen", syscall.SIGSTOP)
	if err := server.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	await(t, ctx, live)
	loses("killed", syscall.SIGKILL)
	_ = server.Wait()
	server = start()
	await(t, ctx, "window.same && "+live)
	await(t, ctx, `[...fleet.store.marks.values()].some((m) => fleet.store.now() - m.at < 3000)`)
}

// signedIn serves a State Manager's API as a person sees it who is signed in.
func signedIn(t *testing.T, api, token string) string {
	t.Helper()
	target, err := neturl.Parse(api)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}})
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server.URL
}

// tooHeavy ingests an order that no drone can carry, so that no cycle plans it.
func tooHeavy(t *testing.T, clients *connect.Clients, id domain.OrderID) {
	t.Helper()
	req := domain.OrderRequest{ID: id, CreatedAt: time.Now(), OrderContent: domain.OrderContent{
		ProductType: "BLOOD", Priority: domain.PriorityHigh, Delivery: domain.Position{Lat: 48.85, Lon: 2.36}, WeightKg: 40,
	}}
	if err := firestoretx.New(clients.Firestore, firestoretx.Config{PlanUnregistered: true, Now: time.Now}).IngestOrder(t.Context(), req, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// handOver has a cycle of the fleet hand an order over that no drone can carry.
func handOver(t *testing.T, clients *connect.Clients) string {
	t.Helper()
	const id, far, paris = "O-HEAVY", "DEPOT-FAR", "DEPOT-PARIS-01"
	tooHeavy(t, clients, id)
	store := firestoretx.New(clients.Firestore, firestoretx.Config{PlanUnregistered: true, Now: time.Now})
	if err := store.Setup(t.Context(), []domain.Depot{{ID: far, Name: "Far", Position: domain.Position{Lat: 49.4, Lon: 3}}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	emutest.Eventually(t, "the hand-over of "+id, func() error {
		fences, err := store.Fences(t.Context())
		if err != nil {
			return err
		}
		refusals, err := store.HandOver(t.Context(), domain.HandOvers{CycleID: "C", DepotID: paris, Fence: fences[paris], List: []domain.HandOver{
			{OrderID: id, From: paris, To: far, Reason: "no drone carries 40 kg; drone HEAVY of DEPOT-FAR can serve it"},
		}})
		return errors.Join(append(refusals, err)...)
	})
	cycle := domain.Cycle{ID: "C", DepotID: paris, Outcome: domain.CyclePublished, HandedOver: 1, StartedAt: time.Now(), EndedAt: time.Now(), SnapshotTime: time.Now()}
	cycle.Unserved = []domain.UnservedOrder{{OrderID: id, Reason: "no_drone_free: handed over to depot " + far}}
	if err := store.RecordCycle(t.Context(), cycle); err != nil {
		t.Fatal(err)
	}
	return id
}

// F-UI-01: an operator commands the fleet from the page and reads its story; a viewer sees
// no command.
func TestConsole_Commands(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	f := fleet(t, devrun.Config{Drones: drones, OrdersPerMinute: 30, Speed: 1})
	key := identitytest.EC(t, "k1")
	issuer := identitytest.Start(t, key)
	var viewer, oper identity.Grant
	for grant, text := range map[*identity.Grant]string{&viewer: "groups=watch", &oper: "email=ann@example.org"} {
		if err := grant.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	verifier, err := identity.New(identity.Config{
		Issuer: issuer.URL, Audiences: []string{identitytest.Audience}, Viewers: []identity.Grant{viewer}, Operators: []identity.Grant{oper},
		Leeway: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	managing, stop := context.WithCancel(context.Background())
	at, ended := make(chan string, 1), make(chan error, 1)
	clients := emutest.Connect(t, f.hosts)
	go func() {
		ended <- serve(managing, clients, "127.0.0.1:0", httpapi.Site{Access: httpapi.Access{Verifier: verifier}}, func(url string) { at <- url })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	api := <-at
	ann := signedIn(t, api, issuer.Token(t, key, time.Now(), identitytest.Claims{"email": "ann@example.org", "email_verified": true}))
	bob := signedIn(t, api, issuer.Token(t, key, time.Now(), identitytest.Claims{"sub": "bob", "groups": []string{"watch"}}))
	press := func(name string) {
		t.Helper()
		find := fmt.Sprintf(`[...document.querySelectorAll(".actions button")].find((b) => b.textContent === %q)`, name)
		await(t, ctx, `!!`+find)
		js[any](t, ctx, find+`.click(), 1`)
	}
	// fill confirms the open dialog, as the keyboard does.
	fill := func(reason, choice string) {
		t.Helper()
		if choice == "" {
			choice = `""`
		}
		await(t, ctx, `!!document.querySelector("dialog[open]")`)
		js[any](t, ctx, fmt.Sprintf(`(() => {
			const [first] = document.querySelectorAll("dialog select, dialog input[type=datetime-local], dialog input[list]"), reason = document.querySelector("dialog input[required]:not([type])");
			if (first) { first.value = %s; first.dispatchEvent(new Event("change", {bubbles: true})); }
			reason.value = %q; return 1 })()`, choice, reason))
		await(t, ctx, `[...document.querySelectorAll("dialog .preview")].every((p) => p.dataset.of === document.querySelector("dialog input[list]").value)`)
		js[any](t, ctx, `document.querySelector("dialog form").requestSubmit(), 1`)
	}
	selects := func(kind, id string) {
		t.Helper()
		js[any](t, ctx, fmt.Sprintf(`fleet.select({kind: %q, id: %q}), 1`, kind, id))
		await(t, ctx, fmt.Sprintf(`document.getElementById("selected")?.dataset.id === %q`, id))
	}
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(ann))
	await(t, ctx, fmt.Sprintf(`fleet.map.drawn === %d && document.getElementById("who").textContent === "ann@example.org"`, drones))

	selects("drone", js[string](t, ctx, `[...fleet.store.all.drone.keys()][0]`))
	press("Ground")
	accessible(t, ctx, "Ground")
	shoot(t, ctx, "Command")
	fill("rotor <b>noise</b>", "")
	await(t, ctx, `!document.querySelector("dialog") && fleet.store.all.drone.get(fleet.model.selected.id).groundedReason === "rotor <b>noise</b> (by ann@example.org)"`)
	press("Story")
	await(t, ctx, `document.getElementById("panel").innerText.includes("ann@example.org grounded " + document.querySelector("#selected h2").textContent.slice("drone ".length) + ": rotor <b>noise</b>")`)
	shoot(t, ctx, "Drone's story")
	// The past is chosen to the second: the next one lies between the two commands.
	grounded := time.Now().Truncate(time.Second).Add(time.Second)
	time.Sleep(time.Until(grounded.Add(50 * time.Millisecond)))
	press("Release")
	fill("rotor replaced", "")
	await(t, ctx, `!fleet.store.all.drone.get(fleet.model.selected.id).grounded`)

	await(t, ctx, `[...fleet.store.all.order.values()].some((o) => o.status === "PENDING" || o.status === "ASSIGNED")`)
	urgent := js[string](t, ctx, `[...fleet.store.all.order.values()].find((o) => o.status === "PENDING" || o.status === "ASSIGNED").id`)
	selects("order", urgent)
	press("Priority")
	accessible(t, ctx, "Priority")
	fill("massive bleeding", `"CRITICAL"`)
	await(t, ctx, `fleet.store.all.order.get(fleet.model.selected.id).priority === "CRITICAL"`)
	// What the server refuses stands in the dialog.
	press("Deadline")
	accessible(t, ctx, "Deadline")
	fill("x", `"2020-01-01T00:00:00"`)
	await(t, ctx, `document.querySelector("dialog .wrong")?.textContent.length > 20`)
	t.Logf("refused: %s", js[string](t, ctx, `document.querySelector("dialog .wrong").textContent`))
	fill("surgery begins", `(() => { const at = new Date(Date.now() + 5e3); return new Date(at - at.getTimezoneOffset() * 60e3).toISOString().slice(0, 19) })()`)
	await(t, ctx, `!document.querySelector("dialog")`)
	await(t, ctx, `document.querySelector("#worst.bad") !== null && document.title.startsWith("(")`)
	press("Acknowledge")
	accessible(t, ctx, "Acknowledge")
	fill("surgeon told", "")
	await(t, ctx, `[...fleet.store.all.alert.values()].some((a) => a.acknowledged?.by === "ann@example.org" && a.acknowledged.reason === "surgeon told")`)
	// An order that no cycle plans meanwhile is for some drones alone.
	pin := js[string](t, ctx, `[...fleet.store.all.drone.keys()].sort()[0]`)
	tooHeavy(t, clients, "O-HELD")
	await(t, ctx, `fleet.store.all.order.has("O-HELD")`)
	selects("order", "O-HELD")
	for _, step := range []struct{ verb, choice, now string }{
		{"Hold", "", `held`},
		{"Pin", fmt.Sprintf("%q", pin), fmt.Sprintf(`pinnedDroneId === %q`, pin)},
		{"Unpin", "", `pinnedDroneId === undefined`},
		{"Forbid", fmt.Sprintf("%q", pin), fmt.Sprintf(`forbiddenDroneIds?.join() === %q`, pin)},
		{"Allow", fmt.Sprintf("%q", pin), `forbiddenDroneIds === undefined`},
	} {
		press(step.verb)
		if step.verb == "Pin" {
			// Who could take it, and what that would change, stand there before it is confirmed. F-UI-07
			await(t, ctx, `document.querySelectorAll(".candidates tbody tr").length === 20`)
			js[any](t, ctx, `document.querySelectorAll(".candidates input[type=radio]")[1].click(), 1`)
			await(t, ctx, `document.querySelector(".preview").textContent.startsWith("Now: it waits, ")`)
			is(t, ctx, "the preview is of the chosen drone", `document.querySelector("dialog input[list]").value === document.querySelectorAll(".candidates tbody tr")[1].querySelector("label").title &&
				/Pinned: it waits.*No other order would change/.test(document.querySelector(".preview").textContent) && !document.querySelector("dialog [type=submit]").disabled`)
		}
		accessible(t, ctx, step.verb)
		shoot(t, ctx, step.verb)
		fill("for a test", step.choice)
		await(t, ctx, `!document.querySelector("dialog") && fleet.store.all.order.get(fleet.model.selected.id).`+step.now)
	}
	press("Pin")
	fill("x", `"NOBODY"`)
	await(t, ctx, `document.querySelector("dialog .wrong")?.textContent.includes("NOBODY")`)
	js[any](t, ctx, `document.querySelector("dialog button").click(), 1`)

	await(t, ctx, `[...fleet.store.all.mission.values()].some((m) => m.status === "ACTIVE")`)
	selects("mission", js[string](t, ctx, `[...fleet.store.all.mission.values()].find((m) => m.status === "ACTIVE").id`))
	press("Recall")
	accessible(t, ctx, "Recall")
	fill("storm", "")
	await(t, ctx, `!document.querySelector("dialog") && document.getElementById("said").textContent === "Recall: sent; the drone has not confirmed it yet"`)
	// The State Manager tells the page of the recall, before or after the drone has confirmed it.
	await(t, ctx, `fleet.live.all.mission.get(fleet.model.selected.id).recalledAt && document.getElementById("selected").textContent.includes("recalled at") || fleet.live.all.mission.get(fleet.model.selected.id).status !== "ACTIVE"`)

	// Who plans an order, and who did before. F-ARE-05
	selects("order", handOver(t, clients))
	await(t, ctx, `(() => { const facts = document.querySelector("#selected dl").innerText.replace(/\s+/g, " ");
		return facts.includes("Planned by DEPOT-FAR since ") && facts.includes("Handed over by DEPOT-PARIS-01: no drone free: handed over to depot DEPOT-FAR") })()`)
	press("Story")
	await(t, ctx, `(() => { const story = document.getElementById("panel").innerText;
		return story.includes("Planned by depot DEPOT-FAR since ") && story.includes("From one area to another") && story.includes("handed over by depot DEPOT-PARIS-01 to DEPOT-FAR: no drone carries 40 kg") })()`)
	accessible(t, ctx, "Handed over")
	shoot(t, ctx, "Handed over")

	// In the past nothing can be commanded.
	// Firestore knows it: the drone was on the ground once.
	js[any](t, ctx, fmt.Sprintf(`(() => { const at = new Date(%d);
		document.getElementById("then").value = new Date(at - at.getTimezoneOffset() * 60e3).toISOString().slice(0, 19);
		document.getElementById("go").click(); return 1 })()`, grounded.UnixMilli()))
	await(t, ctx, `document.getElementById("state").textContent.startsWith("Past: the fleet as it was at") && document.documentElement.dataset.past === ""`)
	selects("drone", js[string](t, ctx, `[...fleet.store.all.drone.values()].find((d) => d.grounded).id`))
	if got := js[string](t, ctx, `[...document.querySelectorAll(".actions button")].map((b) => b.textContent).join()`); got != "Story" {
		t.Errorf("the past offers %s", got)
	}
	shoot(t, ctx, "Past")
	js[any](t, ctx, `document.getElementById("then").value = "2020-01-01T00:00:00", document.getElementById("go").click(), 1`)
	await(t, ctx, `document.getElementById("said").textContent.includes("Firestore keeps an hour")`)
	js[any](t, ctx, `document.getElementById("live").click(), 1`)
	await(t, ctx, `document.getElementById("state").textContent === "Live" && fleet.store === fleet.live`)

	do(t, ctx, chromedp.Navigate(bob))
	await(t, ctx, fmt.Sprintf(`fleet.map.drawn === %d && document.getElementById("who").textContent === "subject bob"`, drones))
	for _, kind := range []string{"drone", "order", "mission"} {
		selects(kind, js[string](t, ctx, fmt.Sprintf(`[...fleet.store.all[%q].keys()][0]`, kind)))
		await(t, ctx, `document.querySelectorAll(".actions button").length > 0`)
		if got := js[string](t, ctx, `[...document.querySelectorAll(".actions button")].map((b) => b.textContent).join()`); strings.TrimPrefix(got, "Why?,") != "Story" {
			t.Errorf("a viewer sees %s of a %s", got, kind)
		}
	}
	resp, err := http.Post(bob+"/api/v1/drones/X/ground", "application/json", strings.NewReader(`{"reason":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("a viewer's command: %s", resp.Status)
	}
}
