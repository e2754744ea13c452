// Package reactor runs many connections on one thread, at the least cost a
// send or a request can have: where a goroutine that waits for the network is
// parked and woken by the runtime's poller, its scheduler and a system call or
// two of theirs, a coroutine of a [Loop] waits in one epoll call and goes on by
// a switch of stacks. It is for Linux; elsewhere the package is empty.
//
// A loop's coroutines run one at a time and until they wait: in Read, Write, or
// [Loop.SleepUntil] or [Loop.Await]. All others of the loop stand still
// meanwhile, so a coroutine must not block by other means: no channel, no
// WaitGroup, no lock that is held over a wait or for long, no system call that
// takes its time, no time.Sleep; [Loop.Await] is for what needs one of them.
// The runtime's own timers, contexts and goroutines work as ever.
//
// Note: GOMAXPROCS is raised by one for each loop that runs, because the
// scheduler takes the processor of a waiting loop away unless another is idle.
package reactor
