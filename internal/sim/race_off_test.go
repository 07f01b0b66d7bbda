//go:build !race

package sim

// raceDetector tells whether the race detector slows everything down. Worlds run
// on one goroutine; what it is for here is the comparison with real Gates.
const raceDetector = false
