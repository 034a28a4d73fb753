// Package simclock is the clock of every process of a fleet. In production it is the
// machine's. In a simulated fleet it may run faster; processes that join such a fleet read
// its rate from the store and keep the same time.
//
// It must not import anything of the fleet but the lock library, whose clock it implements.
package simclock
