//! Fixed limits of the protocol and of this broker, each in one place.

/// Longest topic name, in bytes; leaves room for `-<partition>` and a suffix
/// in a 255-byte file name.
pub const TOPIC_NAME_BYTES_MAX: usize = 249;

/// Producer ids handed to a node at a time.
pub const PRODUCER_ID_BLOCK: i64 = 1000;

/// Partitions per DescribeTopicPartitions page at most
/// (`max.request.partition.size.limit`).
pub const DESCRIBE_PARTITIONS_PAGE_DEFAULT: i32 = 2000;

/// Partitions that one topic may have. Kafka bounds one request by its
/// record count instead; we bound the topic, so that the image stays small.
pub const PARTITIONS_PER_TOPIC_MAX: i32 = 100_000;

/// Partitions that one request may create, all topics together: the metadata
/// records of a request are one atomic batch.
pub const PARTITIONS_PER_REQUEST_MAX: i32 = 10_000;

/// Largest batch after decompression, in bytes, whatever
/// `max.decompressed.message.bytes` says: what is taken can also be searched.
pub const DECOMPRESSED_BYTES_MAX: usize = 1 << 30;

/// Largest batch, decompressed, that `compression.type` makes anew. Its shard
/// does nothing else meanwhile, which this bounds to a fraction of a second;
/// with it one small request could stop a shard for as long as the watchdog
/// waits.
pub const REMADE_BYTES_MAX: usize = 64 << 20;

/// The same for gzip, whose compressor is by far the slowest: 40 MB of text a
/// second, where the others do at least 200.
pub const REMADE_GZIP_BYTES_MAX: usize = 16 << 20;

/// Values that one request may change, all topics together: their records are
/// one atomic batch. Kafka's own bound for such a batch.
pub const CONFIG_CHANGES_PER_REQUEST_MAX: usize = 10_000;

/// Longest value of one config key, in bytes.
pub const CONFIG_VALUE_BYTES_MAX: usize = 32 * 1024;

/// Partitions that one Produce or Fetch request may name, and that one fetch
/// session may hold: bounds the memory and time of a single request.
pub const PARTITIONS_PER_DATA_REQUEST_MAX: usize = 100_000;

/// Fetches of one connection in flight; each may hold a whole reply. Kafka
/// serves one at a time.
pub const FETCHES_IN_FLIGHT_MAX: usize = 2;

/// Partitions of one fetch that are read from files, one after the other: bounds
/// how long its answer takes. The others have their turn in the next fetch.
pub const COLD_READS_PER_FETCH_MAX: usize = 256;
