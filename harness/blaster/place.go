package blaster

import "net"

// A place is where a sender runs. What a sender waits for, it waits for by its
// place: a time, a connection, and what comes over a connection of it.
type place interface {
	timer
	// begin runs the sender's loop, and returns at once; not ok when it was interrupted before.
	begin(loop func()) (ok bool)
	// connect makes a connection by dial, for the loop.
	connect(dial func() (net.Conn, error)) (net.Conn, error)
}

// goroutines makes n places that are goroutines: for systems without a better
// one, and for tests with a simulated clock.
func goroutines(n int, _ bool) (all []place, free func(), err error) {
	for range n {
		all = append(all, goroutine{newSleeper()})
	}
	return all, func() {
		for _, p := range all {
			p.(goroutine).close()
		}
	}, nil
}

type goroutine struct{ *sleeper }

func (goroutine) begin(loop func()) (ok bool) {
	go loop()
	return true
}

func (goroutine) connect(dial func() (net.Conn, error)) (net.Conn, error) { return dial() }
