package events

// Shards is the number of outbox shards. A topic's partition count must divide
// it, so that each shard lies in one partition of a topic.
const Shards = 64

// Murmur2 is the hash of Java's Kafka partitioner, sign bit cleared.
func Murmur2(key string) uint32 {
	const m, r = 0x5bd1e995, 24
	h := uint32(0x9747b28c) ^ uint32(len(key)) //nolint:gosec // as in Java: int arithmetic
	i := 0
	for ; i+4 <= len(key); i += 4 {
		k := uint32(key[i]) | uint32(key[i+1])<<8 | uint32(key[i+2])<<16 | uint32(key[i+3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h *= m
		h ^= k
	}
	switch len(key) - i {
	case 3:
		h ^= uint32(key[i+2]) << 16
		fallthrough
	case 2:
		h ^= uint32(key[i+1]) << 8
		fallthrough
	case 1:
		h ^= uint32(key[i])
		h *= m
	}
	h ^= h >> 13
	h *= m
	h ^= h >> 15
	return h & 0x7fffffff
}

// Partition is the partition of key in a topic of n partitions, as Java's default partitioner gives it.
func Partition(key string, n int) int { return int(Murmur2(key) % uint32(n)) } //nolint:gosec // n is a small positive count

// Shard is the outbox shard of a business key.
func Shard(businessKey string) int16 { return int16(Murmur2(businessKey) % Shards) }
