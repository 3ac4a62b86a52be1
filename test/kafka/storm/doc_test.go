// Package storm_test lets relays, consumers and brokers die in random places,
// on a real Apache Kafka of three nodes, and counts afterwards what was lost,
// reordered or applied twice. Build tag kafka: twenty seconds of it; soak: ten minutes.
//
//	go test -count=1 -tags kafka ./test/kafka/storm
//	go test -count=1 -tags soak -timeout 20m -v ./test/kafka/storm
package storm_test
