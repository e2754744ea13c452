package commands

import (
	"context"
	"slices"
	"strings"
	"testing"

	"relaybench/store"
	"relaybench/store/storetest"
)

// load is a test that lasts as long as it is let, of few and small sends.
const load = "test 1h --rate 50 --mix sessions --pool 10 --connections 2 --drain 1s"

// Two clients of one bench, and real runs against the stand-in.
func TestTwoClients(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	b := desk(t, db)
	ann, bob := arrives(t, b, "ann", true), arrives(t, b, "bob", true)

	// What ann runs bob sees, follows, and cancels.
	wants(t, ann.says(load), "j1 queued, over in about 1h0m5s\n")
	lines := make(chan string, 1000)
	bob.client.Progress = func(line string) { lines <- line }
	ctx, interrupt := interrupted(t)
	followed := make(chan string)
	go func() {
		_, said := bob.does(ctx, "follow")
		followed <- said
	}()
	for line := range lines {
		if strings.Contains(line, "sent ") {
			break
		}
	}
	said := ann.says("status")
	wants(t, said, "j1   ann    running", load[:50], "j1: ", "sent ")
	wants(t, ann.says("test 10s --rate 5"), "j2 queued behind 1 job")
	interrupt()
	if said := <-followed; !strings.Contains(said, "mark cancelled") || !strings.Contains(said, "j1 cancelled after ") || !strings.Contains(said, "test: interrupted by Ctrl-C") {
		t.Errorf("who followed heard\n%s", said)
	}
	wants(t, ann.until("j1 cancelled after"), "report 2", "mark cancelled")
	wants(t, bob.says("cancel j2"), "j2, of ann, ")
	wants(t, ann.until("j2 cancelled"), "interrupted: cancelled by bob\n")
	entries, _, err := db.Entries(nil, store.Newest{})
	if err != nil || len(entries) == 0 || !marked(&entries[0], "cancelled") {
		t.Fatalf("reports %v, %v; want one that was cancelled", entries, err)
	}

	// What bob defines ann can say; she leaves, her job goes on, and its report is kept.
	bob.says("define one test $ --rate 50 --mix sessions --pool 10 --connections 2 --drain 1s")
	before := len(entries)
	wants(t, ann.says("one 1s"), "queued")
	ann.Close()
	id := b.queue.views()[2].ID
	if code, _ := bob.does(t.Context(), "wait "+id); code != Unfit { // it is short
		t.Errorf("exit code of the job %d, want 5", code)
	}
	entries, _, err = db.Entries(nil, store.Newest{})
	if err != nil || len(entries) != before+1 || marked(&entries[len(entries)-1], "cancelled") {
		t.Errorf("%d reports, %v; want one more", len(entries), err)
	}
	if said := ann.hears(); strings.Contains(said, "report") {
		t.Errorf("who has left heard %q", said)
	}

	// A script takes its turn among them, and is told as if it was alone.
	script := arrives(t, b, "script", false)
	code, said := script.does(context.Background(), "one 300ms; show last --json; test 1s --rate nonsense")
	if code != Usage || !strings.Contains(said, "300ms") || !strings.Contains(said, `"marks"`) || !strings.Contains(said, "error: test: rate: ") {
		t.Errorf("code %d:\n%s", code, said)
	}
	if slices.ContainsFunc(b.queue.views(), func(v Job) bool { return v.State == Queued || v.State == Running }) {
		t.Errorf("jobs %q", states(b))
	}
	if left, err := db.Settings(jobShelf); len(left) != 0 || err != nil {
		t.Errorf("kept of jobs that are over: %v, %v", left, err)
	}
}
