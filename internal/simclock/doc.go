// Package simclock is a clock that runs faster than the machine's, for simulations that
// run faster than real time. At speed 1 it is the machine's clock.
//
// It must not import anything of the fleet but the lock library, whose clock
// it implements.
package simclock
