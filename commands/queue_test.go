package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"relaybench/store/storetest"
)

// One job at a time, in the order in which they were typed, whoever typed them;
// the prompt is back at once, and each hears of its own.
func TestQueue(t *testing.T) {
	db := storetest.Open(t)
	synctest.Test(t, func(t *testing.T) {
		b := desk(t, db)
		ann, bob := arrives(t, b, "ann", true), arrives(t, b, "bob", true)
		ann.settle, bob.settle = true, true
		begun := time.Now()
		same(t, "first", ann.says("work 10s"), "j1 queued, over in about 10s\nworks for ann with stand-in, format 0\n")
		same(t, "second", ann.says("work 20s --code 5"), "j2 queued behind 1 job, over in about 30s\n")
		same(t, "other", bob.says("work 1m --fail 'no luck'"), "j3 queued behind 2 jobs, over in about 1m30s\n")
		if took := time.Since(begun); took != 0 {
			t.Errorf("the prompt was back after %v", took)
		}
		synctest.Wait()
		equal(t, "at once", states(b), []string{"j1 ann running 10s", "j2 ann queued 30s", "j3 bob queued 1m30s"})
		if own := ann.Jobs(); len(own) != 2 || own[0].ID != "j1" || own[1].ID != "j2" || len(bob.Jobs()) != 1 {
			t.Errorf("own jobs %v and %v", own, bob.Jobs())
		}
		time.Sleep(4 * time.Second)
		equal(t, "after 4 s", states(b), []string{"j1 ann running 6s", "j2 ann queued 26s", "j3 bob queued 1m26s"})
		wants(t, bob.says("status"), "j1   ann    running  4s ago     6s  work 10s\n", "j2   ann    queued   4s ago    26s  work 20s --code 5\n", "j3   bob    queued   4s ago  1m26s", "j1: at it\n")
		time.Sleep(6 * time.Second)
		synctest.Wait()
		same(t, "ann", ann.hears(), "j1 done after 10s\nj2 begins: work 20s --code 5\nworks for ann with stand-in, format 0\n")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		same(t, "ann", ann.hears(), "j2 done after 20s, exit code 5: a run's metrics are unfit for comparison\n")
		same(t, "bob", bob.hears(), "j3 begins: work 1m --fail 'no luck'\nworks for bob with stand-in, format 0\n")
		time.Sleep(time.Minute)
		synctest.Wait()
		same(t, "bob", bob.hears(), "j3 failed after 1m0s: work: no luck\nhint: try again\n")
		equal(t, "in the end", states(b), []string{"j1 ann done 0", "j2 ann done 5", "j3 bob failed 4"})
		same(t, "ann", ann.hears(), "")
		if left, err := db.Settings(jobShelf); len(left) != 0 || err != nil {
			t.Errorf("kept of jobs that are over: %v, %v", left, err)
		}
	})
}

// What is typed wrongly is said when it is typed.
func TestQueueTakesNoNonsense(t *testing.T) {
	b := desk(t, storetest.Open(t))
	ann := arrives(t, b, "ann", true)
	for line, want := range map[string]string{
		"work soon":                "error: work: time: invalid duration \"soon\"",
		"test 10":                  "error: test: duration: \"10\" is not a duration",
		"test 1s --rate fast":      "error: test: rate: ",
		"test 1s --fail-if x":      "error: test: --fail-if",
		"test 1s --config no.yaml": "error: test: config: open ",
	} {
		if code, said := ann.does(t.Context(), line); code == Fine || !strings.HasPrefix(said, want) {
			t.Errorf("%s: code %d, %q, want %q", line, code, said, want)
		}
	}
	if all := states(b); len(all) != 0 {
		t.Errorf("jobs %q", all)
	}
}

func TestCancel(t *testing.T) {
	db := storetest.Open(t)
	synctest.Test(t, func(t *testing.T) {
		b := desk(t, db)
		ann, bob := arrives(t, b, "ann", true), arrives(t, b, "bob", true)
		ann.settle, bob.settle = true, true
		same(t, "nothing", bob.says("cancel"), "error: cancel: no job runs\nhint: status lists the queue\n")
		for _, l := range []string{"work 10s", "work 20s", "work 30s --stubborn"} {
			ann.says(l)
		}
		same(t, "not there", bob.says("cancel j9"), "error: cancel: no job \"j9\"\nhint: did you mean j3?\n")

		same(t, "another's that waits", bob.says("cancel j2"), "j2, of ann, is taken out of the queue: work 20s\n")
		synctest.Wait()
		same(t, "its owner", ann.hears(), "j2 cancelled: work: interrupted: cancelled by bob\n")
		same(t, "once more", bob.says("cancel j2"), "error: cancel: j2 is over: cancelled\nhint: \n")

		time.Sleep(3 * time.Second)
		same(t, "another's that runs", bob.says("cancel"), "j1, of ann, is being stopped, and what it measured is saved: work 10s\n")
		synctest.Wait()
		same(t, "its owner", ann.hears(), "j1 cancelled after 3s: work: interrupted: cancelled by bob\nj3 begins: work 30s --stubborn\nworks for ann with stand-in, format 0\n")

		same(t, "own", ann.says("cancel j3"), "j3, your own, is being stopped, and what it measured is saved: work 30s --stubborn\n")
		time.Sleep(time.Hour)
		equal(t, "it does not stop", states(b), []string{"j2 ann cancelled 130", "j1 ann cancelled 130", "j3 ann running 0s"})
		same(t, "once more", ann.says("cancel j3"), "j3, your own, was being stopped: its relay is killed: work 30s --stubborn\nkilled\nj3 cancelled after 1h0m0s: work: interrupted: cancelled by ann\n")
	})
}

func TestWait(t *testing.T) {
	db := storetest.Open(t)
	synctest.Test(t, func(t *testing.T) {
		b := desk(t, db)
		ann, bob := arrives(t, b, "ann", true), arrives(t, b, "bob", true)
		if code, said := bob.does(t.Context(), "wait"); code != CouldNot || !strings.HasPrefix(said, "error: wait: no job runs\n") {
			t.Errorf("for nothing: code %d, %q", code, said)
		}
		ann.says("work 10s --code 1; work 5s --fail 'no luck'")
		begun := time.Now()
		code, said := bob.does(t.Context(), "wait; name bob 2")
		same(t, "for the one that runs", said, "")
		if took := time.Since(begun); code != Worse || took != 10*time.Second {
			t.Errorf("code %d after %v, want 1 after 10s", code, took)
		}
		ann.hears()
		code, said = ann.does(t.Context(), "wait")
		same(t, "for one's own", said, "j2 begins: work 5s --fail 'no luck'\nworks for ann with stand-in, format 0\nj2 failed after 5s: work: no luck\nhint: try again\nerror: wait: j2: work: no luck\nhint: \n")
		if code != CouldNot {
			t.Errorf("code %d, want 4", code)
		}
		if code, _ = bob.does(t.Context(), "wait j1"); code != Worse {
			t.Errorf("for one that is over: code %d, want 1", code)
		}

		// Typed wrongly in its turn only: the code is what counts.
		ann.says("work 1s --code 3")
		if code, _ = ann.does(t.Context(), "wait"); code != Usage {
			t.Errorf("code %d, want 3", code)
		}

		// The first Ctrl-C cancels, the second kills.
		ann.says("work 1h --stubborn")
		ctx, interrupt := interrupted(t)
		var out string
		done := make(chan struct{})
		go func() {
			defer close(done)
			code, out = bob.does(ctx, "wait; status")
		}()
		bob.Kill() // does nothing before it is cancelled
		synctest.Wait()
		bob.Kill()
		time.Sleep(time.Minute)
		equal(t, "while it runs", states(b)[3:], []string{"j4 ann running 59m0s"})
		interrupt()
		time.Sleep(time.Minute)
		equal(t, "after one Ctrl-C", states(b)[3:], []string{"j4 ann running 58m0s"})
		bob.Kill()
		<-done
		if code != Interrupted {
			t.Errorf("code %d, want 130", code)
		}
		same(t, "after the second", out, "error: wait: j4: work: interrupted by Ctrl-C\nhint: \n")
		wants(t, ann.hears(), "killed\nj4 cancelled after 2m0s: work: interrupted by Ctrl-C\n")

		// Who leaves cancels nothing.
		ann.settle = true
		ann.says("work 1h")
		ctx, cancel := context.WithCancelCause(t.Context())
		done = make(chan struct{})
		go func() {
			defer close(done)
			code, _ = bob.does(ctx, "wait")
		}()
		synctest.Wait()
		cancel(ErrLeft)
		<-done
		bob.Close()
		equal(t, "after bob left", states(b)[4:], []string{"j5 ann running 1h0m0s"})
		ann.Close()
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		equal(t, "after all left", states(b)[4:], []string{"j5 ann done 0"})
		same(t, "ann has left", ann.hears(), "")
	})
}

func TestFollow(t *testing.T) {
	db := storetest.Open(t)
	synctest.Test(t, func(t *testing.T) {
		b := desk(t, db)
		ann, bob, eve := arrives(t, b, "ann", true), arrives(t, b, "bob", true), arrives(t, b, "eve", true)
		ann.settle = true
		eve.client.Progress = func(line string) { eve.drawn = append(eve.drawn, line) }
		same(t, "nothing", bob.says("follow"), "error: follow: no job runs\nhint: status lists the queue\n")
		ann.says("work 1s; work 12s --code 2")
		var joined sync.WaitGroup
		var said [3]string
		for i, p := range []*person{bob, eve, ann} {
			joined.Go(func() { _, said[i] = p.does(t.Context(), "follow j2") })
		}
		joined.Wait()
		same(t, "where nothing can be drawn", said[0], "j2 begins: work 12s --code 2\nworks for ann with stand-in, format 0\nj2: at it\nj2 done after 12s, exit code 2: inconclusive\n")
		same(t, "where a line can be drawn", said[1], "j2 begins: work 12s --code 2\nworks for ann with stand-in, format 0\nj2 done after 12s, exit code 2: inconclusive\n")
		same(t, "its owner", said[2], "j1 done after 1s\nj2 begins: work 12s --code 2\nworks for ann with stand-in, format 0\nj2: at it\nj2 done after 12s, exit code 2: inconclusive\n")
		if !slices.Contains(eve.drawn, "at it") || eve.drawn[len(eve.drawn)-1] != "" {
			t.Errorf("drawn %q, want how it goes, and nothing in the end", eve.drawn)
		}

		// Ctrl-C cancels what is followed.
		ann.says("work 1h")
		ctx, interrupt := interrupted(t)
		joined.Go(func() { _, said[0] = bob.does(ctx, "follow") })
		synctest.Wait()
		interrupt()
		joined.Wait()
		same(t, "one that is cancelled, and says at once how it goes", said[0], "j3: at it\nj3 cancelled: work: interrupted by Ctrl-C\n")
	})
}

// A follower that does not take what it hears holds up nobody, and is told what it missed.
func TestFollowerThatStalls(t *testing.T) {
	db := storetest.Open(t)
	synctest.Test(t, func(t *testing.T) {
		b := desk(t, db)
		ann := arrives(t, b, "ann", true)
		ann.says("work 1s; work 2s --lines 10000")
		w := &slow{at: make(chan struct{}), may: make(chan struct{})}
		var kept bytes.Buffer
		s := b.NewSession(Client{Name: "slow", Out: both{w, &kept}, Background: true})
		var joined sync.WaitGroup
		joined.Go(func() { s.Do(t.Context(), "follow j2", func(f *Failure) bool { t.Error(f.Text()); return true }) })
		<-w.at
		time.Sleep(time.Hour)
		equal(t, "while it stalls", states(b), []string{"j1 ann done 0", "j2 ann done 0"})
		if n := strings.Count(ann.hears(), "\nline "); n != 10000 {
			t.Errorf("its owner heard %d lines", n)
		}
		close(w.may)
		joined.Wait()
		if said := kept.String(); len(said) > 2*maxSaid || !strings.Contains(said, "lines were dropped") || !strings.HasSuffix(said, "j2 done after 2s\n") {
			t.Errorf("%d bytes, ending in %q", len(said), said[max(0, len(said)-200):])
		}
	})
}

// both write to the first, then to the second.
type both [2]interface{ Write([]byte) (int, error) }

func (w both) Write(p []byte) (int, error) {
	_, _ = w[0].Write(p)
	return w[1].Write(p)
}

// In a script each is waited for, in its turn, and ends as if it was alone.
func TestScriptInTheQueue(t *testing.T) {
	db := storetest.Open(t)
	synctest.Test(t, func(t *testing.T) {
		b := desk(t, db)
		ann, script := arrives(t, b, "ann", true), arrives(t, b, "script", false)
		ann.says("work 10s")
		begun := time.Now()
		code, said := script.does(t.Context(), "work 5s --code 5; wait; work 1s --fail 'no luck'; history")
		same(t, "script", said, "j2 waits behind 1 job\nworks for script with stand-in, format 0\nworks for script with stand-in, format 0\nerror: work: no luck\nhint: try again\nwork 5s --code 5; wait; work 1s --fail 'no luck'; history\n")
		if took := time.Since(begun); code != CouldNot || took != 16*time.Second {
			t.Errorf("code %d after %v, want 4 after 16s", code, took)
		}

		// Ctrl-C is its job's.
		ctx, interrupt := interrupted(t)
		time.AfterFunc(3*time.Second, interrupt)
		code, said = script.does(ctx, "work 5s; work 1s")
		same(t, "interrupted", said, "works for script with stand-in, format 0\nerror: work: interrupted by Ctrl-C\nhint: \n")
		if code != Interrupted {
			t.Errorf("code %d, want 130", code)
		}

		// Another one may cancel it.
		time.AfterFunc(time.Second, func() { ann.says("cancel") })
		code, said = script.does(t.Context(), "work 5s")
		same(t, "cancelled by another", said, "works for script with stand-in, format 0\nerror: work: interrupted: cancelled by ann\nhint: \n")
		if code != Interrupted {
			t.Errorf("code %d, want 130", code)
		}

		// One that leaves, as when its terminal is closed, leaves its job.
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(ErrLeft) })
		script.does(ctx, "work 5s --lines 3")
		script.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		views := b.queue.views()
		if v := views[len(views)-1]; v.State != Done {
			t.Errorf("after it left: %+v", v)
		}
		same(t, "after it left", script.hears(), "")
	})
}

// A job keeps what its client had when it was queued.
func TestJobKeepsWhatItsClientHad(t *testing.T) {
	db := storetest.Open(t)
	synctest.Test(t, func(t *testing.T) {
		b := desk(t, db)
		ann, bob := arrives(t, b, "ann", true), arrives(t, b, "bob", true)
		ann.settle, bob.settle = true, true
		heard := ann.says("work 1s; relay use none; set format json; name ann 2; work 1s; set format csv; relay use stand-in; work 1s --json; name x; set format text")
		bob.says("relay use none")
		synctest.Wait()
		time.Sleep(time.Hour)
		synctest.Wait()
		heard += ann.hears()
		for _, want := range []string{"works for ann with stand-in, format 0", "works for ann 2 with none, format 1", "works for ann 2 with stand-in, format 1"} {
			if !strings.Contains(heard, want) {
				t.Errorf("without %q:\n%s", want, heard)
			}
		}
		// What one client uses is not another's.
		wants(t, ann.says("relay use"), "stand-in")
		wants(t, bob.says("relay use"), "no relay")
		wants(t, arrives(t, b, "new", true).says("relay use"), "no relay")
	})
}

// For programs, what is said of a job is in the form of all else.
func TestJobsForPrograms(t *testing.T) {
	db := storetest.Open(t)
	synctest.Test(t, func(t *testing.T) {
		b := desk(t, db)
		ann := arrives(t, b, "ann", true)
		ann.says("set format json")
		var queued, ended struct {
			Job, State, Error, Hint string
			Left                    int64 `json:"left_ns"`
			Code                    int
		}
		said := ann.says("work 4s --fail 'no luck'")
		d := json.NewDecoder(strings.NewReader(said))
		if err := d.Decode(&queued); err != nil || queued.Job != "j1" || queued.State != "queued" || queued.Left != 4e9 {
			t.Errorf("queued %+v, %v", queued, err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		said = ann.hears()
		if i := strings.Index(said, "{"); i >= 0 {
			said = said[i:]
		}
		if err := json.Unmarshal([]byte(said), &ended); err != nil || ended.State != "failed" || ended.Code != 4 || ended.Error != "work: no luck" || ended.Hint != "try again" {
			t.Errorf("ended %+v, %v of %q", ended, err, said)
		}
		var status struct {
			Relay string
			Jobs  []map[string]any
		}
		said = ann.says("status")
		if err := json.Unmarshal([]byte(said), &status); err != nil || status.Relay != "stand-in" || len(status.Jobs) != 1 || status.Jobs[0]["code"] != 4.0 || status.Jobs[0]["left_ns"] != nil {
			t.Errorf("status %+v, %v of %q", status, err, said)
		}
		wants(t, ann.says("status --csv"), "relay,store,reports,newest,config,job,owner,state,since,left_ns,code,line,now\n", "stand-in,", ",j1,ann,failed,")
	})
}

// After a crash, the next start says what was interrupted and what was waiting,
// once; nothing is run again, and numbers go on.
func TestNews(t *testing.T) {
	db := storetest.Open(t)
	synctest.Test(t, func(t *testing.T) {
		b := desk(t, db)
		ann, bob := arrives(t, b, "ann", true), arrives(t, b, "bob", true)
		ann.says("work 1s; work 1h")
		bob.says("work 2h --code 1")
		time.Sleep(time.Minute)
		synctest.Wait()

		// What the store has now is what a process leaves that is killed.
		next := desk(t, db)
		script := arrives(t, next, "script", false)
		script.says("work 1s") // tells nobody
		news := next.News()
		for i := range news {
			news[i] = news[i][:strings.Index(news[i], " since")]
		}
		equal(t, "news", news, []string{
			"j2 of ann was interrupted when relaybench last ended, and is not run again: work 1h (running",
			"j3 of bob was waiting when relaybench last ended, and is not run again: work 2h --code 1 (queued",
		})
		equal(t, "news once more", next.News(), nil)
		equal(t, "jobs", states(next), []string{"j4 script done 0"})
		equal(t, "news of the one after", desk(t, db).News(), nil)
	})
}

// When relaybench ends in an orderly way, the job that runs is stopped, others
// are not begun, owners are told, and the next start tells it too.
func TestQueueEnds(t *testing.T) {
	db := storetest.Open(t)
	synctest.Test(t, func(t *testing.T) {
		b := NewBench(Config{})
		b.db = db
		ctx, cancel := context.WithCancelCause(t.Context())
		b.Start(ctx)
		ann, bob, script := arrives(t, b, "ann", true), arrives(t, b, "bob", true), arrives(t, b, "script", false)
		ann.says("work 1h")
		bob.says("work 2h")
		done := make(chan struct{})
		var code Code
		go func() {
			defer close(done)
			code, _ = script.does(t.Context(), "work 3h")
		}()
		time.Sleep(time.Second)
		cancel(fmt.Errorf("%w by SIGTERM", ErrInterrupted))
		b.end()
		<-done
		wants(t, ann.hears(), "j1 cancelled after 1s: work: interrupted by SIGTERM\n")
		same(t, "bob", bob.hears(), "j2 cancelled: work: not begun: interrupted by SIGTERM\n")
		if code != Interrupted {
			t.Errorf("the script's code is %d, want 130", code)
		}
		if code, said := bob.does(t.Context(), "work 1s"); code != Interrupted || !strings.HasPrefix(said, "error: work: interrupted by SIGTERM\n") {
			t.Errorf("queued too late: code %d, %q", code, said)
		}
		news := desk(t, db).News()
		if len(news) != 2 || !strings.HasPrefix(news[0], "j1 of ann was interrupted") || !strings.HasPrefix(news[1], "j2 of bob was waiting") {
			t.Errorf("news %q", news)
		}
	})
}

// A panic in a job is its own; where it was is in the log, under a number that its owner is told.
func TestPanicInAJob(t *testing.T) {
	db := storetest.Open(t)
	var log bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		b := NewBench(Config{Log: &log})
		b.db = db
		b.Start(t.Context())
		defer b.end()
		ann := arrives(t, b, "ann", true)
		heard := ann.says("work 1s --panic; work 1s --code 1")
		code, said := ann.does(t.Context(), "wait")
		said = heard + said
		if code != Worse {
			t.Errorf("code of the job after it %d, want 1", code)
		}
		_, id, _ := strings.Cut(said, "internal error ")
		id, _, _ = strings.Cut(id, ":")
		if len(id) != 6 || !strings.Contains(log.String(), "internal error "+id+": no work") || !strings.Contains(log.String(), "person_test.go") || strings.Contains(said, "person_test.go") {
			t.Errorf("said %q, log %q", said, log.String())
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	synctest.Test(t, func(t *testing.T) {
		b := desk(t, db)
		ann := arrives(t, b, "ann", true)
		for range maxQueued + 1 {
			ann.says("work 1h")
			synctest.Wait()
		}
		same(t, "one too many", ann.says("work 1h"), "error: work: 200 jobs wait already\nhint: cancel some: status lists them\n")
		wants(t, ann.says("cancel j7"), "j7, your own")
		wants(t, ann.says("work 1h"), "j202 queued behind 200 jobs")
	})
}

func TestQueueNotStarted(t *testing.T) {
	b := NewBench(Config{})
	b.db = storetest.Open(t)
	code, said := arrives(t, b, "ann", false).does(t.Context(), "work 1s")
	if code != CouldNot || !strings.Contains(said, errNotStarted.Error()) {
		t.Errorf("code %d, %q", code, said)
	}
}
