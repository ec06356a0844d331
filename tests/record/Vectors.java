import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Batches made by Kafka's own classes, with what these classes read in them.
 *
 * With the jars of kafka-clients 4.4.0 and its dependencies in LIBS:
 *   java -cp 'LIBS/*' tests/record/Vectors.java write > tests/record/vectors.txt
 *   java -cp 'LIBS/*' tests/record/Vectors.java read FILE
 * The second one reads batches that another program wrote, one behind the
 * other, and prints them in the same form.
 */
public class Vectors {
    static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "-" : "x" + HexFormat.of().formatHex(bytes);
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return "-";
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return hex(bytes);
    }

    static void printBatch(RecordBatch batch) {
        batch.ensureValid();
        OUT.printf("header %d %d %d %s %s %b %b %d %d %d %d %d %d%n",
            batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch(),
            batch.compressionType().name, batch.timestampType().name, batch.isTransactional(),
            batch.isControlBatch(), batch.maxTimestamp(), batch.producerId(),
            batch.producerEpoch(), batch.baseSequence(), batch.countOrNull(), batch.checksum());
        for (Record record : batch) {
            OUT.printf("record %d %d %s %s", record.offset(), record.timestamp(),
                hex(record.key()), hex(record.value()));
            for (Header header : record.headers()) {
                OUT.printf(" %s=%s", hex(utf8(header.key())), hex(header.value()));
            }
            OUT.println();
        }
    }

    static void print(String name, MemoryRecords records, boolean withRecords) {
        OUT.println("vector " + name);
        OUT.println("bytes " + hex(records.buffer()));
        for (RecordBatch batch : records.batches()) {
            if (withRecords) {
                printBatch(batch);
            }
        }
    }

    static MemoryRecordsBuilder builder(Compression compression, TimestampType type, long now) {
        return MemoryRecords.builder(ByteBuffer.allocate(1 << 20), RecordBatch.MAGIC_VALUE_V2,
            compression, type, 0L, now);
    }

    /** Nulls, empties, headers, timestamps that go back, a producer id if asked. */
    static MemoryRecords mixed(Compression compression, TimestampType type, boolean idempotent) {
        MemoryRecordsBuilder builder = builder(compression, type, 1_700_000_000_500L);
        if (idempotent) {
            builder.setProducerState(4711L, (short) 3, 42, false);
        }
        Header[] none = {};
        builder.append(1_700_000_000_000L, utf8("key"), utf8("value"), none);
        builder.append(1_700_000_000_250L, (byte[]) null, utf8("no key"), none);
        builder.append(1_699_999_999_000L, utf8("tombstone"), (byte[]) null, none);
        builder.append(1_700_000_000_001L, new byte[0], new byte[0], none);
        builder.append(1_700_000_000_002L, (byte[]) null, (byte[]) null, new Header[] {
            new RecordHeader("twice", utf8("one")),
            new RecordHeader("twice", utf8("two")),
            new RecordHeader("", new byte[0]),
            new RecordHeader("null", (byte[]) null),
            new RecordHeader("\u00fcml\u00e4ut \ud83d\ude00", new byte[] {0, (byte) 0xff, (byte) 0x80}),
        });
        byte[] large = new byte[300];
        for (int i = 0; i < large.length; i++) {
            large[i] = (byte) (i * 7);
        }
        builder.append(1_700_000_003_600L, large, large, none);
        return builder.build();
    }

    /** What a producer sends when a batch has filled; the test knows the text. */
    static MemoryRecords text(Compression compression) {
        MemoryRecordsBuilder builder = builder(compression, TimestampType.CREATE_TIME, 0);
        for (int i = 0; i < 1000; i++) {
            builder.append(1_700_000_000_000L + i, utf8("key-" + i % 10),
                utf8("line " + i + " of the text ".repeat(1 + i % 9)));
        }
        return builder.build();
    }

    static void write() {
        Compression[] all = {
            Compression.NONE, Compression.gzip().build(), Compression.snappy().build(),
            Compression.lz4().build(), Compression.zstd().build(),
        };
        for (Compression compression : all) {
            String name = compression.type().name;
            print("mixed-" + name, mixed(compression, TimestampType.CREATE_TIME, false), true);
            print("idempotent-" + name, mixed(compression, TimestampType.CREATE_TIME, true), true);
            print("append-time-" + name,
                mixed(compression, TimestampType.LOG_APPEND_TIME, false), true);
            if (compression != Compression.NONE) {
                print("text-" + name, text(compression), false);
            }
        }
        print("text-gzip-level-9", text(Compression.gzip().level(9).build()), false);
        print("text-lz4-level-17", text(Compression.lz4().level(17).build()), false);
        print("text-zstd-level-22", text(Compression.zstd().level(22).build()), false);
        for (ControlRecordType type : new ControlRecordType[] {
                ControlRecordType.COMMIT, ControlRecordType.ABORT}) {
            print("marker-" + type.name().toLowerCase(), MemoryRecords.withEndTransactionMarker(
                17L, 1_700_000_000_000L, 5, 4711L, (short) 3, new EndTransactionMarker(type, 9)),
                true);
        }
        MemoryRecordsBuilder transactional =
            builder(Compression.NONE, TimestampType.CREATE_TIME, 0);
        transactional.setProducerState(1L << 40, Short.MAX_VALUE, Integer.MAX_VALUE, true);
        transactional.append(-1L, utf8("k"), utf8("v"));
        transactional.append(5L, utf8("k"), utf8("w"));
        print("transactional", transactional.build(), true);
    }

    public static void main(String[] args) throws Exception {
        if (args[0].equals("write")) {
            write();
        } else {
            ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(Path.of(args[1])));
            for (RecordBatch batch : MemoryRecords.readableRecords(bytes).batches()) {
                printBatch(batch);
            }
        }
        OUT.flush();
    }
}
