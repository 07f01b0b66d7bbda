// Package demo shows the double credit and its absence with real processes: a
// billing provider, two instances of a support service that apply a credit under
// a signed one-time grant, and a gateway in front of them. The same incidents
// happen once with a record in each instance's memory and once with Pawl.
//
// [Run] is the stage: it starts the processes, plays the agent, and reads the
// provider's books. [Serve] is one of the processes. A process lives as long as
// its standard input: its first line is the configuration, its end is the order
// to stop, and so nothing outlives the stage however that ends. What happens in
// it goes to standard output, one JSON object a line, and the stage makes the
// story of that.
//
// The stage waits for events and never for time: the only durations that shape a
// story are the provider's and the gateway's, and the lease of an instance that
// died.
package demo
