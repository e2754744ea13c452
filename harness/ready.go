package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"relaybench/envelope"
	"relaybench/harness/blaster"
	"relaybench/harness/plan"
)

// ready waits until the relay does all of its work: healthy, its global config
// asked for, a warm-up envelope of each kind settled and so is a session for
// each project that the schedule will draw.
func (x *run) ready(ctx context.Context) error {
	from := x.now()
	if x.proc != nil {
		err := x.wait(ctx, x.limits.ready, "the relay did not become ready", 10*time.Millisecond, func(ctx context.Context) (bool, string) {
			err := x.proc.Ready(ctx)
			return err == nil, x.readyTrouble(err)
		})
		if err != nil {
			return err
		}
		err = x.wait(ctx, x.limits.global, "the relay did not ask its upstream for the global config", time.Millisecond, func(context.Context) (bool, string) {
			st := x.up.Stats()
			return st.GlobalQueries > 0, fmt.Sprintf("it registered %s and asked for project configs %s", times(st.Registered), times(st.ConfigQueries))
		})
		if err != nil {
			return err
		}
	}
	if err := x.warmUp(ctx); err != nil {
		return err
	}
	x.res.Relay.ReadyAfter = x.now() - from
	if x.plan.Processes > 1 {
		var err error
		if x.senders, err = blaster.StartProcesses(ctx, x.share(), x.plan.Processes); err != nil {
			return err
		}
	}
	return nil
}

func times(n uint64) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func (x *run) readyTrouble(err error) string {
	what := "its health check said nothing"
	if err != nil {
		what = err.Error()
	}
	if st := x.up.Stats(); st.Registered == 0 {
		return what + "; it has not registered with its upstream"
	}
	return what + "; it has registered with its upstream"
}

// wait asks done every interval until it is, or limit has passed without
// any; then the error says what was waited for and what was seen instead.
func (x *run) wait(ctx context.Context, limit time.Duration, what string, every time.Duration, done func(context.Context) (ok bool, seen string)) error {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, seen := done(limited)
		if ok {
			return nil
		}
		select {
		case <-tick.C:
		case <-x.died():
			return x.death()
		case <-limited.Done():
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s within %v: %s", what, limit, seen)
		}
	}
}

// warm is one warm-up send.
type warm struct {
	kind    int // index in run.kinds
	project int
}

// warmUps is what is sent before the load: an envelope of each kind of the
// mix, and a session for each project that the schedule will draw.
func (x *run) warmUps() []warm {
	var ws []warm
	for _, k := range x.index {
		ws = append(ws, warm{kind: k})
	}
	sessions := slices.IndexFunc(x.kinds, func(k envelope.Kind) bool { return k.Name == "sessions" })
	if sessions < 0 {
		sessions = x.index[0]
	}
	for _, p := range projectsDrawn(x.plan, x.pool) {
		ws = append(ws, warm{sessions, p})
	}
	return ws
}

// projectsDrawn are the projects that the plan's schedule will draw; all of them where it has no end.
func projectsDrawn(p plan.Plan, pool *envelope.Pool) []int {
	drawn := make([]bool, p.Projects)
	if p.Flat() {
		for i := range drawn {
			drawn[i] = true
		}
	} else {
		n := blaster.Schedule{Rate: p.Rate, Burst: uint64(p.Burst), Stride: 1}.Count(int64(p.Duration))
		for k, left := uint64(0), p.Projects; k < n && left > 0; k++ {
			if at := pool.Project(k); !drawn[at] {
				drawn[at] = true
				left--
			}
		}
	}
	var out []int
	for at, d := range drawn {
		if d {
			out = append(out, at)
		}
	}
	return out
}

// WarmUps is how many warm-up sends a run of p makes before its load.
func WarmUps(p plan.Plan) (int, error) {
	config, err := p.PoolConfig(nil, time.Now())
	if err != nil {
		return 0, err
	}
	pool, err := envelope.NewPool(config)
	if err != nil {
		return 0, err
	}
	return len(pool.Kinds()) + len(projectsDrawn(p, pool)), nil
}

const warmSenders = 16

// warmUp sends the warm-ups and waits until each is settled: arrived, refused
// for good, or reported by an outcome.
func (x *run) warmUp(ctx context.Context) error {
	ws := x.warmUps()
	x.res.Pool.WarmUps = len(ws)
	answers, all := make([]int, len(ws)), make([]int, len(ws))
	for i := range all {
		all[i] = i
	}
	if err := x.sendWarmUps(ctx, ws, all, answers); err != nil {
		return err
	}
	left := func() []int { return x.unsettled(ws, answers) }
	last, moved, again := -1, time.Now(), time.Now()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for open := left(); len(open) > 0; open = left() {
		if len(open) != last {
			last, moved, again = len(open), time.Now(), time.Now()
		}
		if time.Since(moved) > x.limits.warm {
			return x.notSettled(ws, answers, open)
		}
		if time.Since(again) > warmAgain {
			// What was accepted before the relay knew the project, and then dropped
			// in silence (sessions over a quota), is refused when it comes again.
			if err := x.sendWarmUps(ctx, ws, open, answers); err != nil {
				return err
			}
			again = time.Now()
		}
		select {
		case <-tick.C:
		case <-x.died():
			return x.death()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if len(x.up.Stats().Outcomes) == 0 {
		return nil
	}
	// Outcomes come in batches: wait until those of the warm-up are all in, so that they can be taken off.
	return x.wait(ctx, x.limits.warm, "the relay's outcomes of the warm-up did not end", 10*time.Millisecond, func(context.Context) (bool, string) {
		quiet := time.Duration(x.now() - x.up.Changed())
		return quiet > 1200*time.Millisecond, fmt.Sprintf("the last came %v ago", quiet.Round(time.Millisecond))
	})
}

// warmAgain is after how long without progress what is not settled is sent again.
const warmAgain = 5 * time.Second

// sendWarmUps sends those warm-ups of ws that which names, over a few connections, and notes their statuses in answers.
func (x *run) sendWarmUps(ctx context.Context, ws []warm, which, answers []int) error {
	transport := &http.Transport{MaxConnsPerHost: warmSenders, MaxIdleConnsPerHost: warmSenders, DisableCompression: true,
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: max(x.plan.Timeout, 5*time.Second),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var senders sync.WaitGroup
	for range min(warmSenders, len(which)) {
		senders.Go(func() {
			for i := range next {
				status, err := x.sendWarm(ctx, client, i, ws[i])
				if err != nil {
					cancel(fmt.Errorf("warm-up %s to %s: %w", x.kinds[ws[i].kind].Name, x.addr, err))
					continue
				}
				answers[i] = status
			}
		})
	}
feed:
	for _, i := range which {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		case <-x.died():
			cancel(x.death())
			break feed
		}
	}
	close(next)
	senders.Wait()
	return context.Cause(ctx)
}

// sendWarm sends one warm-up until it is answered with something else than a
// 5xx: a relay that is not ready yet says 503.
func (x *run) sendWarm(ctx context.Context, client *http.Client, n int, w warm) (status int, err error) {
	from := time.Now()
	for {
		body, agent := x.pool.AppendWarm(nil, uint64(n), x.now(), x.kinds[w.kind].Name, w.project)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s/api/%d/envelope/", x.addr, envelope.ProjectID(w.project)), bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		req.Header.Set("Content-Type", "application/x-sentry-envelope")
		if e := x.pool.Encoding(); e != envelope.Identity {
			req.Header.Set("Content-Encoding", e)
		}
		req.Header.Set("User-Agent", string(agent))
		req.Header.Set("X-Sentry-Auth", "Sentry sentry_version=7, sentry_client=relaybench/1, sentry_key="+envelope.Key(w.project))
		resp, err := client.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
			err = errors.Join(err, resp.Body.Close())
		}
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if err == nil && resp.StatusCode < 500 {
			if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusUnauthorized || resp.StatusCode >= 300 && resp.StatusCode < 400 {
				return 0, fmt.Errorf("answered %s: is that a Relay?", resp.Status)
			}
			return resp.StatusCode, nil
		}
		if time.Since(from) > x.limits.warm {
			if err == nil {
				err = fmt.Errorf("answered %s", resp.Status)
			}
			return 0, err
		}
		if err := x.sleep(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// unsettled are the warm-ups of which nothing is known yet.
func (x *run) unsettled(ws []warm, answers []int) []int {
	var open []int
	missing := map[int]uint64{} // by category
	for i, w := range ws {
		if x.up.WarmArrived(uint64(i)) || answers[i] >= 400 && !x.kinds[w.kind].Outcome(answers[i]) {
			continue
		}
		open = append(open, i)
		missing[x.kinds[w.kind].Category]++
	}
	if len(open) == 0 {
		return nil
	}
	// An outcome carries no id: those of a category are settled together.
	for _, o := range x.up.Stats().Outcomes {
		if o.Outcome != outcomeClient && missing[o.Category] > 0 {
			missing[o.Category] -= min(missing[o.Category], o.Quantity)
		}
	}
	return slices.DeleteFunc(open, func(i int) bool { return missing[x.kinds[ws[i].kind].Category] == 0 })
}

// notSettled says what of the warm-up did not come, and what was seen instead.
func (x *run) notSettled(ws []warm, answers []int, open []int) error {
	st := x.up.Stats()
	byKind := map[string]int{}
	projects := map[int]bool{}
	for _, i := range open {
		byKind[x.kinds[ws[i].kind].Name]++
		projects[ws[i].project] = true
	}
	var kinds []string
	for _, k := range x.kinds {
		if n := byKind[k.Name]; n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d of %s", n, k.Name))
		}
	}
	what := fmt.Sprintf("%d of %d warm-up envelopes were answered but not seen again (%s)", len(open), len(ws), strings.Join(kinds, ", "))
	switch {
	case st.WarmUps == 0 && st.Registered == 0 && st.GlobalQueries == 0 && st.ConfigQueries == 0:
		return fmt.Errorf("%s: nothing arrived at %s: is the relay's upstream this address?", what, x.up.Addr())
	case st.ConfigQueries == 0:
		return fmt.Errorf("%s: the relay has not asked for the config of a project", what)
	case st.WarmUps == 0:
		return fmt.Errorf("%s: the relay asked for %d project configs, and forwarded nothing", what, st.ConfigKeys)
	case len(projects) > 1 && st.ConfigKeys < uint64(len(projects)):
		return fmt.Errorf("%s: %d projects are still pending", what, len(projects))
	}
	return fmt.Errorf("%s: %d others arrived within %v", what, st.WarmUps, x.limits.warm)
}
