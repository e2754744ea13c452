package blaster

import "net"

// A place is where a sender runs. What a sender waits for, it waits for by its
// place: a time, a connection, and what comes over a connection of it.
type place interface {
	timer
	// thread is the index of the thread that the sender runs on. Those of one
	// thread take turns, and do so only where they wait.
	thread() int
	// begin runs the sender's loop, and returns at once; not ok when it was interrupted before.
	begin(loop func()) (ok bool)
	// connect makes a connection for the loop.
	connect(r *run) (net.Conn, error)
}

// goroutines makes n places that are goroutines: for systems without a better
// one, and for tests with a simulated clock.
func goroutines(n int, _ bool) (all []place, free func(), err error) {
	for i := range n {
		all = append(all, goroutine{newSleeper(), i})
	}
	return all, func() {
		for _, p := range all {
			p.(goroutine).close()
		}
	}, nil
}

type goroutine struct {
	*sleeper
	index int
}

func (g goroutine) thread() int { return g.index }

func (goroutine) begin(loop func()) (ok bool) {
	go loop()
	return true
}

func (goroutine) connect(r *run) (net.Conn, error) { return r.dial(r.ctx) }
