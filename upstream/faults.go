package upstream

import "time"

// Fault decides how the upstream treats an envelope request: a pure function
// of its number and time. It is asked for requests with a stamp of the run
// only, never for a warm-up, and concurrently.
type Fault func(Request) Treatment

// Request is what a fault may decide by.
type Request struct {
	N       uint64 // how many stamped envelope requests of the run came before, 0 for the first
	Seq     uint64 // the send's number
	Attempt int    // 0 when this send (in one of the envelope's item types) comes for the first time, else 1: one bit of it is kept
	At      int64  // nanoseconds since Zero
}

// Treatment is how a request is answered. The zero value is a plain 200 at once.
//
// A send answered 2xx is acknowledged. One that is dropped, or answered 502,
// 503 or 504, Relay sends again. One with any other status is lost: Relay
// drops it, without retry or outcome (seen on Relay 26.4).
type Treatment struct {
	Delay      time.Duration // before the answer, but after the counting, beside [Config].Latency; Close does not wait for it
	Status     int           // 0 is 200
	Drop       bool          // close the connection instead of answering
	RateLimits string        // X-Sentry-Rate-Limits of the answer, where not empty
}

func (t Treatment) status() int {
	if t.Status == 0 {
		return 200
	}
	return t.Status
}

func (t Treatment) acknowledges() bool { return !t.Drop && t.status()/100 == 2 }

func (t Treatment) loses() bool {
	switch t.status() {
	case 502, 503, 504:
		return false
	}
	return !t.Drop && !t.acknowledges()
}

// Share treats a share of the requests, 0 to 1, and answers the others as they
// are. It draws by the request's number alone, so a run repeats it, and a send
// that comes again is drawn anew.
func Share(share float64, t Treatment) Fault {
	return func(r Request) Treatment {
		if float64(scatter(r.N)>>11)/(1<<53) < share {
			return t
		}
		return Treatment{}
	}
}

// Every treats the requests of every n-th send, those whose number n divides, as
// often as they come, and answers the others as they are. n is at least 1.
func Every(n uint64, t Treatment) Fault {
	return func(r Request) Treatment {
		if r.Seq%n == 0 {
			return t
		}
		return Treatment{}
	}
}

// scatter is the finaliser of SplitMix64: numbers in sequence come out as if drawn.
func scatter(v uint64) uint64 {
	v += 0x9e3779b97f4a7c15
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}
